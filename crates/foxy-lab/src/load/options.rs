//! The options of a load: pace, protocol, mode and when the load stops.

use crate::load::fault::Fault;
use crate::wire::tls::Trust;
use foxy_workload::Workload;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The form of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Absolute form, to a forward proxy.
    Forward {
        /// `host:port` in URLs; further servers use the next ports.
        origin: String,
    },
    /// Origin form, to a reverse proxy or an origin.
    Reverse {
        /// Value of the Host field.
        host: String,
    },
}

/// The clients' protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0, with `Connection: keep-alive` if persistent.
    Http10 {
        /// Whether connections are reused.
        persistent: bool,
    },
    /// HTTP/1.1.
    Http11 {
        /// Whether connections are reused.
        persistent: bool,
    },
    /// HTTP/2 by prior knowledge, or by ALPN within TLS. One stream at a time on a persistent
    /// connection.
    Http2,
}

impl Protocol {
    pub(crate) const fn is_persistent(self) -> bool {
        match self {
            Self::Http10 { persistent } | Self::Http11 { persistent } => persistent,
            Self::Http2 => true,
        }
    }

    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::Http10 { .. } => "HTTP/1.0",
            Self::Http11 { .. } => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }

    pub(crate) const fn connection_line(self, last: bool) -> Option<&'static str> {
        match self {
            Self::Http10 { persistent: true } if !last => Some("Connection: keep-alive\r\n"),
            Self::Http11 { persistent } if last || !persistent => Some("Connection: close\r\n"),
            _ => None,
        }
    }
}

/// The start times of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each client sends its next request after the answer.
    Closed,
    /// Evenly spaced, whether or not answers come.
    Open {
        /// Requests per second.
        rate: f64,
    },
    /// A Poisson process over all clients, on as many connections as needed.
    Random {
        /// Mean requests per second.
        rate: f64,
    },
    /// As recorded in the workload's trace, whether or not answers come.
    Recorded {
        /// Speed-up over the recording.
        times: f64,
    },
}

impl Pace {
    pub(crate) const fn is_open(self) -> bool {
        match self {
            Self::Open { .. } | Self::Recorded { .. } => true,
            Self::Closed | Self::Random { .. } => false,
        }
    }
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this many requests.
    Requests(u64),
    /// After this time.
    After(Duration),
}

/// Options of a load run.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Address of the proxy.
    pub target: SocketAddr,
    /// Form of requests.
    pub mode: Mode,
    /// Spreads a forward proxy's origin over the names `h1` to `hN`. An object keeps its name.
    pub hosts: Option<u32>,
    /// The clients' protocol.
    pub protocol: Protocol,
    /// Uses TLS with these authorities: in CONNECT tunnels through a forward proxy, else directly.
    pub tls: Option<Trust>,
    /// The requests.
    pub workload: Workload,
    /// Number of clients, each with its own connection unless the pace is random.
    pub clients: usize,
    /// Number of threads.
    pub threads: usize,
    /// Start times.
    pub pace: Pace,
    /// End of the run.
    pub stop: Stop,
    /// Seed of all random choices.
    pub seed: u64,
    /// Time limit of an answer.
    pub time_limit: Duration,
    /// Once set, no more requests begin; requests in flight finish.
    pub interrupted: Arc<AtomicBool>,
    /// The fault to count around, if any; ignored when the pace is random.
    pub fault: Option<Arc<Fault>>,
}

impl LoadOptions {
    /// Defaults: 64 closed-loop clients on one thread for ten seconds, persistent HTTP/1.1, seed 1.
    pub fn new(target: SocketAddr, mode: Mode, workload: Workload) -> Self {
        Self {
            target,
            mode,
            hosts: None,
            protocol: Protocol::Http11 { persistent: true },
            tls: None,
            workload,
            clients: 64,
            threads: 1,
            pace: Pace::Closed,
            stop: Stop::After(Duration::from_secs(10)),
            seed: 1,
            time_limit: Duration::from_secs(30),
            interrupted: Arc::default(),
            fault: None,
        }
    }
}
