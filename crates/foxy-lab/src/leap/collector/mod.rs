//! LEAP's Collector (seed 002, §2.3; R114–R121): the parent of all proxies under comparison. It
//! asks an origin once for all of them, whatever it is they ask for, and lets each pay what the
//! first paid: for the name, the connection, the first byte and the transfer. It judges nothing,
//! reads no arguments and opens no file.
//!
//! What it decides is in `table`, `hosts`, `lifetime`, `condition`, `marks` and `reach`, which take
//! `now`; `serve` carries a client's connection, `request` reads from it, `fetch` one exchange with
//! an origin, and `reply` an answer at its pace.

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
pub use report::{CollectorReport, OfProxy};
pub use server::Collector;

use crate::leap::wanted::Wanted;
use crate::wire::tls::{Certificates, Trust};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How a Collector begins what it says of itself in `Via`; `leap` knows it by that.
pub(crate) const VIA: &str = "1.1 foxy-collector-";

/// Proxies that can be told apart.
pub const MOST_PROXIES: usize = 64;
/// Bytes of a request's body that are held.
pub const LARGEST_REQUEST: usize = 1 << 20;

/// One of the proxies, by where it connects to and from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProxyId(pub usize);

/// Where proxies connect to. Proxies of one machine are told apart by it, those of several by their
/// addresses too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// What its proxy is called in logs and reports, instead of by its address.
    pub name: Option<String>,
    /// The address; port 0 takes a free one.
    pub address: SocketAddr,
}

/// Where log lines go: called for each, never from two threads at once.
pub type LogSink = Box<dyn FnMut(&CollectorLine) + Send>;

/// What bodies beyond the memory are held in, and how many bytes of it.
pub type SpoolFile = (Arc<dyn BlockFile>, u64);

/// How a Collector runs.
pub struct CollectorOptions {
    /// Where proxies connect to, at least one.
    pub listen: Vec<Listen>,
    /// Whom it asks.
    pub reach: Reach,
    /// The origin that is asked whatever host a request names.
    pub origin: Option<SocketAddr>,
    /// What a name costs beside what its resolution takes.
    pub name_cost: Duration,
    /// What a round trip to the origin costs beside what it takes: one for the connection, one for
    /// the first byte.
    pub round_trip: Duration,
    /// For how long nothing may happen in an exchange.
    pub time_limit: Duration,
    /// Client connections at once.
    pub most_connections: usize,
    /// Exchanges with origins at once.
    pub most_fetches: usize,
    /// Bytes of memory that heads and bodies take together; exchanges under way take a block each
    /// besides.
    pub memory: usize,
    /// Whose certificates proxies are shown that speak TLS with it, or open tunnels; without them
    /// neither is possible.
    pub certificates: Option<Certificates>,
    /// Whose certificates origins may show.
    pub trust: Trust,
    /// Whether origins are asked in HTTP/2: by prior knowledge, within TLS by ALPN.
    pub origin_http2: bool,
    /// What clients ask for, where that is known: what else proxies ask for is counted.
    pub wanted: Option<Arc<Wanted>>,
    /// What bodies beyond that are held in.
    pub file: Option<SpoolFile>,
    /// Where log lines go.
    pub log: Option<LogSink>,
}

impl CollectorOptions {
    /// An offline Collector with the usual limits, in memory only.
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
