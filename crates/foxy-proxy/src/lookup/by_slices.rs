//! Answers requests for ranges of objects that are not stored whole. The bytes come from a stored
//! partial response, or from *slices*: aligned pieces of 1 MiB that the cache stores one by one.
//! The proxy fetches missing slices from the origin. All bytes of an answer must belong to the same
//! representation. Otherwise the proxy cuts the answer off.

use crate::answer::stored_body::BodyInParts;
use crate::answer::transaction::{Selection, Transaction};
use crate::cache::{Cached, FoundPart, NotKept, PART, Stored};
use crate::core::{ForwardReason, HitSource, View};
use crate::fill::outgoing;
use crate::fill::stale::Miss;
use crate::lookup::answer_from_flight::answer_from_flight;
use crate::request::exchange::{Next, decide};
use crate::request::{Aborted, Answered, CacheStatus, Hit, SendFailure};
use crate::slices::flight::{FetchResult, SliceFetch, fetch};
use crate::slices::send::{SentSlices, Start, keep_under, send};
use foxy_base::clock;
use foxy_rules::partial::slice_of;
use foxy_rules::{Part, Permit, RangeAnswer, RangeSpec, Span, UpstreamRange, requested_range};
use std::sync::Arc;

/// If an object cannot be stored in slices (aligned MiB), the proxy does not fetch slices of the
/// object for this time in seconds.
const RETRY_SECONDS: u64 = 300;

/// Answers a request for a range. If neither a stored partial response nor slices can answer, sends
/// nothing and returns `None`.
pub(crate) async fn answer(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    range: &UpstreamRange,
) -> Result<Option<Answered>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let mut known = worker.shared.cache.part(&wanted.key, &worker.counters).await;
    if let Some(answered) = from_part(transaction, &mut known).await? {
        return Ok(Some(answered));
    }
    let UpstreamRange::One(spec) = range else { return Ok(None) };
    if !may_be_sliced(transaction) {
        return Ok(None);
    }
    let (mut set, mut first, mut reason) = (None, None, miss.reason);
    if let Some(known) = known.filter(|known| known.stored.is_of_slices()) {
        match decide(&transaction.control, &known.stored, clock::steady()) {
            Next::Serve { ttl, permit } if permit != Some(Permit::WhileRevalidate) => {
                let start = Start::Stored(Hit { source: known.source, ttl, permit });
                return ranged_answer(transaction, miss, known.stored, start).await;
            }
            Next::Serve { .. } | Next::Revalidate(_) => {
                let RangeAnswer::Part(span) = range_of(transaction, &known.stored) else {
                    return Ok(None);
                };
                reason = known.stored.doubt.map_or(ForwardReason::Stale, ForwardReason::InDoubt);
                (first, set) = (Some(span.first), Some(known.stored));
            }
            Next::GatewayTimeout | Next::Fetch(_) => {}
        }
    }
    let first = match (first, spec) {
        (Some(first), _) => first,
        (None, RangeSpec::Span(span)) => span.first,
        (None, RangeSpec::Suffix(_)) => return Ok(None),
    };
    let slice = SliceFetch {
        span: slice_of(first, PART as u64),
        set: set.as_ref(),
        validate: set.is_some(),
        alone: false,
        list: miss.list_in_force(),
    };
    match fetch(transaction, &miss.watch, slice).await {
        FetchResult::Slice(fetched) => {
            let set = Arc::clone(&fetched.set);
            ranged_answer(transaction, miss, set, Start::Fetched(fetched, reason)).await
        }
        FetchResult::Confirmed(set) => {
            let hit = Hit::revalidated(&set, reason, clock::steady());
            ranged_answer(transaction, miss, set, Start::Stored(hit)).await
        }
        FetchResult::Other(other) => {
            answer_from_flight(transaction, miss, &other.reader, other.outcome, other.collapsed)
                .await
        }
        FetchResult::Unusable => Ok(None),
    }
}

/// Answers a request for a range from a stored partial response or from slices, without the origin.
pub(crate) async fn from_store(
    transaction: &mut Transaction<'_, '_>,
) -> Result<Option<Answered>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let range = outgoing::asked_range(&wanted.head.headers);
    if wanted.options.head_only || !matches!(range, Some(UpstreamRange::One(_))) {
        return Ok(None);
    }
    let mut known = worker.shared.cache.part(&wanted.key, &worker.counters).await;
    if let Some(answered) = from_part(transaction, &mut known).await? {
        return Ok(Some(answered));
    }
    let now = clock::steady();
    let Some(FoundPart { stored, source }) = known else { return Ok(None) };
    let next = decide(&transaction.control, &stored, now);
    let (Next::Serve { ttl, permit }, RangeAnswer::Part(span)) =
        (next, range_of(transaction, &stored))
    else {
        return Ok(None);
    };
    let is_stored = stored.is_of_slices()
        && permit != Some(Permit::WhileRevalidate)
        && !has_own_conditions(transaction)
        && BodyInParts::of(&stored).is_some_and(|body| body.has(worker, span));
    if !is_stored {
        return Ok(None);
    }
    worker.counters.add(source.counter(), 1);
    transaction.note_rules(&stored.head, Some(stored.length));
    let (age, hit) = (stored.times.age(now), Hit { source, ttl, permit });
    match transaction.stored(stored, Selection::Range(span), age, hit.into()).await {
        Ok(answered) => Ok(Some(answered)),
        Err(SendFailure::BodyGone) => Ok(None),
        Err(SendFailure::Aborted(aborted)) => Err(aborted),
        Err(SendFailure::RestGone(_)) => Err(Aborted::Source),
    }
}

