//! Whether what another request's flight brings answers this one too (RFC 9111 §4). Who begins
//! flights, and what follows when it does not, is in the parent module.

use crate::answer::transaction::Transaction;
use crate::core::fields::View;
use crate::fill::stale::Miss;
use crate::flight::{FlightEvent, FlightOutcome, Reader};
use crate::lookup::answer_from_flight::answer_from_flight;
use crate::lookup::result::LookupResult;
use crate::request::sent::Aborted;
use foxy_base::clock;

/// What another request's flight was good for.
pub(crate) enum Followed {
    /// It answered.
    Answered(LookupResult),
    /// What it brought is not for this request.
    Not,
    /// What it brought may not be used any more without asking the origin again (RFC 9111 §4).
    Stale,
}

/// Reads another request's flight.
pub(crate) async fn follow(
    transaction: &mut Transaction<'_, '_>,
    miss: &Miss,
    reader: &Reader,
) -> Result<Followed, Aborted> {
    let outcome = match reader.event(false).await {
        FlightEvent::Outcome(outcome) => outcome,
        FlightEvent::Interim(_) => return Ok(Followed::Not),
    };
    let stands_in = miss.as_hit_after(&transaction.wanted.head.headers, &outcome).is_some();
    if !stands_in && !brings(transaction, miss, &outcome) {
        return Ok(Followed::Not);
    }
    // An origin that was asked after this request came answers it too, whatever it says of
    // freshness.
    if !stands_in
        && !reader.began_after(transaction.came)
        && !outcome.may_answer(&transaction.control, clock::steady())
    {
        return Ok(Followed::Stale);
    }
    let got = answer_from_flight(transaction, miss, reader, outcome, true).await?;
    Ok(got.map_or(Followed::Not, Followed::Answered))
}

/// Whether what a flight came to is for a request that did not begin it.
fn brings(transaction: &Transaction<'_, '_>, miss: &Miss, outcome: &FlightOutcome) -> bool {
    let wanted = transaction.wanted;
    match outcome {
        FlightOutcome::Response(head) if head.not_stored.is_some() => false,
        FlightOutcome::Response(head) => head.list.as_ref().is_none_or(|list| {
            wanted.key.variant(list, &list.vary.key(&View(&wanted.head.headers))) == head.key
        }),
        // The leader may have asked about another variant.
        FlightOutcome::Revalidated(stored, None) => {
            miss.stale.as_ref().is_some_and(|stale| stale.key.text == stored.key)
        }
        FlightOutcome::Revalidated(_, Some(_)) | FlightOutcome::Unconfirmed => false,
        FlightOutcome::Failed(_) => true,
    }
}
