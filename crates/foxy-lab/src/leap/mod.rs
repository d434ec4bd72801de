//! LEAP (Davison and Wu, *Implementing a Web Proxy Evaluation Architecture*, below "the LEAP
//! paper") compares proxies by sending each request to all of them. A *path* is a server that
//! receives a copy of each request: a proxy or the origin. The Multiplier sends the copies,
//! measures the response times and compares the answers. The requirements on the Multiplier are
//! R105–R113 of `foxy figure requirements`. Module `front` accepts requests from clients. Module
//! `collector` is the parent proxy cache of the proxies.

pub mod collector;
mod context;
mod exchange;
mod front;
mod multiplier;
mod report;
#[cfg(test)]
mod tests;
mod verdict;
mod wanted;

pub use context::Numbers;
pub use exchange::Times;
pub use exchange::body::Decoding;
pub use exchange::failure::PathFailure;
pub use exchange::kept::{Carriage, Connections};
pub use exchange::message::Message;
pub use exchange::outgoing::Outgoing;
pub use exchange::requests::{self, Asked};
pub use front::{Front, FrontRefusal, serve};
pub use multiplier::passthrough::{Multiplier, PASSTHROUGH, passing_through};
pub use multiplier::run;
pub use report::ClientReport;
pub use report::differences::Class;
pub use report::differences::{Meaning, NoiseFloor, PairedDifference, noise_floor, noise_floor_of};
pub use report::line::{self, Line};
pub use report::records::measurable;
pub use report::{Example, LeapReport, PathReport};
pub use verdict::Unjudged;
pub use verdict::Verdict;
pub use wanted::Wanted;

use collector::Reach;
use foxy_http::{Authority, Headers};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use verdict::{Fingerprint, Version};

/// The kind of the server that receives a copy of each request. It determines the form of the
/// request target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// A forward proxy. It receives the URL in absolute form.
    Forward,
    /// A reverse proxy or the Collector (common parent proxy). It receives the URL in origin form.
    Reverse,
    /// No fixed server: each request goes to the server in its own URL, if this server has a
    /// loopback or private address. The server receives the URL in origin form.
    Named,
    /// The origin itself, reached without a proxy. It receives the URL in origin form. The origin's
    /// answer is the reference for the other paths.
    Direct,
}

/// A path: a server that receives a copy of every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The name of the proxy or origin in logs, tables and records.
    pub name: String,
    /// The address of the proxy or origin.
    pub address: SocketAddr,
    /// The kind of the server, which determines the form of the request target.
    pub manner: Manner,
}

impl Path {
    fn address_for(&self, asked: &Asked) -> Option<SocketAddr> {
        if self.manner != Manner::Named {
            return Some(self.address);
        }
        let authority = Authority::parse(asked.authority.as_bytes())?;
        let found = Reach::Offline.literal(authority.host)?.ok()?;
        Some(SocketAddr::new(found, authority.port.unwrap_or(asked.scheme.default_port())))
    }
}

/// The rule that decides when the Multiplier (LEAP's request copier) starts each request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeapPace {
    /// Keeps this number of requests in flight. The next request starts as soon as the proxies and
    /// the origin have answered one of them.
    Closed(usize),
    /// Starts this number of requests per second.
    Rate(f64),
    /// Starts requests at the times recorded in the trace, this many times as fast.
    Recorded(f64),
}

/// Options of a run of the Multiplier, which sends copies of each request to all proxies and the
/// origin.
#[derive(Clone, Debug)]
pub struct LeapRun {
    /// The servers that receive a copy of every request. At most one server is [`Manner::Direct`].
    pub paths: Vec<Path>,
    /// The rule that decides when each request starts.
    pub pace: LeapPace,
    /// The delay between the starts of two copies of the same request.
    pub stagger: Duration,
    /// The longest time that a path (proxy or origin) may take for a complete answer.
    pub time_limit: Duration,
    /// The largest number of requests in flight. The Multiplier (LEAP's request copier) refuses and
    /// counts further requests.
    pub most_in_flight: usize,
    /// The unique numbers of the copies of requests. foxy's own origin repeats the number of a copy
    /// in its answer. An answer with another number came from a cache. With `None`, copies carry no
    /// numbers.
    pub numbers: Option<Numbers>,
    /// The TLS settings and HTTP version for copies.
    pub outgoing: Outgoing,
    /// Whether copies of requests reuse the connections of earlier copies.
    pub connections: Connections,
    /// The random seed of the bootstrap, which computes the confidence intervals from random
    /// samples of the measured times.
    pub seed: u64,
    /// Pairs of proxies with equal configurations, as positions in `paths` (the list of proxies and
    /// origin). A difference within a pair counts as noise.
    pub alike: Vec<(usize, usize)>,
    /// The set to which the Multiplier (LEAP's request copier) adds the URLs that clients request.
    /// The Collector (common parent proxy) uses it to recognise prefetches: requests of a proxy for
    /// other URLs.
    pub wanted: Option<Arc<Wanted>>,
    /// The stop flag. Once set, no more requests start.
    pub interrupted: Arc<AtomicBool>,
}

impl LeapRun {
    /// Returns the default options: one request at a time, new HTTP/1 connections, a time limit of
    /// one minute, and seed 1.
    pub fn new(paths: Vec<Path>) -> Self {
        Self {
            paths,
            pace: LeapPace::Closed(1),
            stagger: Duration::ZERO,
            time_limit: Duration::from_secs(60),
            most_in_flight: 64,
            numbers: None,
            outgoing: Outgoing::default(),
            connections: Connections::New,
            seed: 1,
            alike: Vec::new(),
            wanted: None,
            interrupted: Arc::default(),
        }
    }
}

/// The complete answer of a proxy or the origin. It has a digest in place of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: Headers,
    /// The length of the body in bytes as received: still compressed if it was, but without chunk
    /// framing.
    pub length: u64,
    /// The XXH3-128 digest of the body. It covers the decoded body if the content coding is
    /// supported.
    pub digest: u128,
    /// Whether LEAP could decode the content coding (such as gzip) of the body.
    pub decoding: Decoding,
    /// Whether the header fields leave no doubt where the answer ends.
    pub framing: Framing,
    /// Whether the answer came from a cache. `None` if the answer does not show this.
    pub hit: Option<bool>,
}

/// Whether the header fields leave no doubt where an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Every reader finds the end of the answer at the same byte.
    Plain,
    /// The answer has both Content-Length and Transfer-Encoding, which readers may interpret
    /// differently (RFC 9112 §6.3).
    Ambiguous,
}

impl Answer {
    /// Returns the status and the digest of the body. Answers with equal fingerprints look equal to
    /// a user.
    pub const fn fingerprint(&self) -> Fingerprint {
        Fingerprint { status: self.status, digest: self.digest }
    }

    /// Returns the fingerprint and the validators (`ETag` and `Last-Modified`). Answers with equal
    /// values are the same version of the resource.
    pub fn version(&self) -> Version {
        Version {
            print: self.fingerprint(),
            validators: Some(verdict::fields::version(&self.headers)),
        }
    }
}
