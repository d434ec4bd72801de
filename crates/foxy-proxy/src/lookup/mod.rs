//! Looks up a GET or HEAD, first in memory and then in the store on disk. Serves the stored
//! response if the caching rules permit it. `fetch` handles all other cases.

pub(crate) mod answer_from_flight;
pub(crate) mod ask_cold;
pub(crate) mod ask_node;
pub(crate) mod by_slices;
pub(crate) mod fetch;
pub(crate) mod forward;
pub(crate) mod serve_coded;
pub(crate) mod serve_stored;
mod tell_nodes;

use crate::answer::transaction::Transaction;
use crate::cache::{CacheKey, Found, InMemory, Stored};
use crate::core::{ForwardReason, HitSource};
use crate::lookup::serve_stored::{LostBody, Served, has_wanted_bytes, serve_stored};
use crate::request::exchange::{Next, decide_about};
use crate::request::{Aborted, Answered, Hit};
use foxy_base::clock;
use foxy_rules::Permit;
use std::sync::Arc;

/// The result of looking for a stored response to a request.
pub(crate) enum Lookup {
    Answered(Answered),
    /// The proxy began to serve a stored response, but the store has lost the body.
    Lost(LostBody),
    /// The caching rules permit the stale response, if the proxy validates it in the background
    /// (RFC 5861 §3).
    Refresh {
        stored: Arc<Stored>,
        key: CacheKey,
        hit: Hit,
    },
    /// The request accepts only a stored response (`only-if-cached`), but no stored response may
    /// answer it.
    Refused,
    /// The proxy must contact the origin. If `validate` is true, it asks the origin to confirm the
    /// stored response that the look-up found.
    Miss {
        found: Found,
        reason: ForwardReason,
        validate: bool,
    },
}

pub(crate) async fn answer(transaction: &mut Transaction<'_, '_>) -> Result<Lookup, Aborted> {
    let (found, source) = look_up(transaction).await;
    judge(transaction, found, source).await
}

/// Serves the response that a look-up found, if the caching rules permit it.
async fn judge(
    transaction: &mut Transaction<'_, '_>,
    found: Found,
    source: HitSource,
) -> Result<Lookup, Aborted> {
    let now = clock::steady();
    match (decide_about(&transaction.control, &found, now), found) {
        (Next::Serve { ttl, permit }, Found::Response(stored, key)) => {
            let hit = Hit { source, ttl, permit };
            if transaction.control.only_if_cached && !has_wanted_bytes(transaction, &stored) {
                return Ok(Lookup::Refused);
            }
            if permit == Some(Permit::WhileRevalidate) {
                return Ok(Lookup::Refresh { stored, key, hit });
            }
            match serve_stored(transaction, stored, transaction.looked, hit, now).await? {
                Served::Answered(answered) => Ok(Lookup::Answered(answered)),
                Served::Lost(lost) => Ok(Lookup::Lost(lost)),
            }
        }
        (Next::Serve { .. }, _) => Err(Aborted::Source),
        (Next::GatewayTimeout, _) => Ok(Lookup::Refused),
        (Next::Revalidate(reason), found) => Ok(Lookup::Miss { found, reason, validate: true }),
        (Next::Fetch(reason), found) => Ok(Lookup::Miss { found, reason, validate: false }),
    }
}

async fn look_up(transaction: &mut Transaction<'_, '_>) -> (Found, HitSource) {
    let (key, headers) = (&transaction.wanted.key, &transaction.wanted.head.headers);
    let cache = &transaction.worker.shared.cache;
    match cache.in_memory(key, headers) {
        InMemory::Found(found) => (found, HitSource::Memory),
        InMemory::Ask(asked, list) => {
            let watch = cache.watch_since(key, transaction.looked);
            let counters = &transaction.worker.counters;
            let found = cache.in_store(key, &watch, asked, list, headers, counters).await;
            transaction.store_watch = Some(watch);
            (found, HitSource::Disk)
        }
    }
}
