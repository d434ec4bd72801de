//! LEAP's Collector (§2.3 of the LEAP paper, paper 002 in docs/figures.md) is the parent proxy
//! cache of all compared proxies. It sends each request to the origin once and gives every proxy
//! the same answer. Each later proxy waits as long as the first proxy: for the name look-up, the
//! connection, the first byte and the transfer. `foxy figure requirements` lists the paper's
//! requirements for a Collector as R114 to R121.
//!
//! The modules `table`, `hosts`, `reach` and `answer` make the decisions. These modules use no
//! socket and no clock, and receive the time as an argument. `serve` handles a connection,
//! `request` reads a request, `fetch` asks the origin, and `reply` sends an answer.

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

/// The beginning of the `Via` value that every Collector (common parent proxy) adds. LEAP
/// recognises Collectors by this beginning.
pub(crate) const VIA: &str = "1.1 foxy-collector-";

/// The largest number of proxies that a Collector (common parent proxy) can tell apart.
pub const MOST_PROXIES: usize = 64;
/// The largest request body, in bytes.
pub const LARGEST_REQUEST: usize = 1 << 20;

/// The number of a proxy, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProxyId(pub usize);

/// A listener for proxies. The Collector (common parent proxy) tells proxies apart by listener and
/// by client address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The proxy's name in logs and reports. Without a name, logs and reports show its address.
    pub name: Option<String>,
    /// The address of the listener. Port 0 means any free port.
    pub address: SocketAddr,
}

/// The function that receives each line of the log. The Collector (common parent proxy) never calls
/// it twice at the same time.
pub type LogSink = Box<dyn FnMut(&CollectorLine) + Send>;

/// The file for bodies that exceed the memory limit, and the largest size of this file in bytes.
pub type SpoolFile = (Arc<dyn BlockFile>, u64);

/// The options of a Collector (common parent proxy).
pub struct CollectorOptions {
    /// The listeners, at least one listener.
    pub listen: Vec<Listen>,
    /// The origins that the Collector (common parent proxy) may contact.
    pub reach: Reach,
    /// If set, every request goes to this origin. The host in the request does not matter then.
    pub origin: Option<SocketAddr>,
    /// The delay that the Collector (common parent proxy) adds to each name look-up. Zero adds
    /// nothing.
    pub name_cost: Duration,
    /// The simulated time of a network round trip to the origin. The Collector (common parent
    /// proxy) adds it to the connection, to a TLS handshake and to the first byte.
    pub round_trip: Duration,
    /// The longest wait for the next byte of the origin. After this time, the exchange fails.
    pub time_limit: Duration,
    /// The largest number of connections from proxies at the same time.
    pub most_connections: usize,
    /// The largest number of simultaneous fetches from origins.
    pub most_fetches: usize,
    /// The memory limit in bytes for the heads and bodies of stored answers. Each running fetch
    /// uses one more block.
    pub memory: usize,
    /// The certificates for proxies that use TLS or tunnels. Without certificates, the Collector
    /// (common parent proxy) refuses TLS and tunnels.
    pub certificates: Option<Certificates>,
    /// The certificate authorities that the Collector (common parent proxy) trusts for origins.
    pub trust: Trust,
    /// Whether to use HTTP/2 with origins. With `http`, HTTP/2 starts by prior knowledge; with
    /// `https`, by ALPN.
    pub origin_http2: bool,
    /// The URLs that clients have requested. If a proxy requests another URL, the report counts a
    /// prefetch.
    pub wanted: Option<Arc<Wanted>>,
    /// The file for bodies that exceed the memory limit.
    pub file: Option<SpoolFile>,
    /// The function that receives the log lines, one line per answer. Without it, the Collector
    /// (common parent proxy) writes no log.
    pub log: Option<LogSink>,
}

impl CollectorOptions {
    /// Creates options with default limits and without a spool file (the file for bodies that
    /// exceed the memory limit). The Collector (common parent proxy) reaches only loopback and
    /// private addresses.
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
