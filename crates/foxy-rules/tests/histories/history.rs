//! The miniature asked in texts, for tests that are lists of texts. The body of an answer is the
//! number of the exchange that brought it.

use crate::miniature::{Entry, Lines, Miniature, Request, Response, Source};
use foxy_base::WallTime;
use foxy_rules::{Permit, Role};

/// When virtual time begins, in seconds since 1970: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const START: u64 = 784_111_777;

/// What a client got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saw {
    /// That exchange's body, from the cache, fresh.
    Fresh(usize),
    /// The same, stale, and what allowed it.
    Stale(usize, Permit),
    /// The same, after the origin confirmed it.
    Confirmed(usize),
    /// What the origin said now; this exchange's body.
    Origin,
    /// Nothing: the origin gave no answer, or was not to be asked.
    Nothing,
}

/// A message: its first line in words, and its header lines.
fn message(text: &str) -> (Vec<&str>, Lines) {
    let mut lines = text.lines().map(str::trim);
    let words = lines.next().unwrap_or("").split(' ').collect();
    let fields = lines.filter_map(|line| line.split_once(": "));
    (words, Lines(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
}

/// A request: `METHOD URL` and header lines.
pub fn request(text: &str) -> Request {
    let (words, fields) = message(text);
    Request { method: words[0].to_owned(), url: words[1].to_owned(), fields }
}

/// The number of the exchange that brought a body.
pub fn exchange_of(body: &[u8]) -> usize {
    std::str::from_utf8(body).ok().and_then(|text| text.parse().ok()).expect("a number")
}

/// A cache and what it was asked.
pub struct History {
    cache: Miniature,
    exchanges: usize,
}

impl History {
    /// One that begins with an empty cache.
    pub fn new(role: Role) -> Self {
        Self { cache: Miniature::new(role.into()), exchanges: 0 }
    }

    /// The stored response that fits a request.
    pub fn find(&self, request: &Request) -> Option<&Entry> {
        self.cache.find(request)
    }

    /// Asks at `at` seconds after the start. `request` is `METHOD URL` and header lines; `says` is
    /// what the origin would say, `STATUS` and header lines, or nothing when it is out of reach.
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
