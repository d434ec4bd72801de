//! Removes the stored responses that a newly fetched response replaces or outdates, so that the
//! proxy never serves them again.

use crate::cache::{CacheKey, Cached, NotKept, Placement, Stored, Watch};
use crate::core::View;
use crate::fill::request::FillRequest;
use crate::request::exchange::{Next, decide};
use crate::worker::Worker;
use foxy_base::{WallTime, clock};
use foxy_http::ResponseHead;
use foxy_rules::partial::are_of_one;
use foxy_rules::{NotStoredReason, RequestControl};
use std::cell::Cell;

/// Removes stored responses that the proxy could otherwise serve again after a crash. The caller
/// must call this function before the client sees the head of the newer response. A fresh stored
/// response is removed if the request did not accept it (for example `no-cache`). A response that
/// another fetch has stored under `key` is removed. Slices (aligned MiB) of another representation
/// are removed. A stale response may stay, because the proxy would validate it first.
pub(crate) async fn forget_replaced(
    worker: &Worker,
    fill: &FillRequest,
    key: &CacheKey,
    head: &ResponseHead,
    received: WallTime,
) {
    let cache = &worker.shared.cache;
    let found = fill.stale.as_ref().filter(|stale| is_fresh(&stale.stored, received));
    let found = found.map(|stale| &stale.key);
    let written = Some(key).filter(|key| found != Some(*key) && cache.was_written(&fill.base, key));
    for key in [found, written].into_iter().flatten() {
        cache.supersede(&fill.base, key, &fill.watch).await;
    }
    cache.announce(&fill.base, key, &fill.watch);
    if let Some(part) = cache.part(&fill.base, &worker.counters).await
        && !are_of_one(&View(&part.stored.head.headers), &View(&head.headers))
    {
        cache.memory.remove(fill.base.part().hash);
        cache.supersede(&fill.base, &fill.base.part(), &fill.watch).await;
    }
}

/// Removes a fresh stored response that the request did not accept (for example `no-cache`),
/// because the answer of another node replaces it. The caller must call this function before the
/// client sees the head of the answer. A `status` of 304 replaces nothing here, because it concerns
/// the client's own response.
pub(crate) async fn forget_replaced_by_node(
    worker: &Worker,
    (base, key): (&CacheKey, &CacheKey),
    stored: &Stored,
    watch: &Watch,
    status: u16,
) {
    if is_fresh(stored, clock::steady()) && status != 304 && !is_temporary(status) {
        let cache = &worker.shared.cache;
        cache.supersede(base, key, watch).await;
        cache.outdate(base, key, watch);
    }
}

fn is_fresh(stored: &Stored, now: WallTime) -> bool {
    matches!(decide(&RequestControl::default(), stored, now), Next::Serve { permit: None, .. })
}

/// Removes the stored response if the origin did not confirm it, and answered with a response that
/// the cache does not store (RFC 9111 §4.3.3). A fetch that began earlier can then no longer store
/// its response. Changes nothing if the answer is a temporary failure, or if only this client's
/// request forbids storing.
pub(crate) fn forget_rejected(
    worker: &Worker,
    fill: &FillRequest,
    key: &CacheKey,
    status: u16,
    why: NotKept,
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
    if is_temporary(status) || of_the_request {
        return;
    }
    let cache = &worker.shared.cache;
    match &fill.stale {
        Some(stale) => cache.outdate(&fill.base, &stale.key, &fill.watch),
        None => cache.outdate_others(&fill.base, key, &fill.watch),
    }
}

const fn is_temporary(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..)
}

/// The stored responses that a new response replaces. They are removed before a reader has the last
/// byte of the new response. Otherwise another client, which learns of the new response from the
/// first client, could still receive an old response.
pub(crate) struct Superseded<'a> {
    worker: &'a Worker,
    fill: &'a FillRequest,
    placement: &'a Placement,
    status: u16,
    is_gone: Cell<bool>,
}

impl<'a> Superseded<'a> {
    pub(crate) const fn new(
        worker: &'a Worker,
        fill: &'a FillRequest,
        placement: &'a Placement,
        status: u16,
        is_gone: bool,
    ) -> Self {
        Self { worker, fill, placement, status, is_gone: Cell::new(is_gone) }
    }

    /// Removes the replaced responses at the first call. Later calls do nothing. If `from_store` is
    /// true, also removes them from the store. It must be true if the new response is not stored,
    /// or if the store has not confirmed it yet.
    pub(crate) fn let_go(&self, from_store: bool) {
        if self.is_gone.replace(true) {
            return;
        }
        if from_store {
            self.forget_outdated();
        } else {
            self.vacate_memory();
        }
    }

    /// Removes the older responses from memory and from the store. They are outdated (RFC 9111
    /// §4.3.3), even if the newer response could not be stored.
    fn forget_outdated(&self) {
        if is_temporary(self.status) {
            return;
        }
        let Self { fill, placement, .. } = self;
        let (cache, base, watch) = (&self.worker.shared.cache, &fill.base, &fill.watch);
        if placement.has_new_list && (fill.list.is_some() || watch.late) {
            // The earlier Vary list of the URL leads requests to the outdated response.
            cache.outdate(base, base, watch);
        }
        if let Some(stale) = &fill.stale {
            cache.outdate(base, &stale.key, watch);
        }
        if fill.stale.as_ref().is_none_or(|stale| stale.key != placement.key) {
            cache.outdate_others(base, &placement.key, watch);
        }
    }

    /// Removes the older responses only from memory, because memory will receive the new response
    /// in a moment. Fresh responses were already removed from the store when the new head arrived.
    fn vacate_memory(&self) {
        let Self { fill, placement, .. } = self;
        let stale = fill.stale.as_ref().map(|stale| &stale.key);
        let list = (placement.has_new_list && fill.list.is_some()).then_some(&fill.base);
        for key in [stale, list, Some(&placement.key)].into_iter().flatten() {
            self.worker.shared.cache.vacate(&fill.base, key, &fill.watch);
        }
    }
}

/// Forgets why an earlier response of the URL was not stored. Also removes stored partial content
/// of another representation. The caller must call this function after it has stored a response.
/// Otherwise the proxy could serve the old partial content again after the eviction of the new
/// response.
pub(crate) fn forget_what_was(worker: &Worker, base: &CacheKey, stored: &Stored) {
    worker.shared.refusals.forget(base);
    let (cache, key) = (&worker.shared.cache, base.part());
    if let Some(Cached::Response(parts)) = cache.held(&key)
        && !are_of_one(&View(&parts.head.headers), &View(&stored.head.headers))
    {
        cache.forget(&key);
    }
}
