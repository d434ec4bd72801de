//! What a fill's answer makes of what was known of its URL before: forgotten, when it must not come
//! back. It stores nothing.

use crate::cache::memory::Cached;
use crate::cache::refusals::NotKept;
use crate::cache::stored::{CacheKey, Stored};
use crate::core::fields::View;
use crate::fill::request::FillRequest;
use crate::request::exchange::{Next, decide};
use crate::worker::Worker;
use foxy_base::WallTime;
use foxy_http::ResponseHead;
use foxy_rules::partial::are_of_one;
use foxy_rules::{NotStoredReason, RequestControl};

/// What asked past a response that was still fresh sees a newer one only once the older one cannot
/// come back: after a crash it would answer again as if nothing had happened. One that was stale
/// would be validated again. The same goes for what another fetch has stored under `key` meanwhile,
/// and for what is known by slices of another representation.
pub(crate) async fn forget_replaced(
    worker: &Worker,
    fill: &FillRequest,
    (key, head): (&CacheKey, &ResponseHead),
    received: WallTime,
) {
    let cache = &worker.shared.cache;
    let is_fresh = |stored: &Stored| {
        matches!(
            decide(&RequestControl::default(), stored, received),
            Next::Serve { permit: None, .. }
        )
    };
    let found = fill.stale.as_ref().filter(|stale| is_fresh(&stale.stored)).map(|stale| &stale.key);
    let written = Some(key).filter(|key| found != Some(*key) && cache.was_written(&fill.base, key));
    for key in [found, written].into_iter().flatten() {
        cache.supersede(&fill.base, key, &fill.watch).await;
    }
    cache.announce(&fill.base, key, &fill.watch);
    if let Some((set, _)) = cache.part(&fill.base, &worker.counters).await
        && !are_of_one(&View(&set.head.headers), &View(&head.headers))
    {
        cache.memory.remove(fill.base.part().hash);
        cache.supersede(&fill.base, &fill.base.part(), &fill.watch).await;
    }
}

/// Forgets what is stored when the origin, asked about it, gives another response that is not
/// stored (RFC 9111 §4.3.3: what is stored is not suitable any more), and what an older fetch may
/// still bring. Not when that speaks of the moment rather than of the resource, or of this client's
/// request alone.
pub(crate) fn forget_rejected(
    worker: &Worker,
    fill: &FillRequest,
    key: &CacheKey,
    (status, why): (u16, NotKept),
) {
    let of_the_request = matches!(
        why,
        NotKept::StaleIfError
            | NotKept::Rule(
                NotStoredReason::Authorization
                    | NotStoredReason::RequestNoStore
                    | NotStoredReason::Partial
            )
    );
    if is_of_the_moment(status) || of_the_request {
        return;
    }
    let cache = &worker.shared.cache;
    match &fill.stale {
        Some(stale) => cache.outdate(&fill.base, &stale.key, &fill.watch),
        None => cache.outdate_others(&fill.base, key, &fill.watch),
    }
}

const fn is_of_the_moment(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..)
}

/// Forgets what is stored in whose place a response has come whole that is not kept, or that the
/// store has not confirmed yet. That the newer one could not be kept makes the older one no better
/// (RFC 9111 §4.3.3). `new_list` says that no list in force leads to the newer one.
pub(crate) fn forget_outdated(
    worker: &Worker,
    fill: &FillRequest,
    (key, new_list): (&CacheKey, bool),
    status: u16,
) {
    if is_of_the_moment(status) {
        return;
    }
    let cache = &worker.shared.cache;
    if new_list && (fill.list.is_some() || fill.watch.late) {
        // The earlier list leads to what the same request got before.
        cache.outdate(&fill.base, &fill.base, &fill.watch);
    }
    if let Some(stale) = &fill.stale {
        cache.outdate(&fill.base, &stale.key, &fill.watch);
    }
    if fill.stale.as_ref().is_none_or(|stale| stale.key != *key) {
        cache.outdate_others(&fill.base, key, &fill.watch);
    }
}

/// Takes out of memory what a response replaces that memory will have in a moment. The store let go
/// of what was fresh when the head came.
pub(crate) fn vacate_memory(
    worker: &Worker,
    fill: &FillRequest,
    (key, new_list): (&CacheKey, bool),
) {
    let stale = fill.stale.as_ref().map(|stale| &stale.key);
    let list = (new_list && fill.list.is_some()).then_some(&fill.base);
    for key in [stale, list, Some(key)].into_iter().flatten() {
        worker.shared.cache.vacate(&fill.base, key, &fill.watch);
    }
}

/// Forgets, once a response is stored, why an earlier one was not, and what memory knows of parts
/// that it is not of: they would answer again when it is gone.
pub(crate) fn forget_what_was(worker: &Worker, base: &CacheKey, stored: &Stored) {
    worker.shared.refusals.forget(base);
    let (cache, key) = (&worker.shared.cache, base.part());
    if let Some(Cached::Response(parts)) = cache.held(&key)
        && !are_of_one(&View(&parts.head.headers), &View(&stored.head.headers))
    {
        cache.forget(&key);
    }
}
