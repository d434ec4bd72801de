//! What an answer without a body does to what is stored: new header fields from a 304 and from a
//! 200 to HEAD.

use crate::cache::stored::{CacheKey, Stored};
use crate::cache::watch::Watch;
use crate::core::fields::View;
use crate::core::waiting::HeldBytes;
use crate::fill::storability::why_not_storable;
use crate::fill::times::Times;
use crate::upstream::UpstreamError;
use crate::worker::Worker;
use foxy_base::clock;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::reuse::may_reuse_after;
use foxy_rules::{
    Failure, HeadSays, NotStoredReason, Permit, Policy, RequestControl, Vary, head_says,
    merges_into_stored,
};
use std::sync::Arc;

/// What is stored while the origin is asked about it.
#[derive(Clone)]
pub(crate) struct Described {
    /// The URL's key.
    pub(crate) base: CacheKey,
    pub(crate) stored: Arc<Stored>,
    pub(crate) key: CacheKey,
    pub(crate) watch: Watch,
    /// The room its body takes.
    pub(crate) _held: Arc<HeldBytes>,
}

impl Described {
    /// What is stored with the fields of an answer that confirmed it (RFC 9111 §3.2), kept if it
    /// may be, and why not if it is not. What the answer forbids to store is let go; where only
    /// this request forbids it, what is stored stays as it was. `times` are those of the request
    /// and of its answer.
    pub(crate) fn confirmed(
        &self,
        worker: &Worker,
        request: &Headers,
        answer: &ResponseHead,
        times: Times,
    ) -> (Arc<Stored>, Option<NotStoredReason>) {
        let policy = worker.settings().policy();
        let fresh = Arc::new(freshened(&self.stored, answer, policy, times));
        let seen = (fresh.head.status, &fresh.head.headers);
        let not_stored = why_not_storable(worker, &self.base, ("GET", request), seen, times.civil);
        let cache = &worker.shared.cache;
        let varies = |headers: &Headers| Vary::of(&View(headers)).ok();
        let varies_otherwise = answer.headers.contains("vary")
            && varies(&answer.headers) != varies(&self.stored.head.headers);
        match not_stored {
            // For which requests it is good is no longer what it is stored for.
            None if varies_otherwise => cache.outdate(&self.base, &self.key, &self.watch),
            None => {
                cache.add(&self.base, &self.key, &fresh, None, self.watch.found(), &worker.counters)
            }
            Some(NotStoredReason::Authorization | NotStoredReason::RequestNoStore) => {}
            Some(_) => cache.outdate(&self.base, &self.key, &self.watch),
        }
        (fresh, not_stored)
    }

    /// What allows what is stored to answer `request` although its origin gave no answer, and for
    /// how many seconds it has been stale.
    pub(crate) fn permit_after(
        &self,
        error: UpstreamError,
        request: &Headers,
    ) -> Option<(u64, Permit)> {
        let control = RequestControl::of(&View(request));
        let permit =
            may_reuse_after(Failure::Unreachable, &control, self.stored.facts(), clock::steady());
        permit.filter(|_| error.is_the_origins())
    }

    /// Takes in the answer to a HEAD (§4.3.5): new fields, if it describes what is stored; if it
    /// describes something else, that is let go. One that does not tell changes nothing.
    pub(crate) fn seen(
        &self,
        worker: &Worker,
        request: &Headers,
        answer: &ResponseHead,
        times: Times,
    ) {
        if answer.status != 200 || self.stored.head.status != 200 {
            return;
        }
        let (fields, stored) = (View(&answer.headers), View(&self.stored.head.headers));
        match head_says(&fields, &stored, self.stored.length) {
            HeadSays::Same => drop(self.confirmed(worker, request, answer, times)),
            HeadSays::Another => worker.shared.cache.outdate(&self.base, &self.key, &self.watch),
            HeadSays::Nothing => {}
        }
    }
}

/// A stored response with the fields of an answer that said it is still good.
fn freshened(stale: &Stored, answer: &ResponseHead, policy: Policy, times: Times) -> Stored {
    let mut head = ResponseHead::clone(&stale.head);
    let view = View(&answer.headers);
    let mut seen: Vec<String> = Vec::new();
    for (name, value) in answer.headers.iter() {
        let lower = name.to_ascii_lowercase();
        if lower == "age" || lower == "via" || !merges_into_stored(name, &view) {
            continue;
        }
        if !seen.contains(&lower) {
            head.headers.remove(name);
            seen.push(lower);
        }
        head.headers.append(name, value);
    }
    let initial = times.stored(&view);
    Stored::new(stale.key.clone(), &head, policy, initial, stale.length, stale.body.clone())
}
