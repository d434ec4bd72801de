//! A stored response that the proxy may not serve before the origin has validated it. This module
//! decides when the proxy may serve the response without validation. It also updates the response
//! from a 304 or from the answer to a HEAD.

use crate::cache::{CacheKey, Found, Placement, Stored, StoredBody, VaryList, Watch};
use crate::core::byte_budget::{ByteBudget, HeldBytes};
use crate::core::{ForwardReason, View};
use crate::fill::request::{Times, why_not_storable};
use crate::flight::FlightOutcome;
use crate::request::Hit;
use crate::upstream::UpstreamError;
use crate::worker::Worker;
use foxy_base::{WallTime, clock};
use foxy_http::{Headers, ResponseHead};
use foxy_rules::reuse::may_reuse_after;
use foxy_rules::{
    Failure, HeadSays, NotStoredReason, Policy, RequestControl, Vary, head_says, merges_into_stored,
};
use std::sync::Arc;

/// A stored response that needs the origin's confirmation, or may be served if the origin fails.
#[derive(Clone)]
pub(crate) struct Stale {
    pub(crate) stored: Arc<Stored>,
    pub(crate) key: CacheKey,
    /// True if the request to the origin contains the validators (ETag, Last-Modified) of this
    /// response.
    pub(crate) validate: bool,
    /// The memory that is reserved for the body. `None` means that the body was dropped, because
    /// the budget had no space.
    held: Option<Arc<HeldBytes>>,
}

impl Stale {
    /// Keeps a stored response in memory while the proxy contacts the origin. If the memory budget
    /// `waiting` has no space for the body, drops the body. The response can then no longer be
    /// validated or served. A new response can still replace it.
    pub(crate) fn hold(
        waiting: &ByteBudget,
        stored: Arc<Stored>,
        key: CacheKey,
        validate: bool,
    ) -> Self {
        let held = match &stored.body {
            StoredBody::Whole(body) => waiting.take(body.len()).map(Arc::new),
            StoredBody::Parts { .. } => waiting.take(0).map(Arc::new),
        };
        if held.is_some() {
            return Self { stored, key, validate, held };
        }
        Self { stored: Arc::new(stored.without_body()), key, validate: false, held }
    }

    pub(crate) fn pending_update(self, base: CacheKey, watch: Watch) -> Option<PendingUpdate> {
        let Self { stored, key, held, .. } = self;
        Some(PendingUpdate { base, stored, key, watch, _held: held? })
    }

    /// Decides whether the stored response may answer `request` because the origin failed. `status`
    /// is the status of the failure, or `None` if the origin did not answer.
    pub(crate) fn hit_after(
        &self,
        status: Option<u16>,
        request: &Headers,
        now: WallTime,
    ) -> Option<Hit> {
        self.held.as_ref()?;
        hit_after(&self.stored, status, request, now)
    }
}

/// Decides whether a stored response may answer `request` because the origin failed. `status` is
/// the status of the failure, or `None` if the origin did not answer.
pub(crate) fn hit_after(
    stored: &Stored,
    status: Option<u16>,
    request: &Headers,
    now: WallTime,
) -> Option<Hit> {
    let failure = status.map_or(Failure::Unreachable, Failure::Status);
    let control = RequestControl::of(&View(request));
    let (stale_by, permit) = may_reuse_after(failure, &control, stored.facts(), now)?;
    Some(Hit::fallback(status, stale_by, permit))
}

/// A request that the cache cannot answer alone, and what the look-up found.
pub(crate) struct Miss {
    pub(crate) reason: ForwardReason,
    pub(crate) list: Option<VaryList>,
    pub(crate) stale: Option<Stale>,
    pub(crate) watch: Watch,
}

impl Miss {
    /// Creates a miss, for a request that the cache cannot answer alone. If `validate` is true, the
    /// proxy asks the origin to confirm the response that the look-up found.
    pub(crate) fn new(
        waiting: &ByteBudget,
        base: &CacheKey,
        found: Found,
        reason: ForwardReason,
        validate: bool,
        watch: Watch,
    ) -> Self {
        let is_unknown = matches!(found, Found::Unknown);
        let (list, stale) = match found {
            Found::Response(stored, key) => {
                let list = list_of(base, &stored, &key).filter(|_| !stored.is_from_cold());
                (list, Some(Stale::hold(waiting, stored, key, validate)))
            }
            Found::Varies(list) => (Some(list), None),
            Found::Nothing | Found::Unknown => (None, None),
        };
        let watch = watch.renewing(stale.is_some() || is_unknown);
        Self { reason, list, stale, watch }
    }

    pub(crate) fn of_lost_body(watch: Watch) -> Self {
        Self { reason: ForwardReason::UriMiss, list: None, stale: None, watch }
    }

