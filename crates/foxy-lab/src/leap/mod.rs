//! LEAP (seed 002): compares proxies by sending each request to all of them. The Multiplier (§2.2;
//! R105–R113) sends the copies of a stream's or a client's (`front`) request, times and digests the
//! answers, and judges them beside each other. The `collector` is the proxies' parent.

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

/// The form of requests on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// A forward proxy: absolute form.
    Forward,
    /// A reverse proxy: origin form.
    Reverse,
    /// The server that the request names, at a near address: origin form.
    Named,
    /// The origin itself: origin form. Its answer is the reference.
    Direct,
}

/// A server that gets every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Name in logs, tables and records.
    pub name: String,
    /// Address of the server.
    pub address: SocketAddr,
    /// Form of requests.
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

/// The start times of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeapPace {
    /// This many at a time; the next starts when one has ended on every path.
    Closed(usize),
    /// Fixed rate per second.
    Rate(f64),
    /// As recorded, sped up by this factor.
    Recorded(f64),
}

/// Options of a run.
#[derive(Clone, Debug)]
pub struct LeapRun {
    /// Receivers of every request; at most one is [`Manner::Direct`].
    pub paths: Vec<Path>,
    /// Start times.
    pub pace: LeapPace,
    /// Delay between the copies of a request (R108).
    pub stagger: Duration,
    /// Time limit of an answer.
    pub time_limit: Duration,
    /// Largest number of requests in flight. Requests beyond are refused and counted (R107).
    pub most_in_flight: usize,
    /// Request numbers, by which the verifying origin's answers reveal hits; `None` sends none.
    pub numbers: Option<Numbers>,
    /// TLS and protocol of copies.
    pub outgoing: Outgoing,
    /// Whether connections are kept.
    pub connections: Connections,
    /// Seed of the bootstrap intervals.
    pub seed: u64,
    /// Pairs of paths whose proxies are set up alike; their differences are noise.
    pub alike: Vec<(usize, usize)>,
    /// Records the requested URLs, so that a Collector can tell prefetches.
    pub wanted: Option<Arc<Wanted>>,
    /// Once set, no more requests begin.
    pub interrupted: Arc<AtomicBool>,
}

impl LeapRun {
    /// Defaults: one request at a time, new HTTP/1 connections, a minute's patience, seed 1.
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

/// A whole answer with a digest of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: Headers,
    /// Body length with content codings, without chunk framing.
    pub length: u64,
    /// Digest of the body, decoded where possible.
    pub digest: u128,
    /// Treatment of the content coding.
    pub decoding: Decoding,
    /// Whether the end is unambiguous.
    pub framing: Framing,
    /// Whether the proxy's cache answered, if known.
    pub hit: Option<bool>,
}

/// The framing of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// In one way.
    Plain,
    /// Both Content-Length and Transfer-Encoding, which readers may resolve differently (RFC 9112
    /// §6.3).
    Ambiguous,
}

impl Answer {
    /// Status and body: the answer as a user sees it.
    pub const fn fingerprint(&self) -> Fingerprint {
        Fingerprint { status: self.status, digest: self.digest }
    }

    /// The fingerprint and the version that the validators name.
    pub fn version(&self) -> Version {
        Version {
            print: self.fingerprint(),
            validators: Some(verdict::fields::version(&self.headers)),
        }
    }
}
