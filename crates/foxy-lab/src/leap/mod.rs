//! LEAP (seed 002) compares proxies by sending each request to all of them. The Multiplier (§2.2;
//! R105–R113) sends a copy of each request on every path, times the answers and compares them. A
//! path is a server that receives the copies: a proxy or the origin. Module `front` accepts
//! requests from clients. Module `collector` is the parent cache of the proxies.

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

/// The form in which a path receives requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// A forward proxy. It receives the URL in absolute form.
    Forward,
    /// A reverse proxy or the Collector. It receives the URL in origin form.
    Reverse,
    /// The server that the request names, if its address is loopback or private. The server
    /// receives the URL in origin form.
    Named,
    /// The origin itself. It receives the URL in origin form. Its answer is the reference for the
    /// other paths.
    Direct,
}

/// A server that receives a copy of every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The path's name in logs, tables and records.
    pub name: String,
    /// The server's address.
    pub address: SocketAddr,
    /// The form in which this server receives requests.
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

/// The rule for the start times of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeapPace {
    /// Keeps this number of requests open. The next request starts when an open request has ended
    /// on every path.
    Closed(usize),
    /// Starts this number of requests per second.
    Rate(f64),
    /// Starts requests at their recorded times, sped up by this factor.
    Recorded(f64),
}

/// Options of a Multiplier run.
#[derive(Clone, Debug)]
pub struct LeapRun {
    /// The servers that receive every request. At most one server is [`Manner::Direct`].
    pub paths: Vec<Path>,
    /// The rule for the start times of requests.
    pub pace: LeapPace,
    /// The delay between two copies of a request (R108).
    pub stagger: Duration,
    /// The longest time that a path may take for a complete answer.
    pub time_limit: Duration,
    /// The largest number of unfinished requests. The Multiplier refuses and counts further
    /// requests (R107).
    pub most_in_flight: usize,
    /// The unique numbers of copies. The verifying origin repeats a copy's number in its answer,
    /// and a wrong number reveals a cache hit. With `None`, copies carry no numbers.
    pub numbers: Option<Numbers>,
    /// The TLS settings and HTTP version for copies.
    pub outgoing: Outgoing,
    /// Whether copies reuse connections.
    pub connections: Connections,
    /// The random seed for the bootstrap confidence intervals.
    pub seed: u64,
    /// Pairs of paths to proxies with equal configurations. A difference within a pair counts as
    /// noise.
    pub alike: Vec<(usize, usize)>,
    /// Records the URLs that clients request. A Collector needs these URLs to recognise prefetches.
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

/// A complete answer with a digest of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: Headers,
    /// The length of the body in bytes. It includes content codings and excludes chunk framing.
    pub length: u64,
    /// The digest of the body. It covers the decoded body if the coding is supported.
    pub digest: u128,
    /// The result of decoding the body.
    pub decoding: Decoding,
    /// Whether the header fields mark the end of the answer unambiguously.
    pub framing: Framing,
    /// Whether a cache answered. `None` if this is unknown.
    pub hit: Option<bool>,
}

/// Whether the header fields mark the end of the answer unambiguously.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The header fields mark one end.
    Plain,
    /// The answer has both Content-Length and Transfer-Encoding, which readers may interpret
    /// differently (RFC 9112 §6.3).
    Ambiguous,
}

impl Answer {
    /// Returns the status and the body digest, which together are the answer as a user sees it.
    pub const fn fingerprint(&self) -> Fingerprint {
        Fingerprint { status: self.status, digest: self.digest }
    }

    /// Returns the fingerprint and the validators. The validators name the version of the resource.
    pub fn version(&self) -> Version {
        Version {
            print: self.fingerprint(),
            validators: Some(verdict::fields::version(&self.headers)),
        }
    }
}
