//! Serves a stored response as a 304, as ranges, or whole. If the store has lost bytes of the body,
//! the proxy fetches these bytes from the origin. An *epoch* is a number that orders the events of
//! a URL. A *watch* is a note that a look-up or fetch of a URL is in progress. While it exists, the
//! cache records all writes to the URL.

use crate::answer::rest::resume;
use crate::answer::stored_body::BodyInParts;
use crate::answer::transaction::{Selection, Transaction};
use crate::cache::{CacheKey, Epoch, Stored, StoredBody, Watch};
use crate::core::{Counter, HitSource, View};
use crate::lookup::serve_coded::serve_coded;
use crate::request::{Aborted, Answered, CacheStatus, Hit, SendFailure, Wanted};
use crate::slices::send::{left_of, send_rest};
use bytes::Bytes;
use foxy_base::{WallTime, clock};
use foxy_http::ResponseHead;
use foxy_rules::{Conditional, Multipart, RangeAnswer, Span, evaluate, requested_range};
use std::sync::Arc;

/// A stored response whose body the store turned out to have lost while the proxy was sending it.
pub(crate) struct LostBody {
    remains: Remains,
    failure: SendFailure,
}

/// The data of a stored response that the proxy needs to continue after the body is lost.
struct Remains {
    head: Arc<ResponseHead>,
    key: Bytes,
    length: u64,
    /// The response, and a watch on its URL (the cache records all writes to the URL). `None` if
    /// the body is not stored in parts of 1 MiB. The proxy may store the remaining parts under
    /// another key.
    in_parts: Option<(Arc<Stored>, Watch)>,
}

/// The result of serving a stored response.
pub(crate) enum Served {
    Answered(Answered),
    Lost(LostBody),
}

/// Serves a stored response. `looked` tells when the look-up that found the response began.
pub(crate) async fn serve_stored(
    transaction: &mut Transaction<'_, '_>,
    stored: Arc<Stored>,
    looked: Epoch,
    hit: Hit,
    now: WallTime,
) -> Result<Served, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    worker.counters.add(hit.source.counter(), 1);
    transaction.note_rules(&stored.head, Some(stored.length));
    if matches!(hit, Hit { source: HitSource::Memory | HitSource::Disk, permit: None, .. }) {
        worker.shared.cache.offer(&wanted.key, &stored);
    }
    let (age, outcome) = (stored.times.age(now), CacheStatus::from(hit));
    let range = asked_range(wanted, &stored);
    if let Some(range) = &range
        && !worker.settings().compression.is_off()
        && let is_range = !matches!(range, RangeAnswer::Whole)
        && let Some(answered) = Box::pin(serve_coded(transaction, &stored, hit, is_range)).await?
    {
        return Ok(Served::Answered(answered));
    }
    let range = match range {
        Some(RangeAnswer::Unsatisfiable) => {
            let answered = Box::pin(transaction.unsatisfiable(stored.length, outcome)).await?;
            return Ok(Served::Answered(answered));
        }
        Some(range) => range,
        None => {
            let answered = transaction.not_modified(&stored.head.headers, age, outcome).await?;
            return Ok(Served::Answered(answered));
        }
    };
    // `remains` contains no copy of the body, so that memory can free the body while it is sent.
    let remains = Remains {
        head: Arc::clone(&stored.head),
        key: stored.key.clone(),
        length: stored.length,
        in_parts: matches!(stored.body, StoredBody::Parts { .. })
            .then(|| (Arc::clone(&stored), worker.shared.cache.watch_since(&wanted.key, looked))),
    };
    let selection = match &range {
        RangeAnswer::Part(span) => Selection::Range(*span),
        RangeAnswer::Several(spans) => {
            let content_type = stored.head.headers.get("content-type");
            let boundary = (worker.shared.cache.draw(), worker.shared.cache.draw());
            let layout = Multipart::new(spans, stored.length, content_type, boundary);
            layout.map_or(Selection::Whole, Selection::Ranges)
        }
        RangeAnswer::Whole | RangeAnswer::Unsatisfiable => Selection::Whole,
    };
    match transaction.stored(stored, selection, age, outcome).await {
        Ok(answered) => Ok(Served::Answered(answered)),
        Err(SendFailure::Aborted(aborted)) => Err(aborted),
        Err(failure) => Ok(Served::Lost(LostBody { remains, failure })),
    }
}

/// Returns which bytes of a stored response the client asks for: all bytes, or ranges. Returns
/// `None` if the client's own copy is still valid, so that the client receives a 304.
fn asked_range(wanted: &Wanted<'_>, stored: &Stored) -> Option<RangeAnswer> {
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

/// Returns whether the cache seems to have all bytes of `stored` that the client asks for.
pub(crate) fn has_wanted_bytes(transaction: &Transaction<'_, '_>, stored: &Stored) -> bool {
    let Transaction { worker, wanted, .. } = *transaction;
    let Some(body) = BodyInParts::of(stored).filter(|_| !wanted.options.head_only) else {
        return true;
    };
    let spans = match asked_range(wanted, stored) {
        None | Some(RangeAnswer::Unsatisfiable) => return true,
        Some(RangeAnswer::Part(span)) => vec![span],
        Some(RangeAnswer::Several(spans)) => spans,
        Some(RangeAnswer::Whole) => {
            vec![Span { first: 0, last: stored.length.saturating_sub(1) }]
        }
    };
    spans.into_iter().all(|span| body.has(worker, span))
}

/// Serves a stored response, even if the store has lost a part (1 MiB) of the body. Returns `None`
/// if the body was lost before anything was sent. The request then counts as a miss.
pub(crate) async fn serve_or_make_up(
    transaction: &mut Transaction<'_, '_>,
    stored: Arc<Stored>,
    looked: Epoch,
    hit: Hit,
    now: WallTime,
) -> Result<Option<Answered>, Aborted> {
    match serve_stored(transaction, stored, looked, hit, now).await? {
        Served::Answered(answered) => Ok(Some(answered)),
        Served::Lost(lost) => make_up(transaction, lost).await,
    }
}

/// Cuts an answer off, because the client forbids to fetch the lost bytes.
fn cut(transaction: &Transaction<'_, '_>) -> Aborted {
    transaction.worker.counters.add(Counter::CutResponses, 1);
    transaction.sender.break_off();
    Aborted::Source
}

/// Continues after the store has lost a part of a body. Stores the remaining parts as slices
/// (aligned MiB of the object). If the answer has begun, sends the rest from these slices and from
/// the origin. Returns `None` if nothing was sent.
pub(crate) async fn make_up(
    transaction: &mut Transaction<'_, '_>,
    LostBody { remains, failure }: LostBody,
) -> Result<Option<Answered>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let is_begun = matches!(failure, SendFailure::RestGone(_));
    let mut slices = None;
    // Only a body in parts (1 MiB each) is removed here. If the body was one record, a newer
    // response may have replaced the record, and must stay.
    if let Some((stored, watch)) = remains.in_parts {
        worker.shared.cache.forget(&CacheKey::new(remains.key));
        let left = left_of(worker, &wanted.key, &stored, &watch, is_begun).await;
        slices = left.map(|set| (set, watch));
    }
    let SendFailure::RestGone(rest) = failure else { return Ok(None) };
    if transaction.control.only_if_cached {
        return Err(cut(transaction));
    }
    let answered = match slices {
        Some((set, watch)) => {
            worker.counters.add(Counter::Resumed, 1);
            Box::pin(send_rest(transaction, watch, set, rest)).await?
        }
        None => resume(transaction, &remains.head, remains.length, rest).await?,
    };
    Ok(Some(answered))
}
