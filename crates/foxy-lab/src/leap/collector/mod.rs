//! LEAP's Collector (seed 002, §2.3; R114–R121) is the parent of all compared proxies. It sends
//! each request to the origin once and gives every proxy the same answer. Each proxy waits as long
//! as the first: for the name, the connection, the first byte and the transfer.
//!
//! The pure modules `table`, `hosts`, `reach` and `answer` decide and accept `now` as an argument.
//! `serve` handles a connection, `request` reads, `fetch` requests from the origin, `reply` sends.

mod answer;
mod failure;
mod fetch;
mod hosts;
mod line;
pub(crate) mod reach;
mod reasons;
mod reply;
mod report;
mod request;
mod serve;
mod server;
mod shared;
mod table;
#[cfg(test)]
mod tests;

pub use answer::spool::BlockFile;
pub use failure::Failure;
pub use line::{CollectorLine, Source};
pub use reach::Reach;
pub use reasons::Refusal;
pub use report::{CollectorReport, ProxyReport};
pub use server::Collector;

use crate::leap::wanted::Wanted;
use crate::wire::tls::{Certificates, Trust};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Prefix of the `Via` value that every Collector adds. LEAP recognises Collectors by this prefix.
pub(crate) const VIA: &str = "1.1 foxy-collector-";

/// Largest number of proxies that a Collector can tell apart.
pub const MOST_PROXIES: usize = 64;
/// Largest request body, in bytes.
pub const LARGEST_REQUEST: usize = 1 << 20;

/// Number of a proxy, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProxyId(pub usize);

/// A listener for proxies. The Collector tells proxies apart by listener and by client address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The proxy's name in logs and reports. Without a name, its address is shown.
    pub name: Option<String>,
    /// Address to listen on. Port 0 means any free port.
    pub address: SocketAddr,
}

/// Receives each log line. Calls never overlap.
pub type LogSink = Box<dyn FnMut(&CollectorLine) + Send>;

/// The file for bodies beyond the memory limit, with its size in bytes.
pub type SpoolFile = (Arc<dyn BlockFile>, u64);

/// Options of a Collector.
pub struct CollectorOptions {
    /// Listeners, at least one.
    pub listen: Vec<Listen>,
    /// Which origins the Collector may contact.
    pub reach: Reach,
    /// If set, every request goes to this origin, whatever host the request names.
    pub origin: Option<SocketAddr>,
    /// Delay added to each name look-up.
    pub name_cost: Duration,
    /// Delay of one round trip. It is added for the connection, a TLS handshake and the first byte.
    pub round_trip: Duration,
    /// The exchange fails if no byte arrives for this time.
    pub time_limit: Duration,
    /// Largest number of client connections.
    pub most_connections: usize,
    /// Largest number of simultaneous fetches from origins.
    pub most_fetches: usize,
    /// Memory limit in bytes for heads and bodies. Each running fetch uses one more block.
    pub memory: usize,
    /// Certificates for proxies that use TLS or tunnels. Without certificates, TLS and tunnels are
    /// refused.
    pub certificates: Option<Certificates>,
    /// Certificate authorities that are trusted for origins.
    pub trust: Trust,
    /// Whether to use HTTP/2 with origins: by prior knowledge, or by ALPN within TLS.
    pub origin_http2: bool,
    /// URLs that clients have requested. A request for another URL counts as a prefetch.
    pub wanted: Option<Arc<Wanted>>,
    /// Space for bodies beyond the memory limit.
    pub file: Option<SpoolFile>,
    /// Receiver of log lines.
    pub log: Option<LogSink>,
}

impl CollectorOptions {
    /// An offline Collector with default limits that uses memory only.
    pub fn new(listen: Vec<Listen>) -> Self {
        Self {
            listen,
            reach: Reach::Offline,
            origin: None,
            name_cost: Duration::ZERO,
            round_trip: Duration::ZERO,
            time_limit: Duration::from_secs(60),
            most_connections: 1024,
            most_fetches: 256,
            memory: 64 << 20,
            certificates: None,
            trust: Trust::default(),
            origin_http2: false,
            wanted: None,
            file: None,
            log: None,
        }
    }
}

impl fmt::Debug for CollectorOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CollectorOptions")
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}
