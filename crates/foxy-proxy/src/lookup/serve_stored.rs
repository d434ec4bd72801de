//! A stored response that may answer: as a 304, a range, or all of it, even when the store has lost
//! a part of it.

use crate::answer;
use crate::answer::multipart;
use crate::answer::resume;
use crate::answer::transaction::Transaction;
use crate::cache::epoch::Epoch;
use crate::cache::stored::{CacheKey, Stored, StoredBody};
use crate::cache::watch::Watch;
use crate::core::counters::Counter;
use crate::core::fields::View;
use crate::request::cache_status::{CacheStatus, How};
use crate::request::sent::{Aborted, After, Sent, Short};
use crate::request::wanted::Wanted;
use crate::slices::rest;
use bytes::Bytes;
use foxy_base::{WallTime, clock};
use foxy_http::ResponseHead;
use foxy_rules::{Conditional, RangeAnswer, evaluate, requested_range};
use std::sync::Arc;

/// What is known of a response while its body is sent.
struct Served {
    head: Arc<ResponseHead>,
    key: Bytes,
    length: u64,
    /// The response with a watch, if its body is in parts. What the store has lost of it may have
    /// to be written under another key.
    in_parts: Option<(Arc<Stored>, Watch)>,
}

/// Serves a stored response, looked for in `epoch`. `None` when its body turned out to be gone
/// before anything was sent: then it is a miss. When it turns out later, the rest comes from the
/// origin. What is left of it is left as slices.
pub(crate) async fn serve_stored(
    transaction: &mut Transaction<'_, '_>,
    (stored, epoch): (Arc<Stored>, Epoch),
    (source, ttl, permit): How,
    now: WallTime,
) -> Result<Option<(After, Sent)>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let options = wanted.options;
    worker.counters.add(source.counter(), 1);
    let outcome = CacheStatus::Hit { source, ttl, permit };
    let how = (stored.times.age(now), outcome);
    let range = match asked_of(wanted, &stored) {
        Some(RangeAnswer::Unsatisfiable) => {
            let length = stored.length;
            return answer::unsatisfiable(transaction.sender, options, length, outcome)
                .await
                .map(Some);
        }
        Some(range) => range,
        None => {
            let headers = &stored.head.headers;
            return answer::not_modified(transaction.sender, options, headers, how.0, outcome)
                .await
                .map(Some);
        }
    };
    // While the body is sent, nothing here may hold it.
    let served = Served {
        head: Arc::clone(&stored.head),
        key: stored.key.clone(),
        length: stored.length,
        in_parts: matches!(stored.body, StoredBody::Parts { .. })
            .then(|| (Arc::clone(&stored), worker.shared.cache.watch_since(&wanted.key, epoch))),
    };
    let (span, layout) = match &range {
        RangeAnswer::Part(span) => (Some(*span), None),
        RangeAnswer::Several(spans) => (None, multipart::layout(worker, &stored, spans)),
        RangeAnswer::Whole | RangeAnswer::Unsatisfiable => (None, None),
    };
    let sent = match layout {
        Some(layout) => {
            multipart::stored(worker, transaction.sender, options, stored, &layout, how).await
        }
        None => answer::stored(worker, transaction.sender, options, stored, span, how).await,
    };
    match sent {
        Ok(answered) => Ok(Some(answered)),
        Err(Short::Aborted(aborted)) => Err(aborted),
        Err(short) => make_up(transaction, served, short).await,
    }
}

/// What of a stored response is asked for; `None` if the client's copy is good still.
fn asked_of(wanted: &Wanted<'_>, stored: &Stored) -> Option<RangeAnswer> {
    let (request, head) = (View(&wanted.head.headers), View(&stored.head.headers));
    let received = match wanted.head.headers.contains("if-modified-since") {
        true => clock::civil(stored.times.received),
        false => stored.times.received,
    };
    if evaluate(&request, stored.head.status, &head, received) == Conditional::NotModified {
        return None;
    }
    Some(match stored.head.status {
        200 if !wanted.options.head_only => requested_range(&request, &head, stored.length),
        _ => RangeAnswer::Whole,
    })
}

/// Makes up for what the store has lost of a response: sends the rest from the slices that are
/// left, and from the origin. `None` if nothing was sent.
async fn make_up(
    transaction: &mut Transaction<'_, '_>,
    Served { head, key, length, in_parts }: Served,
    short: Short,
) -> Result<Option<(After, Sent)>, Aborted> {
    let is_begun = matches!(short, Short::Rest(_));
    let left = match in_parts {
        Some((stored, watch)) => {
            let Transaction { worker, wanted, .. } = *transaction;
            worker.shared.cache.forget(&CacheKey::new(key));
            let left = rest::left_of(worker, &wanted.key, &stored, &watch, is_begun).await;
            left.map(|set| (set, watch))
        }
        // What took its place meanwhile stays.
        None => None,
    };
    match (short, left) {
        (Short::Rest(rest), Some((set, watch))) => {
            transaction.worker.counters.add(Counter::Resumed, 1);
            Box::pin(rest::rest(transaction, watch, set, rest)).await.map(Some)
        }
        (Short::Rest(rest), None) => {
            resume::rest(transaction, (&head, length), rest).await.map(Some)
        }
        (Short::Gone | Short::Aborted(_), _) => Ok(None),
    }
}
