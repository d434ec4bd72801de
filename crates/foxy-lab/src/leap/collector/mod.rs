//! LEAP's Collector (seed 002, §2.3; R114–R121): the parent of all compared proxies. It asks an
//! origin once for all of them. Each proxy pays what the first paid: for the name, the connection,
//! the first byte and the transfer. It judges nothing, reads no arguments and opens no file.
//!
//! `table`, `hosts`, `reach` and `answer` decide, and take `now`. `serve` carries a client's
//! connection, `request` reads from it, `fetch` asks the origin, and `reply` sends at its pace.

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

/// Prefix of the `Via` value of a Collector; LEAP recognises Collectors by it.
pub(crate) const VIA: &str = "1.1 foxy-collector-";

/// Largest number of proxies.
pub const MOST_PROXIES: usize = 64;
/// Largest request body, in bytes.
pub const LARGEST_REQUEST: usize = 1 << 20;

/// Number of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProxyId(pub usize);

/// An address for proxies to connect to. Proxies differ by listener and by client address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The proxy's name in logs and reports; its address without one.
    pub name: Option<String>,
    /// Listening address; port 0 takes a free port.
    pub address: SocketAddr,
}

/// Receives each log line. Never called from two threads at once.
pub type LogSink = Box<dyn FnMut(&CollectorLine) + Send>;

/// The file for bodies beyond the memory limit, and its size in bytes.
pub type SpoolFile = (Arc<dyn BlockFile>, u64);

/// Options of a Collector.
pub struct CollectorOptions {
    /// Listeners, at least one.
    pub listen: Vec<Listen>,
    /// Which origins may be asked.
    pub reach: Reach,
    /// The origin that stands for every host.
    pub origin: Option<SocketAddr>,
    /// Added cost of a name lookup.
    pub name_cost: Duration,
    /// Added cost of a round trip: once for the connection, once for the first byte.
    pub round_trip: Duration,
    /// Idle timeout of an exchange.
    pub time_limit: Duration,
    /// Largest number of client connections.
    pub most_connections: usize,
    /// Largest number of fetches in flight.
    pub most_fetches: usize,
    /// Memory in bytes for heads and bodies. A fetch in flight takes one block more.
    pub memory: usize,
    /// Certificates for proxies that use TLS or tunnels; without them neither is possible.
    pub certificates: Option<Certificates>,
    /// Authorities that origins' certificates must come from.
    pub trust: Trust,
    /// Uses HTTP/2 with origins: by prior knowledge, or by ALPN within TLS.
    pub origin_http2: bool,
    /// URLs that clients asked for. Requests for other URLs count as prefetches.
    pub wanted: Option<Arc<Wanted>>,
    /// Space for bodies beyond the memory limit.
    pub file: Option<SpoolFile>,
    /// Receiver of log lines.
    pub log: Option<LogSink>,
}

impl CollectorOptions {
    /// An offline Collector with default limits, in memory only.
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
