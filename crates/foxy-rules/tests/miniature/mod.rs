//! A cache in miniature: the rules put together as a cache does, in virtual time. It has no
//! decisions of its own, no sockets and no store; messages come whole and one after the other.
//! Parts of one response are not joined, and several ranges are answered with the whole.

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

/// Where an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The cache, fresh.
    Fresh,
    /// The cache, stale, and what allowed it.
    Stale(Permit),
    /// The cache, after the origin confirmed it.
    Confirmed,
    /// The origin.
    Origin,
    /// The cache, with an error: the origin gave no answer, or was not to be asked.
    Nobody,
}

/// What a client gets.
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

/// What the origin answers, and after how many seconds; `None` when it is out of reach.
pub type Came = Option<(Response, u64)>;

/// The cache.
pub struct Miniature {
    policy: Policy,
    entries: HashMap<Vec<u8>, Vec<Entry>>,
    parts: HashMap<Vec<u8>, Entry>,
}

impl Miniature {
    /// An empty one.
    pub fn new(policy: Policy) -> Self {
        Self { policy, entries: HashMap::new(), parts: HashMap::new() }
    }

    /// The stored response that fits a request.
    pub fn find(&self, request: &Request) -> Option<&Entry> {
        self.entries.get(&request.key())?.iter().rev().find(|entry| entry.fits(&request.fields))
    }

    /// Answers a request that comes at `now`, and asks `origin` when it must.
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

    /// Sends a GET of the cache's own, about what is `stale` if it can be asked about.
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

    /// Sends a request on as it is. The answer may tell something of what is `described`, or be
    /// kept beside the way.
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

    /// What is stored, with the fields of an answer that confirmed it, kept if it may be.
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
            // Only this request forbids it.
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

    /// Keeps a part as its whole would be, if it is as long as it says and no request field chose
    /// it.
    fn keep_part(&mut self, entry: Entry) {
        let sound =
            Part::of(&entry.fields).is_some_and(|part| part.length() == entry.body.len() as u64);
        let mut whole = entry.clone();
        whole.status = 200;
        if sound && !entry.fields.has("vary") && self.verdict("GET", &whole) == Storability::Store {
            self.parts.insert(entry.request.key(), entry);
        }
    }

    /// Lets go what answers the requests that an entry answers.
    fn forget(&mut self, entry: &Entry) {
        if let Some(entries) = self.entries.get_mut(&entry.request.key()) {
            entries.retain(|other| !other.fits(&entry.request.fields));
        }
    }
}

/// The answer of a stored response in the place of an origin that failed, if something allows it.
fn after(failure: Failure, entry: &Entry, request: &Request, now: WallTime) -> Option<Answer> {
    let control = RequestControl::of(&request.fields);
    let (_, permit) = may_reuse_after(failure, &control, entry.facts(), now)?;
    Some(entry.answer(request, now, Source::Stale(permit)))
}

/// The times of a response that was asked for at `now` and came after that many seconds.
fn times(response: &Response, now: WallTime, seconds: u64) -> StoredTimes {
    StoredTimes::new(&response.fields, now, WallTime::from_seconds(now.seconds() + seconds))
}
