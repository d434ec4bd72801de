//! Answers a GET or HEAD from a flight, which is a fetch that several requests share. The answer is
//! the response of the flight, a stored response that the origin confirmed, or an error. This
//! module starts no fetch.

use crate::answer::rest;
use crate::answer::stream::{self, Source, Streamed, StreamedHead};
use crate::answer::transaction::Transaction;
use crate::cache::NotKept;
use crate::core::View;
use crate::fill::stale::Miss;
use crate::flight::{FlightEvent, FlightHead, FlightOutcome, Piece, Reader};
use crate::lookup::serve_stored::serve_or_make_up;
use crate::request::exchange::Wanted;
use crate::request::{Aborted, Answered, CacheStatus, ErrorReason, Hit};
use foxy_base::clock;
use foxy_rules::{Conditional, evaluate};
use std::sync::Arc;

/// The result of joining a flight (shared fetch) that another request started.
pub(crate) enum Followed {
    Answered(Answered),
    /// The response of the flight does not fit this request.
    Unusable,
    /// The response was already stale when it arrived at the proxy, so this request needs its own
    /// fetch (RFC 9111 §4).
    Stale,
}

/// Answers from a flight that another request started, if the response also fits this request.
pub(crate) async fn follow(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    reader: &Reader,
) -> Result<Followed, Aborted> {
    let outcome = match reader.event(false).await {
        FlightEvent::Outcome(outcome) => outcome,
        FlightEvent::Interim(_) => return Ok(Followed::Unusable),
    };
    let stands_in = miss.as_hit_after(&transaction.wanted.head.headers, &outcome).is_some();
    if !stands_in && !fits(transaction, miss, &outcome) {
        return Ok(Followed::Unusable);
    }
    if !stands_in && !outcome.may_answer(&transaction.control, clock::steady()) {
        // The origin must judge each user's request itself.
        if reader.is_personal() || is_personal(transaction.wanted) || outcome.sets_cookie() {
            return Ok(Followed::Unusable);
        }
        // If the fetch began after this request arrived, the response may answer this request even
        // if the response was stale on arrival.
        if !reader.began_after(transaction.came) {
            return Ok(Followed::Stale);
        }
    }
    let got = answer_from_flight(transaction, miss, reader, outcome, true).await?;
    Ok(got.map_or(Followed::Unusable, Followed::Answered))
}

/// Returns true if the request has a field that may identify a user.
pub(crate) fn is_personal(wanted: &Wanted<'_>) -> bool {
    ["authorization", "cookie"].iter().any(|name| wanted.head.headers.contains(name))
}

/// Returns true if the outcome of a flight (a shared fetch) fits a request that joined the flight.
fn fits(transaction: &Transaction<'_, '_>, miss: &Miss, outcome: &FlightOutcome) -> bool {
    let wanted = transaction.wanted;
    match outcome {
        FlightOutcome::Response(head) if head.not_stored.is_some() => false,
        FlightOutcome::Response(head) => head.list.as_ref().is_none_or(|list| {
            wanted.key.variant(list, &list.vary.key(&View(&wanted.head.headers))) == head.key
        }),
        // The request that started the flight may have validated another variant of the URL. Then
        // the outcome does not fit this request.
        FlightOutcome::Revalidated(stored, None) => {
            miss.stale.as_ref().is_some_and(|stale| stale.key.text == stored.key)
        }
        FlightOutcome::Revalidated(_, Some(_)) | FlightOutcome::Unconfirmed => false,
        FlightOutcome::Failed(_) => true,
    }
}

/// Answers with the outcome of a flight. `collapsed` means that another request started the flight.
/// Returns `None` if the confirmed response or the beginning of the flight's response is no longer
/// available. Also returns `None` if the origin confirmed another response.
pub(crate) async fn answer_from_flight(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    reader: &Reader,
    outcome: FlightOutcome,
    collapsed: bool,
) -> Result<Option<Answered>, Aborted> {
    let (looked, now) = (miss.watch.looked(), clock::steady());
    transaction.sender.answered_by(reader.responder());
    if let Some((stored, hit)) = miss.as_hit_after(&transaction.wanted.head.headers, &outcome)
        && let Some(answered) =
            Box::pin(serve_or_make_up(transaction, Arc::clone(stored), looked, hit, now)).await?
    {
        return Ok(Some(answered));
    }
    match outcome {
        FlightOutcome::Unconfirmed => Ok(None),
        FlightOutcome::Failed(error) => {
            Box::pin(transaction.error(ErrorReason::Upstream(error))).await.map(Some)
        }
        FlightOutcome::Revalidated(stored, _) => {
            let now = clock::steady();
            let hit = Hit::revalidated(&stored, miss.reason, now);
            Box::pin(serve_or_make_up(transaction, stored, looked, hit, now)).await
        }
        FlightOutcome::Response(head) => {
            let outcome = CacheStatus::Forwarded {
                reason: miss.reason,
                status: Some(head.head.status),
                stored: head.not_stored.is_none(),
                collapsed,
                detail: head.not_stored.map(NotKept::name),
            };
            respond(transaction, reader, &head, outcome).await
        }
    }
}

/// Answers with the response of a flight (shared fetch). Returns `None` if the beginning of the
/// body is no longer available.
async fn respond(
    transaction: &mut Transaction<'_, '_>,
    reader: &Reader,
    flight: &FlightHead,
    outcome: CacheStatus,
) -> Result<Option<Answered>, Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    transaction.note_rules(&flight.head, flight.length);
    let (request, head) = (View(&wanted.head.headers), View(&flight.head.headers));
    if evaluate(&request, flight.head.status, &head, clock::wall()) == Conditional::NotModified {
        if flight.not_stored.is_none()
            && let Some(stand_in) = reader.another()
        {
            // This client needs no body, but later clients do. So a task reads the flight (shared
            // fetch) to its end, even if no client needs the body. The cache then stores the
            // response.
            tokio::task::spawn_local(
                async move { while let Piece::Data(_) = stand_in.next().await {} },
            );
        }
        let age = flight.times.age(clock::steady());
        return transaction.not_modified(&flight.head.headers, age, outcome).await.map(Some);
    }
    if reader.is_late() {
        return Box::pin(rest::from_beginning(transaction, reader, flight, outcome)).await;
    }
    let head = StreamedHead::of_flight(flight, outcome);
    let begun = head.begin(worker, transaction.sender, wanted.options);
    let source = Source::Flight(reader);
    match stream::carry(worker, transaction.sender, wanted.options, begun, source).await? {
        Streamed::Whole(answered) => Ok(Some(answered)),
        Streamed::LeftBehind(begun) => {
            Box::pin(rest::catch_up(transaction, reader, flight, begun)).await.map(Some)
        }
    }
}
