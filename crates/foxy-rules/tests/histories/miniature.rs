//! A cache in miniature: the rules put together as a cache does, in virtual time, with texts for messages. It has no
//! bodies, no sockets and no store; a body is the number of the exchange that brought it.

use foxy_base::WallTime;
use foxy_rules::freshness::lifetime;
use foxy_rules::invalidate::also_invalidated;
use foxy_rules::reuse::{Stored, may_reuse_after, may_reuse_under};
use foxy_rules::storable::Exchange;
use foxy_rules::validate::is_about;
use foxy_rules::{
    Failure, Fields, Permit, RequestControl, ResponseControl, Reuse, Role, Storability, StoredTimes,
    Validators, Vary, cache_key, invalidates, merges_into_stored, storability,
};
use std::collections::HashMap;

/// When virtual time begins, in seconds since 1970: `Sun, 06 Nov 1994 08:49:37 GMT`.
pub const START: u64 = 784_111_777;

/// Header lines.
#[derive(Clone, Debug, Default)]
pub struct Lines(pub Vec<(String, String)>);

impl Fields for Lines {
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let lines = self.0.iter().filter(move |(field, _)| field.eq_ignore_ascii_case(name));
        lines.map(|(_, value)| value.as_bytes())
    }
}

/// A message: its first line in words, and its header lines.
fn message(text: &str) -> (Vec<&str>, Lines) {
    let mut lines = text.lines().map(str::trim);
    let words = lines.next().unwrap_or("").split(' ').collect();
    let fields = lines.filter_map(|line| line.split_once(": "));
    (words, Lines(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()))
}

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

/// A stored response.
pub struct Entry {
    pub url: String,
    pub request: Lines,
    pub fields: Lines,
    pub control: ResponseControl,
    pub lifetime: u64,
    pub times: StoredTimes,
    pub body: usize,
    status: u16,
    vary: Vary,
}

impl Entry {
    pub fn facts(&self) -> Stored<'_> {
        Stored { control: &self.control, lifetime: self.lifetime, times: self.times }
    }
}

/// The cache.
pub struct Miniature {
    role: Role,
    exchanges: usize,
    entries: HashMap<Vec<u8>, Vec<Entry>>,
}

impl Miniature {
    /// An empty one.
    pub fn new(role: Role) -> Self {
        Self { role, exchanges: 0, entries: HashMap::new() }
    }

    /// The stored response for a key and a request's fields.
    pub fn find(&self, key: &[u8], request: &Lines) -> Option<&Entry> {
        let entries = self.entries.get(key)?;
        entries.iter().rev().find(|entry| entry.vary.key(request) == entry.vary.key(&entry.request))
    }

    /// Asks at `at` seconds after the start. `request` is `METHOD URL` and header lines; `says` is what the origin would
    /// say, `STATUS` and header lines, or nothing when it is out of reach.
    pub fn ask(&mut self, at: u64, request: &str, says: &str) -> Saw {
        let now = WallTime::from_seconds(START + at);
        let (words, fields) = message(request);
        let (method, url) = (words[0], words[1]);
        let key = key_of(url);
        let exchange = self.exchanges;
        self.exchanges += 1;
        if method != "GET" {
            self.pass(method, &key, says);
            return if says.is_empty() { Saw::Nothing } else { Saw::Origin };
        }
        let control = RequestControl::of(&fields);
        let found =
            self.find(&key, &fields).map(|entry| (entry.body, may_reuse_under(&control, entry.facts(), now)));
        match found {
            Some((body, Reuse::Fresh { .. })) => return Saw::Fresh(body),
            Some((body, Reuse::Stale { permit, .. })) => {
                if permit == Permit::WhileRevalidate {
                    self.fetch(exchange, now, url, &fields, says);
                }
                return Saw::Stale(body, permit);
            }
            _ if control.only_if_cached => return Saw::Nothing,
            _ => {}
        }
        self.fetch(exchange, now, url, &fields, says)
    }

    fn pass(&mut self, method: &str, key: &[u8], says: &str) {
        let (words, answer) = message(says);
        if words[0].parse().is_ok_and(|status| invalidates(method, status)) {
            self.entries.remove(key);
            for other in also_invalidated(&answer, &String::from_utf8_lossy(key)) {
                self.entries.remove(other.as_bytes());
            }
        }
    }

    fn fetch(&mut self, exchange: usize, now: WallTime, url: &str, request: &Lines, says: &str) -> Saw {
        let key = key_of(url);
        let (words, answer) = message(says);
        let status: Option<u16> = words[0].parse().ok();
        let failure = status.map_or(Failure::Unreachable, Failure::Status);
        if let Some(entry) = self.find(&key, request) {
            let after = may_reuse_after(failure, &RequestControl::of(request), entry.facts(), now);
            if let Some((_, permit)) = after {
                return Saw::Stale(entry.body, permit);
            }
            let asked = !Validators::of(&entry.fields).is_empty();
            if status == Some(304) && asked && is_about(&answer, &entry.fields) {
                let mut fields = entry.fields.clone();
                for (name, value) in answer.0.iter().filter(|(name, _)| merges_into_stored(name, &answer)) {
                    fields.0.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
                    fields.0.push((name.clone(), value.clone()));
                }
                let (body, status) = (entry.body, entry.status);
                let times = StoredTimes::new(&answer, now, now);
                self.store(url, request, status, fields, times, body);
                return Saw::Confirmed(body);
            }
        }
        let Some(status) = status else { return Saw::Nothing };
        let times = StoredTimes::new(&answer, now, now);
        self.store(url, request, status, answer, times, exchange);
        Saw::Origin
    }

    fn store(
        &mut self,
        url: &str,
        request: &Lines,
        status: u16,
        fields: Lines,
        times: StoredTimes,
        body: usize,
    ) {
        let (role, received) = (self.role, times.received);
        let verdict = storability(Exchange {
            method: "GET",
            target: url.as_bytes(),
            request,
            status,
            response: &fields,
            received,
            policy: role.into(),
        });
        if verdict != Storability::Store {
            return;
        }
        let control = ResponseControl::for_role(&fields, role);
        let lifetime = lifetime(status, &fields, &control, 0, received, url.as_bytes()).seconds();
        let vary = Vary::of(&fields).expect("storable");
        let entries = self.entries.entry(key_of(url)).or_default();
        entries.retain(|entry| entry.vary.key(request) != entry.vary.key(&entry.request));
        let (url, request) = (url.to_owned(), request.clone());
        entries.push(Entry { url, request, fields, control, lifetime, times, body, status, vary });
    }
}

/// The cache key of a URL.
pub fn key_of(url: &str) -> Vec<u8> {
    let rest = url.strip_prefix("http://").expect("an http URL");
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    cache_key("http", authority.as_bytes(), path.as_bytes())
}
