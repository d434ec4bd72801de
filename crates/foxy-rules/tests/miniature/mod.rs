//! A miniature cache for tests: combines the rules as a real cache does, but in virtual time. It
//! has no rules of its own, no sockets and no store. Messages arrive whole, one after another. It
//! does not join parts of a response. It answers a request for several ranges with the whole body.

mod entry;
mod message;

pub use entry::Entry;
pub use message::{Lines, Request, Response};

use foxy_base::WallTime;
use foxy_rules::invalidate::also_invalidated;
use foxy_rules::reuse::{may_reuse, may_reuse_after};
use foxy_rules::storable::Exchange;
use foxy_rules::validate::{is_about, must_reach_origin};
use foxy_rules::{
    Failure, Fields, HeadSays, NotStoredReason, Part, Permit, Policy, RequestControl, Reuse,
    Storability, StoredTimes, UpstreamRange, head_says, invalidates, storability, upstream_range,
};
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A fresh response from the cache.
    Fresh,
    /// A stale response from the cache, with the reason that permits it.
    Stale(Permit),
    /// A response from the cache, after the origin confirmed it.
    Confirmed,
    /// A response from the origin.
    Origin,
    /// An error from the cache, because the origin sent no response or must not be asked.
    Nobody,
}

/// The answer that a client receives.
#[derive(Clone, Debug)]
pub struct Answer {
    pub source: Source,
    pub response: Response,
}

impl Answer {
    fn error(status: u16) -> Self {
        let response = Response { status, fields: Lines::default(), body: Vec::new() };
        Self { source: Source::Nobody, response }
    }
}

/// The origin's response and its delay in seconds. `None` if the origin is unreachable.
pub type Came = Option<(Response, u64)>;

pub struct Miniature {
    policy: Policy,
    entries: HashMap<Vec<u8>, Vec<Entry>>,
    parts: HashMap<Vec<u8>, Entry>,
}

impl Miniature {
    /// Creates an empty cache.
    pub fn new(policy: Policy) -> Self {
        Self { policy, entries: HashMap::new(), parts: HashMap::new() }
    }

    /// Returns the stored response that matches a request.
    pub fn find(&self, request: &Request) -> Option<&Entry> {
        self.entries.get(&request.key())?.iter().rev().find(|entry| entry.fits(&request.fields))
    }

    /// Answers a request that arrives at the time `now`. Asks `origin` if necessary.
    pub fn answer(
        &mut self,
        now: WallTime,
        request: &Request,
        origin: &mut dyn FnMut(&Request) -> Came,
    ) -> Answer {
        let get = request.method == "GET";
        if (!get && request.method != "HEAD") || must_reach_origin(&request.fields) {
            return self.pass(now, request, None, origin);
        }
        let control = RequestControl::of(&request.fields);
        let found = self.find(request).cloned();
        match found.as_ref().map(|entry| (entry, may_reuse(&control, entry.facts(), now))) {
            Some((entry, Reuse::Fresh { .. })) => return entry.answer(request, now, Source::Fresh),
            Some((entry, Reuse::Stale { permit, .. })) => {
                if permit == Permit::WhileRevalidate {
                    self.fetch(now, request, Some(entry), origin);
                }
                return entry.answer(request, now, Source::Stale(permit));
            }
            _ if control.only_if_cached => return Answer::error(504),
            _ => {}
        }
        let validates = found.as_ref().is_some_and(Entry::can_be_validated);
        let range = request.fields.single("range").map(upstream_range);
        if get && !validates && range.is_some_and(|range| range != UpstreamRange::Whole) {
            let answer = self.answer_from_part(now, request, &control);
            return answer.unwrap_or_else(|| self.pass(now, request, None, origin));
        }
        if get {
            self.fetch(now, request, found.as_ref(), origin)
        } else {
            self.pass(now, request, found.as_ref(), origin)
        }
    }

    fn answer_from_part(
        &self,
        now: WallTime,
        request: &Request,
        control: &RequestControl,
    ) -> Option<Answer> {
        if request.fields.has("if-none-match") || request.fields.has("if-modified-since") {
            return None;
        }
        let entry = self.parts.get(&request.key())?;
        match may_reuse(control, entry.facts(), now) {
            Reuse::Fresh { .. } => entry.answer_within(request, now, Source::Fresh),
            Reuse::Stale { permit: Permit::WhileRevalidate, .. } | Reuse::Revalidate(_) => None,
            Reuse::Stale { permit, .. } => entry.answer_within(request, now, Source::Stale(permit)),
        }
    }

