//! LEAP's Multiplier (seed 002, §2.2; R105–R113): each request goes to every proxy and, where there
//! is one, to the origin itself; the answers are timed, digested as they come and judged beside
//! each other. Requests come from a stream (`multiply`) or from clients (`front`). What stands
//! behind the proxies is their business: a Collector, or the origin.

pub mod collector;
mod exchange;
mod front;
mod multiplier;
mod report;
#[cfg(test)]
mod tests;
pub mod verdict;
mod wanted;

pub use exchange::body::Decoding;
pub use exchange::failure::PathFailure;
pub use exchange::kept::{Carriage, Connections};
pub use exchange::message::Message;
pub use exchange::outgoing::Outgoing;
pub use exchange::requests::{self, Asked};
pub use exchange::times::Times;
pub use front::{ClientReport, Front, FrontRefusal, serve};
pub use multiplier::means::Numbers;
pub use multiplier::multiply::run;
pub use multiplier::passthrough::{Multiplier, PASSTHROUGH, passing_through};
pub use report::class::Class;
pub use report::differences::{Meaning, NoiseFloor, PairedDifference, noise_floor, noise_floor_of};
pub use report::line::{self, Line};
pub use report::records::measurable;
pub use report::{Example, LeapReport, PathReport};
pub use verdict::Verdict;
pub use verdict::fields;
pub use verdict::unjudged::Unjudged;
pub use wanted::Wanted;

use collector::Reach;
use foxy_http::{Authority, Headers};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use verdict::{Fingerprint, Version};

/// How a path is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// A forward proxy: absolute form.
    Forward,
    /// A reverse proxy: origin form.
    Reverse,
    /// Whoever the request names, which must be a near address, not the path's own: origin form.
    Named,
    /// The origin itself: origin form. What it answers is the reference.
    Direct,
}

/// One of those that get every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Its name in logs, tables and records.
    pub name: String,
    /// Where it is.
    pub address: SocketAddr,
    /// How it is asked.
    pub manner: Manner,
}

impl Path {
    /// Where a request goes; none when it names no near address.
    fn address_for(&self, asked: &Asked) -> Option<SocketAddr> {
        if self.manner != Manner::Named {
            return Some(self.address);
        }
        let authority = Authority::parse(asked.authority.as_bytes())?;
        let found = Reach::Offline.literal(authority.host)?.ok()?;
        Some(SocketAddr::new(found, authority.port.unwrap_or(asked.scheme.default_port())))
    }
}

/// When requests begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// So many at a time, the next when one has ended on every path.
    Closed(usize),
    /// At a fixed rate a second.
    Rate(f64),
    /// As recorded, so many times as fast.
    Recorded(f64),
}

/// A replay as a value.
#[derive(Clone, Debug)]
pub struct LeapRun {
    /// Whom requests go to; at most one is [`Manner::Direct`].
    pub paths: Vec<Path>,
    /// When they begin.
    pub pace: Pace,
    /// How long after each other the copies of a request are sent (R108).
    pub stagger: Duration,
    /// After how long an answer counts as missing.
    pub time_limit: Duration,
    /// How many requests may be under way at once; one whose time comes beyond that is refused and
    /// counted (R107).
    pub most_in_flight: usize,
    /// The numbers that requests carry, by which the verifying origin's answers show hits; none
    /// where requests carry none.
    pub numbers: Option<Numbers>,
    /// How copies go out for what is asked for over TLS.
    pub outgoing: Outgoing,
    /// On which connections.
    pub connections: Connections,
    /// Seed of the intervals.
    pub seed: u64,
    /// Pairs of paths, by their places, whose proxies are the same program set up alike: what they
    /// differ by is noise, as with one address under two names.
    pub alike: Vec<(usize, usize)>,
    /// Where what is asked for is noted, so that a Collector knows what proxies ask for by
    /// themselves.
    pub wanted: Option<Arc<Wanted>>,
    /// Once set, no more requests begin.
    pub interrupted: Arc<AtomicBool>,
}

/// A whole answer, its body digested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: Headers,
    /// Length of the body, with content codings and without chunk framing.
    pub length: u64,
    /// Digest of the body, without a content coding that could be undone.
    pub digest: u128,
    /// Whether it could.
    pub decoding: Decoding,
    /// Whether its end is said in one way.
    pub framing: Framing,
    /// Whether it came from the proxy's cache, where that can be known.
    pub hit: Option<bool>,
}

/// How an answer says where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// In one way.
    Plain,
    /// With Content-Length and with Transfer-Encoding, so that two who read it may see two ends
    /// (RFC 9112 §6.3).
    Ambiguous,
}

impl Answer {
    /// What makes it the same to a user as another.
    pub const fn fingerprint(&self) -> Fingerprint {
        Fingerprint { status: self.status, digest: self.digest }
    }

    /// The same, and which version it says that it is.
    pub fn version(&self) -> Version {
        Version { print: self.fingerprint(), validators: Some(fields::version(&self.headers)) }
    }
}
