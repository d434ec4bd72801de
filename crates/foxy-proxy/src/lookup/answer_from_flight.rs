//! Answers a GET or HEAD with what its flight came to: a response that others may be reading too, a
//! stored one that was confirmed, or an error. It starts nothing.

use crate::answer;
use crate::answer::catch_up;
use crate::answer::stream::{self, Source, Streamed};
use crate::answer::transaction::Transaction;
use crate::cache::refusals::NotKept;
use crate::core::fields::View;
use crate::core::hit_source::HitSource;
use crate::fill::stale::Miss;
use crate::flight::{FlightHead, FlightOutcome, Piece, Reader};
use crate::lookup::result::LookupResult;
use crate::lookup::serve_stored::serve_stored;
use crate::request::cache_status::CacheStatus;
use crate::request::reason::ErrorReason;
use crate::request::sent::{Aborted, After, Sent};
use foxy_base::clock;
use foxy_rules::{Conditional, evaluate};
use std::sync::Arc;

/// Answers with what a flight came to. `None` when what was confirmed, or the beginning of what
/// comes, turned out to be gone, or something else was confirmed.
pub(crate) async fn answer_from_flight(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    reader: &Reader,
    outcome: FlightOutcome,
    collapsed: bool,
) -> Result<Option<LookupResult>, Aborted> {
    let wanted = transaction.wanted;
    if let Some((stored, how)) = miss.as_hit_after(&wanted.head.headers, &outcome)
        && let Some((after, sent)) = serve_stored(
            transaction,
            (Arc::clone(stored), miss.watch.looked()),
            how,
            clock::steady(),
        )
        .await?
    {
        return Ok(Some(LookupResult::Answered(after, sent)));
    }
    let (after, sent) = match outcome {
        FlightOutcome::Unconfirmed => return Ok(None),
        FlightOutcome::Failed(error) => transaction.error(ErrorReason::Upstream(error)).await?,
        FlightOutcome::Revalidated(stored, _) => {
            let now = clock::steady();
            let ttl = i64::try_from(stored.lifetime).unwrap_or(i64::MAX)
                - i64::try_from(stored.times.age(now)).unwrap_or(i64::MAX);
            let how = (HitSource::Revalidated(miss.reason), ttl, None);
            match serve_stored(transaction, (stored, miss.watch.looked()), how, now).await? {
                Some(answered) => answered,
                None => return Ok(None),
            }
        }
        FlightOutcome::Response(head) => {
            let outcome = CacheStatus::Forwarded {
                reason: miss.reason,
                status: Some(head.head.status),
                stored: head.not_stored.is_none(),
                collapsed,
                detail: head.not_stored.map(NotKept::name),
            };
            match respond(transaction, reader, &head, outcome).await? {
                Some(answered) => answered,
                None => return Ok(None),
            }
        }
    };
    Ok(Some(LookupResult::Answered(after, sent)))
}

/// Answers with the response of a flight; `None` when its beginning can no longer be had.
async fn respond(
    transaction: &mut Transaction<'_, '_>,
    reader: &Reader,
    flight: &FlightHead,
    outcome: CacheStatus,
) -> Result<Option<(After, Sent)>, Aborted> {
    let wanted = transaction.wanted;
    let age = flight.times.age(clock::steady());
    let (request, head) = (View(&wanted.head.headers), View(&flight.head.headers));
    if evaluate(&request, flight.head.status, &head, clock::wall()) == Conditional::NotModified {
        if flight.not_stored.is_none()
            && let Some(stand_in) = reader.another()
        {
            // This client needs no body; the next one will.
            tokio::task::spawn_local(
                async move { while let Piece::Data(_) = stand_in.next().await {} },
            );
        }
        return answer::not_modified(
            transaction.sender,
            wanted.options,
            &flight.head.headers,
            age,
            outcome,
        )
        .await
        .map(Some);
    }
    if reader.is_late() {
        return catch_up::from_beginning(transaction, (reader, flight), outcome).await;
    }
    let (source, how) = (Source::Flight(reader), (Some(age), outcome));
    match stream::streamed(
        transaction.worker,
        transaction.sender,
        wanted.options,
        flight.lines(),
        flight.length,
        how,
        source,
    )
    .await?
    {
        Streamed::Whole(after, sent) => Ok(Some((after, sent))),
        Streamed::Part(begun) => {
            catch_up::catch_up(transaction, (reader, flight), begun).await.map(Some)
        }
    }
}
