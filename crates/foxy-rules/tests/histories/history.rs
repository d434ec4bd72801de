//! Runs requests that are written as text against the miniature cache. A history is a sequence of
//! exchanges. The body of each response is the number of the exchange that fetched it.

use crate::miniature::{Entry, Lines, Miniature, Request, Response, Source};
use foxy_base::WallTime;
use foxy_rules::{Permit, Role};

/// Start of the virtual time in seconds since 1970, which is `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const START: u64 = 784_111_777;

/// The response that a client received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saw {
    /// The body that this exchange fetched, fresh from the cache.
    Fresh(usize),
    /// The cache answered with the stale body that this exchange had fetched. The reason permits
    /// the stale answer.
    Stale(usize, Permit),
    /// The cache answered with the body that this exchange had fetched, after the origin confirmed
    /// it.
    Confirmed(usize),
    /// The response of the origin to this request.
    Origin,
    /// An error, because the origin sent no response or must not be asked.
    Nothing,
}

/// Parses a message into the words of its first line and its header lines.
fn message(text: &str) -> (Vec<&str>, Lines) {
    let mut lines = text.lines().map(str::trim);
    let words = lines.next().unwrap_or("").split(' ').collect();
    let fields = lines.filter_map(|line| line.split_once(": "));
    (words, Lines(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
}

/// Parses a request: a line `METHOD URL`, then header lines.
pub fn request(text: &str) -> Request {
    let (words, fields) = message(text);
    Request { method: words[0].to_owned(), url: words[1].to_owned(), fields }
}

/// Returns the number of the exchange that fetched this body.
pub fn exchange_of(body: &[u8]) -> usize {
    std::str::from_utf8(body).ok().and_then(|text| text.parse().ok()).expect("a number")
}

/// A miniature cache, and the number of exchanges so far.
pub struct History {
    cache: Miniature,
    exchanges: usize,
}

impl History {
    /// Starts with an empty cache.
    pub fn new(role: Role) -> Self {
        Self { cache: Miniature::new(role.into()), exchanges: 0 }
    }

    /// Returns the stored response that matches a request.
    pub fn find(&self, request: &Request) -> Option<&Entry> {
        self.cache.find(request)
    }

    /// Sends a request `at` seconds after the start. `request` is `METHOD URL` and header lines.
    /// `says` is the origin's response: `STATUS` and header lines. Empty if the origin is
    /// unreachable.
    pub fn ask(&mut self, at: u64, request: &str, says: &str) -> Saw {
        let request = self::request(request);
        let (words, fields) = message(says);
        let body = self.exchanges.to_string().into_bytes();
        self.exchanges += 1;
        let said = words[0].parse().ok().map(|status| (Response { status, fields, body }, 0));
        let now = WallTime::from_seconds(START + at);
        let answer = self.cache.answer(now, &request, &mut |_| said.clone());
        let body = || exchange_of(&answer.response.body);
        match answer.source {
            Source::Fresh => Saw::Fresh(body()),
            Source::Stale(permit) => Saw::Stale(body(), permit),
            Source::Confirmed => Saw::Confirmed(body()),
            Source::Origin => Saw::Origin,
            Source::Nobody => Saw::Nothing,
        }
    }
}
