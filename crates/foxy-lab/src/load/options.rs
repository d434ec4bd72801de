//! The options of a load run: proxy, form of requests, protocol, start times and end.

use crate::load::fault::Fault;
use crate::wire::tls::Trust;
use foxy_workload::Workload;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The kind of server that receives the requests, which determines the form of request targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The server is a forward proxy. Requests have the absolute form.
    Forward {
        /// The `host:port` of the origin, as URLs name it. Further servers of the origin use the
        /// next ports.
        origin: String,
    },
    /// The server is a reverse proxy or an origin. Requests have the origin form.
    Reverse {
        /// The value of the Host field.
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
    /// HTTP/2, by prior knowledge or by ALPN over TLS. Each connection is persistent and carries
    /// one request at a time.
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

/// The rule that decides when requests start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// Each client sends its next request as soon as it has the previous answer (a closed loop).
    Closed,
    /// Requests start at equal intervals, even if earlier answers are missing (an open loop).
    Open {
        /// The number of requests per second.
        rate: f64,
    },
    /// Requests start at random times (a Poisson process over all clients), on as many connections
    /// as needed.
    Random {
        /// The mean number of requests per second.
        rate: f64,
    },
    /// Requests start at the times in the workload's trace, even if earlier answers are missing.
    Recorded {
        /// The factor by which the replay is faster than the recorded requests.
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
    /// The run ends after this number of requests.
    Requests(u64),
    /// The run ends after this time.
    After(Duration),
}

/// The options of a load run.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The address of the proxy or origin that receives the requests.
    pub target: SocketAddr,
    /// The kind of this server, which determines the form of requests.
    pub mode: Mode,
    /// If set to N, URLs name the origin by N host names, `h1` to `hN`, for a forward proxy. Each
    /// object always uses the same name.
    pub hosts: Option<u32>,
    /// The protocol of the clients.
    pub protocol: Protocol,
    /// If set, clients use TLS and trust these authorities. A forward proxy then opens a CONNECT
    /// tunnel for each connection.
    pub tls: Option<Trust>,
    /// The workload that chooses the requests.
    pub workload: Workload,
    /// The number of clients. Each client has one connection. Only clients that start requests at
    /// random times open more.
    pub clients: usize,
    /// The number of threads on which the clients run.
    pub threads: usize,
    /// The rule that decides when requests start.
    pub pace: Pace,
    /// The end of the run.
    pub stop: Stop,
    /// The seed of all random choices.
    pub seed: u64,
    /// The time limit for each answer.
    pub time_limit: Duration,
    /// Once set, no more requests start. Running requests finish.
    pub interrupted: Arc<AtomicBool>,
    /// The current phase of a fault that another module injects, if any. Requests then count by
    /// phase. Not used if requests start at random times.
    pub fault: Option<Arc<Fault>>,
}

impl LoadOptions {
    /// Returns the default options: 64 closed-loop clients on one thread for ten seconds,
    /// persistent HTTP/1.1, and seed 1.
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
