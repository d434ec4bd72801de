//! The rest of a whole response that has lost a part: the store sends the parts that it has, and
//! the origin gives the missing ones.

use crate::answer::transaction::Transaction;
use crate::cache::storage::{PART, part_key};
use crate::cache::stored::{CacheKey, Stored, StoredBody};
use crate::cache::watch::Watch;
use crate::core::fields::View;
use crate::core::forward_reason::ForwardReason;
use crate::fill::stale::Miss;
use crate::request::sent::{Aborted, After, Sent, UnsentRest};
use crate::slices::send::SentSlices;
use crate::slices::send::{Start, send};
use crate::worker::Worker;
use foxy_rules::slice::strong_validator;
use std::sync::Arc;
use tokio::time::timeout;

/// Keeps what is known of an object by slices as its whole, when each of them is stored or was
/// handed to the store; or the other way round. The fill that its parts are named by stays the
/// same.
pub(crate) fn name_anew(
    worker: &Worker,
    base: &CacheKey,
    key: &CacheKey,
    known: &Stored,
    watch: &Watch,
) -> Arc<Stored> {
    let named = Arc::new(Stored { key: key.text.clone(), ..Stored::clone(known) });
    let watch = watch.clone().begun(known.begun);
    worker.shared.cache.add(base, key, &named, None, watch.found(), &worker.counters);
    named
}

/// What is left of a whole that has lost a part: slices, so that only those that are missing are
/// fetched. `None` where they could not be told from another representation's, where the origin
/// does not say that it gives ranges, and where nothing was sent yet and the last part is gone too:
/// parts go in the order in which they came.
pub(crate) async fn left_of(
    worker: &Worker,
    base: &CacheKey,
    stored: &Stored,
    watch: &Watch,
    is_begun: bool,
) -> Option<Arc<Stored>> {
    let storage = worker.shared.cache.storage()?;
    let view = View(&stored.head.headers);
    let StoredBody::Parts { fill } = stored.body else { return None };
    let gives_ranges =
        stored.head.headers.get("accept-ranges").is_some_and(|unit| unit == b"bytes");
    if stored.key != base.text || !gives_ranges || strong_validator(&view).is_none() {
        return None;
    }
    if !is_begun {
        let last = part_key(stored.object(), fill, stored.length.saturating_sub(1) / PART as u64);
        timeout(storage.patience(), storage.part(last)).await.ok()??;
    }
    Some(name_anew(worker, base, &base.part(), stored, watch))
}

/// Sends the rest of a whole of which that set is left, and fetches what is missing of it.
pub(crate) async fn rest(
    transaction: &mut Transaction<'_, '_>,
    watch: Watch,
    set: Arc<Stored>,
    rest: UnsentRest,
) -> Result<(After, Sent), Aborted> {
    let wanted = transaction.wanted;
    let is_to_the_end = rest.end == set.length;
    let miss = Miss { reason: ForwardReason::Partial, list: None, stale: None, watch };
    let whole = Arc::clone(&set);
    let sent = send(transaction, &miss, (set, Start::Begun(rest)), None).await?;
    if is_to_the_end {
        name_anew(transaction.worker, &wanted.key, &wanted.key, &whole, &miss.watch);
    }
    match sent {
        SentSlices::Answered(after, sent) => Ok((after, sent)),
        SentSlices::Other(..) | SentSlices::Nothing => Err(Aborted::Source),
    }
}