    /// Fetches the response with a GET of the cache's own. If the entry `stale` has a validator,
    /// the GET validates it.
    fn fetch(
        &mut self,
        now: WallTime,
        request: &Request,
        stale: Option<&Entry>,
        origin: &mut dyn FnMut(&Request) -> Came,
    ) -> Answer {
        let asked_about = stale.filter(|entry| entry.can_be_validated());
        let came = origin(&request.for_cache(asked_about.map(|entry| &entry.fields)));
        let failure =
            came.as_ref().map_or(Failure::Unreachable, |(said, _)| Failure::Status(said.status));
        if let Some(stood_in) = stale.and_then(|entry| after(failure, entry, request, now)) {
            return stood_in;
        }
        let Some((response, seconds)) = came else { return Answer::error(502) };
        let times = times(&response, now, seconds);
        if let Some(entry) = asked_about.filter(|_| response.status == 304) {
            if is_about(&response.fields, &entry.fields) {
                let fresh = self.confirmed(entry, request, &response.fields, times);
                return fresh.answer(request, times.received, Source::Confirmed);
            }
            self.forget(entry);
            return self.fetch(now, request, None, origin);
        }
        let entry = Entry::new(request, response, times, self.policy);
        if self.verdict("GET", &entry) == Storability::Store {
            self.keep(entry.clone());
        }
        entry.pass_on(request)
    }

    /// Forwards a request unchanged. The response to a HEAD may update the entry `described`. The
    /// cache may store the response to a POST, or a partial response (206).
    fn pass(
        &mut self,
        now: WallTime,
        request: &Request,
        described: Option<&Entry>,
        origin: &mut dyn FnMut(&Request) -> Came,
    ) -> Answer {
        let Some((response, seconds)) = origin(request) else {
            let stood_in =
                described.and_then(|entry| after(Failure::Unreachable, entry, request, now));
            return stood_in.unwrap_or_else(|| Answer::error(502));
        };
        if invalidates(&request.method, response.status) {
            self.invalidate(&request.key(), &response.fields);
        }
        let times = times(&response, now, seconds);
        if let Some(entry) = described.filter(|entry| entry.status == 200 && response.status == 200)
        {
            match head_says(&response.fields, &entry.fields, entry.body.len() as u64) {
                HeadSays::Same => drop(self.confirmed(entry, request, &response.fields, times)),
                HeadSays::Another => self.forget(entry),
                HeadSays::Nothing => {}
            }
        }
        let entry = Entry::new(request, response.clone(), times, self.policy);
        match (request.method.as_str(), response.status) {
            ("POST", 200) if self.verdict("POST", &entry) == Storability::Store => self.keep(entry),
            ("GET", 206) if !must_reach_origin(&request.fields) => self.keep_part(entry),
            _ => {}
        }
        Answer { source: Source::Origin, response }
    }

    fn invalidate(&mut self, key: &[u8], answer: &Lines) {
        let others = also_invalidated(answer, &String::from_utf8_lossy(key));
        for key in [key.to_vec()].into_iter().chain(others.into_iter().map(String::into_bytes)) {
            self.entries.remove(&key);
            self.parts.remove(&key);
        }
    }

    /// Returns the entry, updated with the fields of a response that confirms it. Stores the
    /// updated entry if the rules allow it.
    fn confirmed(
        &mut self,
        stored: &Entry,
        request: &Request,
        answer: &Lines,
        times: StoredTimes,
    ) -> Entry {
        let fresh = stored.freshened(request, answer, times, self.policy);
        match self.verdict("GET", &fresh) {
            Storability::Store => self.keep(fresh.clone()),
            // If only this request forbids storing, the earlier entry stays.
            Storability::DoNotStore(
                NotStoredReason::Authorization | NotStoredReason::RequestNoStore,
            ) => {}
            Storability::DoNotStore(_) => self.forget(stored),
        }
        fresh
    }

    fn verdict(&self, method: &str, entry: &Entry) -> Storability {
        storability(Exchange {
            method,
            target: &entry.request.key(),
            request: &entry.request.fields,
            status: entry.status,
            response: &entry.fields,
            received: entry.times.received,
            policy: self.policy,
        })
    }

    fn keep(&mut self, entry: Entry) {
        self.forget(&entry);
        self.entries.entry(entry.request.key()).or_default().push(entry);
    }

    /// Stores a part, if the rules would allow storing the whole body. The part must have the
    /// length that it states, and no Vary.
    fn keep_part(&mut self, entry: Entry) {
        let sound =
            Part::of(&entry.fields).is_some_and(|part| part.length() == entry.body.len() as u64);
        let mut whole = entry.clone();
        whole.status = 200;
        if sound && !entry.fields.has("vary") && self.verdict("GET", &whole) == Storability::Store {
            self.parts.insert(entry.request.key(), entry);
        }
    }

    /// Removes all entries that answer the same requests as `entry`.
    fn forget(&mut self, entry: &Entry) {
        if let Some(entries) = self.entries.get_mut(&entry.request.key()) {
            entries.retain(|other| !other.fits(&entry.request.fields));
        }
    }
}

/// Returns the stale response of an entry after the origin failed, or `None` if no rule permits it.
fn after(failure: Failure, entry: &Entry, request: &Request, now: WallTime) -> Option<Answer> {
    let control = RequestControl::of(&request.fields);
    let (_, permit) = may_reuse_after(failure, &control, entry.facts(), now)?;
    Some(entry.answer(request, now, Source::Stale(permit)))
}

/// Returns the times of a response that was requested at `now` and arrived `seconds` seconds later.
fn times(response: &Response, now: WallTime, seconds: u64) -> StoredTimes {
    StoredTimes::new(&response.fields, now, WallTime::from_seconds(now.seconds() + seconds))
}
