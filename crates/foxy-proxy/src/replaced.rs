//! What a fill's answer makes of what was known of its URL before: forgotten, when it must not come back. It stores nothing.

use crate::exchange::{Next, decide};
use crate::fields::View;
use crate::fill::FillRequest;
use crate::memory::Cached;
use crate::not_kept::NotKept;
use crate::stale::Stale;
use crate::stored::{CacheKey, Stored};
use crate::worker::Worker;
use foxy_base::WallTime;
use foxy_http::ResponseHead;
use foxy_rules::partial::are_of_one;
use foxy_rules::{NotStoredReason, RequestControl};

/// What asked past a response that was still fresh sees a newer one only once the older one cannot come back: after a
/// crash it would answer again as if nothing had happened. One that was stale would be validated again. The same goes for what
/// is known by slices of another representation.
pub(crate) async fn forget_replaced(
    worker: &Worker,
    fill: &FillRequest,
    head: &ResponseHead,
    received: WallTime,
) {
    let cache = &worker.shared.cache;
    if let Some(Stale { stored, key, .. }) = &fill.stale
        && let Next::Serve { permit: None, .. } = decide(&RequestControl::default(), stored, received)
    {
        cache.supersede(key).await;
    }
    if let Some((set, _)) = cache.part(&fill.base, &worker.counters).await
        && !are_of_one(&View(&set.head.headers), &View(&head.headers))
    {
        cache.memory.remove(fill.base.part().hash);
        cache.supersede(&fill.base.part()).await;
    }
}

/// Forgets what is stored when the origin, asked about it, gives another response that is not stored (RFC 9111 §4.3.3: what
/// is stored is not suitable any more). Not when that speaks of the moment rather than of the resource, or of this client's
/// request alone.
pub(crate) fn forget_rejected(worker: &Worker, fill: &FillRequest, status: u16, why: NotKept) {
    let of_the_moment = matches!(status, 408 | 425 | 429 | 500..);
    let of_the_request = matches!(
        why,
        NotKept::StaleIfError
            | NotKept::Rule(
                NotStoredReason::Authorization | NotStoredReason::RequestNoStore | NotStoredReason::Partial
            )
    );
    if let Some(Stale { key, .. }) = &fill.stale
        && !of_the_moment
        && !of_the_request
    {
        worker.shared.cache.forget(key);
    }
}

/// Forgets, once a response is stored, why an earlier one was not, and what memory knows of parts that it is not of: they
/// would answer again when it is gone.
pub(crate) fn forget_what_was(worker: &Worker, base: &CacheKey, stored: &Stored) {
    worker.shared.refusals.forget(base);
    let (cache, key) = (&worker.shared.cache, base.part());
    if let Some(Cached::Response(parts)) = cache.held(&key)
        && !are_of_one(&View(&parts.head.headers), &View(&stored.head.headers))
    {
        cache.forget(&key);
    }
}
