//! The options of a load run: form of requests, protocol, start times and end.

use crate::load::fault::Fault;
use crate::wire::tls::Trust;
use foxy_workload::Workload;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Where requests go, and in which form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// To a forward proxy, in absolute form.
    Forward {
        /// `host:port` of the origin in URLs. Further servers use the next ports.
        origin: String,
    },
    /// To a reverse proxy or an origin, in origin form.
    Reverse {
        /// Value of the Host field.
        host: String,
    },
}

/// The protocol of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0. Persistent connections need `Connection: keep-alive`.
    Http10 {
        /// Whether connections are reused.
        persistent: bool,
    },
    /// HTTP/1.1.
    Http11 {
        /// Whether connections are reused.
        persistent: bool,
    },
    /// HTTP/2 by prior knowledge, or by ALPN over TLS. Each connection is persistent and has one
    /// stream at a time.
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

/// When requests start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each client sends its next request after the previous answer.
    Closed,
    /// At equal intervals, even if answers are missing.
    Open {
        /// Requests per second.
        rate: f64,
    },
    /// At random times (a Poisson process over all clients), on as many connections as needed.
    Random {
        /// Mean requests per second.
        rate: f64,
    },
    /// At the times in the workload's trace, even if answers are missing.
    Recorded {
        /// Factor by which the replay is faster than the recording.
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

/// When a run ends.
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
    /// Where requests go, and in which form.
    pub mode: Mode,
    /// If set, the origin has the names `h1` to `hN` in a forward proxy's URLs. Each object always
    /// uses the same name.
    pub hosts: Option<u32>,
    /// The clients' protocol.
    pub protocol: Protocol,
    /// If set, uses TLS and trusts these authorities. A forward proxy is used through CONNECT
    /// tunnels.
    pub tls: Option<Trust>,
    /// The workload that chooses the requests.
    pub workload: Workload,
    /// Number of clients. Each has its own connection, except at random start times.
    pub clients: usize,
    /// Number of threads.
    pub threads: usize,
    /// When requests start.
    pub pace: Pace,
    /// When the run ends.
    pub stop: Stop,
    /// Seed of all random choices.
    pub seed: u64,
    /// Time limit for each answer.
    pub time_limit: Duration,
    /// Once set, no more requests start. Running requests finish.
    pub interrupted: Arc<AtomicBool>,
    /// The fault that the run injects, if any. Ignored if requests start at random times.
    pub fault: Option<Arc<Fault>>,
}

impl LoadOptions {
    /// Default options: 64 closed-loop clients on one thread for ten seconds, persistent HTTP/1.1,
    /// seed 1.
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