    pub(crate) fn validates(&self) -> bool {
        self.stale.as_ref().is_some_and(|stale| stale.validate)
    }

    /// Returns the Vary list that the look-up found. Returns `None` if a write since the look-up
    /// may have replaced the list.
    pub(crate) fn list_in_force(&self) -> Option<&VaryList> {
        self.list.as_ref().filter(|_| !self.watch.late)
    }

    pub(crate) fn pending_update(self, base: &CacheKey) -> Option<PendingUpdate> {
        let (base, watch) = (base.clone(), self.watch);
        self.stale?.pending_update(base, watch)
    }

    /// Returns the stored response if it may answer `request`, after a flight (shared fetch) ended
    /// with `outcome`.
    pub(crate) fn as_hit_after(
        &self,
        request: &Headers,
        outcome: &FlightOutcome,
    ) -> Option<(&Arc<Stored>, Hit)> {
        let status = match outcome {
            FlightOutcome::Failed(error) if error.is_the_origins() => None,
            FlightOutcome::Response(flight) => Some(flight.head.status),
            FlightOutcome::Failed(_)
            | FlightOutcome::Revalidated(..)
            | FlightOutcome::Unconfirmed => return None,
        };
        let stale = self.stale.as_ref()?;
        Some((&stale.stored, stale.hit_after(status, request, clock::steady())?))
    }
}

/// Returns the Vary list that led the look-up to the stored variant `stored`.
pub(crate) fn list_of(base: &CacheKey, stored: &Stored, key: &CacheKey) -> Option<VaryList> {
    base.list_of(key, Vary::of(&View(&stored.head.headers)).ok()?)
}

/// A stored response that an answer without a body (a 304, or the answer to a HEAD) may update.
#[derive(Clone)]
pub(crate) struct PendingUpdate {
    pub(crate) base: CacheKey,
    pub(crate) stored: Arc<Stored>,
    pub(crate) key: CacheKey,
    pub(crate) watch: Watch,
    _held: Arc<HeldBytes>,
}

impl PendingUpdate {
    /// Updates the stored response with the header fields of an answer that confirmed it (RFC 9111
    /// §3.2). Stores the result, or returns the reason not to store it. If the answer forbids
    /// storing, removes the stored response. If only this client's request forbids storing, leaves
    /// the stored response unchanged.
    pub(crate) fn confirm(
        &self,
        worker: &Worker,
        request: &Headers,
        answer: &ResponseHead,
        times: Times,
    ) -> (Arc<Stored>, Option<NotStoredReason>) {
        let length = Some(self.stored.length);
        let policy = worker.policy(&self.key.text, &self.stored.head, length);
        let fresh = freshened(&self.stored, answer, policy, times);
        let fresh = Arc::new(fresh.begun(self.watch.epoch.begun));
        let (base, received) = (&self.base, times.civil);
        let asked = ("GET", request);
        let not_stored = why_not_storable(worker, base, asked, &fresh.head, length, received);
        let cache = &worker.shared.cache;
        let varies = |headers: &Headers| Vary::of(&View(headers)).ok();
        let varies_otherwise = answer.headers.contains("vary")
            && varies(&answer.headers) != varies(&self.stored.head.headers);
        match not_stored {
            None if !varies_otherwise => {
                cache.add(base, &self.placement(), &fresh, self.watch.found(), &worker.counters);
            }
            Some(NotStoredReason::Authorization | NotStoredReason::RequestNoStore) => {}
            // The updated response has another Vary field, so it needs another key. The response
            // under this key is removed.
            None | Some(_) => cache.outdate(base, &self.key, &self.watch),
        }
        (fresh, not_stored)
    }

    /// Returns the place of the updated response. The Vary list of a response from the cold tier is
    /// not stored yet.
    fn placement(&self) -> Placement {
        let list = list_of(&self.base, &self.stored, &self.key);
        let list = list.filter(|_| self.stored.is_from_cold());
        Placement { key: self.key.clone(), has_new_list: list.is_some(), list }
    }

    /// Decides whether the stored response may answer `request` because the origin did not answer.
    pub(crate) fn hit_after(&self, error: UpstreamError, request: &Headers) -> Option<Hit> {
        let hit = hit_after(&self.stored, None, request, clock::steady());
        hit.filter(|_| error.is_the_origins())
    }

    /// Applies the answer to a HEAD request to the stored response (RFC 9111 §4.3.5). If the answer
    /// describes the stored response, updates it. If the answer describes another response, removes
    /// the stored response. If neither is certain, changes nothing.
    pub(crate) fn apply_head(
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
            HeadSays::Same => drop(self.confirm(worker, request, answer, times)),
            HeadSays::Another => worker.shared.cache.outdate(&self.base, &self.key, &self.watch),
            HeadSays::Nothing => {}
        }
    }
}

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