/// Answers a request for a range from a stored partial response. Returns `None` if this response
/// does not contain the range or may not be served. If the store has lost the body of this
/// response, sets `known` to `None`.
async fn from_part(
    transaction: &mut Transaction<'_, '_>,
    known: &mut Option<FoundPart>,
) -> Result<Option<Answered>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let Some(FoundPart { stored, source }) = &*known else { return Ok(None) };
    if has_own_conditions(transaction) {
        return Ok(None);
    }
    let (source, now) = (*source, clock::steady());
    let hit = match decide(&transaction.control, stored, now) {
        Next::Serve { permit: Some(Permit::WhileRevalidate), .. } => return Ok(None),
        Next::Serve { ttl, permit } => Hit { source, ttl, permit },
        Next::GatewayTimeout | Next::Revalidate(_) | Next::Fetch(_) => return Ok(None),
    };
    let view = View(&stored.head.headers);
    let Some(part) = Part::of(&view) else { return Ok(None) };
    let span = match requested_range(&View(&wanted.head.headers), &view, part.complete) {
        RangeAnswer::Part(span) if part.holds(span.first, span.last) => span,
        _ => return Ok(None),
    };
    let Some(FoundPart { stored, .. }) = known.take() else { return Ok(None) };
    worker.counters.add(source.counter(), 1);
    transaction.note_rules(&stored.head, Some(part.complete));
    let age = stored.times.age(now);
    match transaction.stored(stored, Selection::Range(span), age, hit.into()).await {
        Ok(answered) => Ok(Some(answered)),
        Err(SendFailure::Aborted(aborted)) => Err(aborted),
        Err(failure) => {
            worker.shared.cache.forget(&wanted.key.part());
            if matches!(failure, SendFailure::BodyGone) { Ok(None) } else { Err(Aborted::Source) }
        }
    }
}

/// Answers with the requested range of an object whose slices (aligned MiB) are `set`. Returns
/// `None` if the client did not ask for exactly one range, or if a needed slice is not available.
async fn ranged_answer(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    set: Arc<Stored>,
    start: Start,
) -> Result<Option<Answered>, Aborted> {
    match range_of(transaction, &set) {
        RangeAnswer::Part(span) => {
            if let Start::Fetched(fetched, _) = &start
                && !fetched.lasting
                && span.last > fetched.span.last
            {
                return Ok(None);
            }
            send_slices(transaction, miss, set, start, Some(span)).await
        }
        RangeAnswer::Unsatisfiable => {
            let outcome = CacheStatus::Local { detail: "range-not-satisfiable" };
            transaction.unsatisfiable(set.length, outcome).await.map(Some)
        }
        RangeAnswer::Whole | RangeAnswer::Several(_) => Ok(None),
    }
}

async fn send_slices(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    set: Arc<Stored>,
    start: Start,
    span: Option<Span>,
) -> Result<Option<Answered>, Aborted> {
    transaction.note_rules(&set.head, Some(set.length));
    match send(transaction, miss, set, start, span).await? {
        SentSlices::Answered(answered) => Ok(Some(answered)),
        SentSlices::Other(other) => {
            answer_from_flight(transaction, miss, &other.reader, other.outcome, other.collapsed)
                .await
        }
        SentSlices::Nothing => Ok(None),
    }
}

/// Answers a request for the whole object from its slices, if memory has the head of these slices.
/// Fetches the missing slices from the origin.
pub(crate) async fn complete(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
) -> Result<Option<Answered>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let cache = &worker.shared.cache;
    let Some(Cached::Response(set)) = cache.held(&wanted.key.part()) else { return Ok(None) };
    if !set.is_of_slices() || set.length > cache.object_limit || !may_be_sliced(transaction) {
        return Ok(None);
    }
    let Next::Serve { ttl, permit: None } = decide(&transaction.control, &set, clock::steady())
    else {
        return Ok(None);
    };
    let start = Start::Stored(Hit { source: HitSource::Memory, ttl, permit: None });
    let sent = send_slices(transaction, miss, Arc::clone(&set), start, None);
    let answered = Box::pin(sent).await?;
    if answered.is_some() {
        keep_under(worker, &wanted.key, &wanted.key, &set, &miss.watch);
    }
    Ok(answered)
}

/// Returns whether the proxy may store slices of the object, as far as the proxy can know before
/// the fetch.
fn may_be_sliced(transaction: &Transaction<'_, '_>) -> bool {
    let Transaction { worker, wanted, .. } = *transaction;
    let cache = &worker.shared.cache;
    let refused = worker.shared.refusals.last(&wanted.key).filter(|refused| {
        let lasting = matches!(refused.why, NotKept::Rule(_) | NotKept::NoSlices);
        let lately = clock::steady().seconds() < refused.at.seconds() + RETRY_SECONDS;
        lasting && lately && matches!(refused.status, 200 | 206)
    });
    cache.storage().is_some()
        && cache.object_limit >= PART as u64
        && !transaction.control.no_store
        && !has_own_conditions(transaction)
        && refused.is_none()
}

fn has_own_conditions(transaction: &Transaction<'_, '_>) -> bool {
    let headers = &transaction.wanted.head.headers;
    headers.contains("if-none-match") || headers.contains("if-modified-since")
}

fn range_of(transaction: &Transaction<'_, '_>, set: &Stored) -> RangeAnswer {
    let request = View(&transaction.wanted.head.headers);
    requested_range(&request, &View(&set.head.headers), set.length)
}
