//! Requests for a range of an object that is known, if at all, by aligned slices: answered from
//! those that are stored, and from the origin slice by slice where they are not. What the client
//! gets is of one representation, or is cut.

use crate::answer;
use crate::answer::transaction::Transaction;
use crate::cache::memory::Cached;
use crate::cache::refusals::NotKept;
use crate::cache::storage::PART;
use crate::cache::stored::Stored;
use crate::core::fields::View;
use crate::core::forward_reason::ForwardReason;
use crate::core::hit_source::HitSource;
use crate::fill::stale::Miss;
use crate::lookup::answer_from_flight::answer_from_flight;
use crate::lookup::result::LookupResult;
use crate::request::cache_status::CacheStatus;
use crate::request::exchange::{Next, decide};
use crate::request::sent::Aborted;
use crate::slices::flight::{Ask, Sliced, fetch};
use crate::slices::rest::name_anew;
use crate::slices::send::{SentSlices, Start, send};
use foxy_base::clock;
use foxy_rules::slice::slice_of;
use foxy_rules::{Permit, RangeAnswer, RangeSpec, Span, UpstreamRange, requested_range};
use std::sync::Arc;

/// For how many seconds an object is not asked for by slices once its answer could not be kept so.
const NOT_AGAIN: u64 = 300;

/// Answers a request for one range. `None` when slices are no way to do it; nothing was sent then.
pub(crate) async fn answer(
    transaction: &mut Transaction<'_, '_>,
    (miss, range, known): (&Miss, &UpstreamRange, Option<(Arc<Stored>, HitSource)>),
) -> Result<Option<LookupResult>, Aborted> {
    let UpstreamRange::One(spec) = range else { return Ok(None) };
    if !may_be_sliced(transaction) {
        return Ok(None);
    }
    let next = |(set, source): (Arc<Stored>, HitSource)| {
        let next = decide(&transaction.control, &set, clock::steady());
        (set, next, source)
    };
    let (asked, set, reason) = match known.filter(|(set, _)| set.is_of_slices()).map(next) {
        Some((set, Next::Serve { ttl, permit }, source))
            if permit != Some(Permit::WhileRevalidate) =>
        {
            let start = Start::Stored(source, ttl, permit);
            return ranged_answer(transaction, miss, set, start).await;
        }
        Some((set, Next::Serve { .. } | Next::Revalidate(_), _)) => {
            let Some(span) = asked_of(transaction, &set) else { return Ok(None) };
            (span, Some(set), ForwardReason::Stale)
        }
        Some((_, Next::GatewayTimeout | Next::Fetch(_), _)) | None => match *spec {
            RangeSpec::Span(span) => (span, None, miss.reason),
            RangeSpec::Suffix(_) => return Ok(None),
        },
    };
    let asked = slice_of(asked.first, PART as u64);
    let ask = Ask {
        asked,
        set: set.as_ref(),
        validate: set.is_some(),
        alone: false,
        list: miss.list_in_force(),
    };
    match fetch(transaction, &miss.watch, ask).await {
        Sliced::Slice(fetched) => {
            let set = Arc::clone(&fetched.set);
            ranged_answer(transaction, miss, set, Start::Fetched(fetched, reason)).await
        }
        Sliced::Confirmed(set) => {
            let now = clock::steady();
            let ttl = i64::try_from(set.lifetime).unwrap_or(i64::MAX)
                - i64::try_from(set.times.age(now)).unwrap_or(i64::MAX);
            let start = Start::Stored(HitSource::Revalidated(reason), ttl, None);
            ranged_answer(transaction, miss, set, start).await
        }
        Sliced::Other(reader, outcome, collapsed) => {
            answer_from_flight(transaction, miss, &reader, outcome, collapsed).await
        }
        Sliced::Not => Ok(None),
    }
}

/// Answers with the range that is asked of a set; `None` where that is none, or would take slices
/// that cannot be had.
async fn ranged_answer(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    set: Arc<Stored>,
    start: Start,
) -> Result<Option<LookupResult>, Aborted> {
    let wanted = transaction.wanted;
    match requested_range(&View(&wanted.head.headers), &View(&set.head.headers), set.length) {
        RangeAnswer::Part(span) => {
            if let Start::Fetched(fetched, _) = &start
                && !fetched.lasting
                && span.last > fetched.asked.last
            {
                return Ok(None);
            }
            let sent = send(transaction, miss, (set, start), Some(span)).await?;
            answered(transaction, miss, sent).await
        }
        RangeAnswer::Unsatisfiable => {
            let outcome = CacheStatus::Local { detail: "range-not-satisfiable" };
            let (after, sent) =
                answer::unsatisfiable(transaction.sender, wanted.options, set.length, outcome)
                    .await?;
            Ok(Some(LookupResult::Answered(after, sent)))
        }
        RangeAnswer::Whole | RangeAnswer::Several(_) => Ok(None),
    }
}

/// Answers what the slices left to answer.
async fn answered(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    sent: SentSlices,
) -> Result<Option<LookupResult>, Aborted> {
    match sent {
        SentSlices::Answered(after, sent) => Ok(Some(LookupResult::Answered(after, sent))),
        SentSlices::Other(reader, outcome, collapsed) => {
            answer_from_flight(transaction, miss, &reader, outcome, collapsed).await
        }
        SentSlices::Nothing => Ok(None),
    }
}

/// Answers a request for the whole from slices of which memory knows, and fetches the others.
pub(crate) async fn complete(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
) -> Result<Option<LookupResult>, Aborted> {
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
    let start = Start::Stored(HitSource::Memory, ttl, None);
    let sent = send(transaction, miss, (Arc::clone(&set), start), None).await?;
    let got = answered(transaction, miss, sent).await?;
    if got.is_some() {
        name_anew(worker, &wanted.key, &wanted.key, &set, &miss.watch);
    }
    Ok(got)
}

/// Whether slices of what is wanted could be kept, as far as can be said before an origin is asked.
fn may_be_sliced(transaction: &Transaction<'_, '_>) -> bool {
    let Transaction { worker, wanted, .. } = *transaction;
    let (cache, headers) = (&worker.shared.cache, &wanted.head.headers);
    let refused = worker.shared.refusals.last(&wanted.key).filter(|refused| {
        let lasting = matches!(refused.why, NotKept::Rule(_) | NotKept::NoSlices);
        let lately = clock::steady().seconds() < refused.at.seconds() + NOT_AGAIN;
        lasting && lately && matches!(refused.status, 200 | 206)
    });
    cache.storage().is_some()
        && cache.object_limit >= PART as u64
        && !transaction.control.no_store
        && !headers.contains("if-none-match")
        && !headers.contains("if-modified-since")
        && refused.is_none()
}

/// The one range that is asked of an object.
fn asked_of(transaction: &Transaction<'_, '_>, set: &Stored) -> Option<Span> {
    match requested_range(
        &View(&transaction.wanted.head.headers),
        &View(&set.head.headers),
        set.length,
    ) {
        RangeAnswer::Part(span) => Some(span),
        RangeAnswer::Whole | RangeAnswer::Several(_) | RangeAnswer::Unsatisfiable => None,
    }
}
