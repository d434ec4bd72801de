//! LEAP (seed 002) compares proxies by sending each request to all of them. The Multiplier (§2.2;
//! R105–R113) sends a copy of each request on every path, times the answers and compares them.
//! `front` accepts requests from clients. The `collector` is the parent of the proxies.

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

/// How a path receives requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// A forward proxy: absolute form.
    Forward,
    /// A reverse proxy or the Collector: origin form.
    Reverse,
    /// The server that the request names, if its address is near: origin form.
    Named,
    /// The origin itself: origin form. Its answer is the reference for the other paths.
    Direct,
}

/// A server that receives a copy of every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Name in logs, tables and records.
    pub name: String,
    /// Address of the server.
    pub address: SocketAddr,
    /// How this server receives requests.
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

/// When requests start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeapPace {
    /// This many requests at a time. The next request starts when one has ended on every path.
    Closed(usize),
    /// A fixed number of requests per second.
    Rate(f64),
    /// At the recorded times, sped up by this factor.
    Recorded(f64),
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct LeapRun {
    /// The servers that receive every request. At most one is [`Manner::Direct`].
    pub paths: Vec<Path>,
    /// Start times.
    pub pace: LeapPace,
    /// Delay between two copies of a request (R108).
    pub stagger: Duration,
    /// Time limit of an answer.
    pub time_limit: Duration,
    /// Largest number of unfinished requests. Further requests are refused and counted (R107).
    pub most_in_flight: usize,
    /// Numbers that the verifying origin repeats in answers, which reveals hits. `None` sends no
    /// numbers.
    pub numbers: Option<Numbers>,
    /// TLS and protocol of copies.
    pub outgoing: Outgoing,
    /// Whether connections are reused.
    pub connections: Connections,
    /// Random seed for the bootstrap confidence intervals.
    pub seed: u64,
    /// Pairs of paths to equally configured proxies. Differences within a pair are noise.
    pub alike: Vec<(usize, usize)>,
    /// Records the requested URLs. A Collector needs them to recognise prefetches.
    pub wanted: Option<Arc<Wanted>>,
    /// Once set, no more requests start.
    pub interrupted: Arc<AtomicBool>,
}

impl LeapRun {
    /// Default options: one request at a time, new HTTP/1 connections, a time limit of one minute,
    /// seed 1.
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
    /// Length of the body: content codings included, chunk framing excluded.
    pub length: u64,
    /// Digest of the body, decoded where possible.
    pub digest: u128,
    /// What was done with the content coding.
    pub decoding: Decoding,
    /// Whether the end of the answer is unambiguous.
    pub framing: Framing,
    /// Whether a cache answered, if this is known.
    pub hit: Option<bool>,
}

/// Whether the header fields fix the end of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The end is unambiguous.
    Plain,
    /// The answer has both Content-Length and Transfer-Encoding, which readers may interpret
    /// differently (RFC 9112 §6.3).
    Ambiguous,
}

impl Answer {
    /// Status and body digest: the answer as a user sees it.
    pub const fn fingerprint(&self) -> Fingerprint {
        Fingerprint { status: self.status, digest: self.digest }
    }

    /// The fingerprint together with the validators, which name the version.
    pub fn version(&self) -> Version {
        Version {
            print: self.fingerprint(),
            validators: Some(verdict::fields::version(&self.headers)),
        }
    }
}
