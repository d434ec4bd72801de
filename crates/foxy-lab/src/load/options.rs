//! The options of a load: pace, protocol, mode and when the load stops.

use crate::load::fault::Fault;
use crate::wire::tls::Trust;
use foxy_workload::Workload;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// How requests name their origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Absolute form, to a forward proxy: `origin` is the authority in each URL.
    Forward {
        /// `host:port` of the origin; its other servers are at the ports after that.
        origin: String,
    },
    /// Origin form, to a reverse proxy or straight to an origin.
    Reverse {
        /// What the Host line says.
        host: String,
    },
}

/// What clients speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.0; a persistent connection is asked for by `Connection: keep-alive`.
    Http10 {
        /// Whether a connection is used again.
        persistent: bool,
    },
    /// HTTP/1.1.
    Http11 {
        /// Whether a connection is used again.
        persistent: bool,
    },
    /// HTTP/2 by prior knowledge, or by ALPN within TLS, one stream at a time on a connection that
    /// stays.
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

    /// What a request says of its connection; `last` when it is the last one on it.
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
    /// Each client starts the next request when it has the answer.
    Closed,
    /// Requests start at this rate (1/s), evenly spaced, whether or not answers come.
    Open {
        /// Requests a second.
        rate: f64,
    },
    /// Requests start at random times, at this rate (1/s) in the mean (a Poisson process), each
    /// client as likely to send them as any other, on as many connections as it takes.
    Random {
        /// Requests a second.
        rate: f64,
    },
    /// Requests start when the trace that is the workload recorded them, so many times as fast,
    /// whether or not answers come.
    Recorded {
        /// How many times as fast.
        times: f64,
    },
}

impl Pace {
    /// Whether requests have times of their own, whether or not answers come.
    pub(crate) const fn is_open(self) -> bool {
        match self {
            Self::Open { .. } | Self::Recorded { .. } => true,
            Self::Closed | Self::Random { .. } => false,
        }
    }
}

/// When the run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this many requests.
    Requests(u64),
    /// After this time.
    After(Duration),
}

/// A load run as a value.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The proxy.
    pub target: SocketAddr,
    /// Forward or reverse.
    pub mode: Mode,
    /// Over how many names the origin of a forward proxy is spread, `h1` to `hN` below the one that
    /// URLs name otherwise; an object has always the same.
    pub hosts: Option<u32>,
    /// What is spoken with it.
    pub protocol: Protocol,
    /// Whose certificates count, if TLS is spoken: through a forward proxy in tunnels that it opens
    /// (CONNECT), otherwise at once.
    pub tls: Option<Trust>,
    /// What is asked for.
    pub workload: Workload,
    /// How many clients; each with a connection of its own unless the pace is random.
    pub clients: usize,
    /// How many threads they run on.
    pub threads: usize,
    /// When requests start.
    pub pace: Pace,
    /// When the run ends.
    pub stop: Stop,
    /// The seed of every choice.
    pub seed: u64,
    /// After how long an answer counts as missing.
    pub time_limit: Duration,
    /// Once set, no more requests begin: the run ends when those under way have ended.
    pub interrupted: Arc<AtomicBool>,
    /// What goes wrong on purpose meanwhile, if anything does; not counted when the pace is random.
    pub fault: Option<Arc<Fault>>,
}

impl LoadOptions {
    /// 64 clients on one thread, each going on when it has its answer, for ten seconds, over
    /// persistent connections of HTTP/1.1 without TLS, with seed 1. Change what is to be otherwise.
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
