//! Whether what another request's flight brings answers this one too (RFC 9111 §4). Who begins
//! flights, and what follows when it does not, is in the parent module.

use crate::cache::epoch::Epoch;
use crate::client::sender::Sender;
use crate::core::fields::View;
use crate::fill::stale::Miss;
use crate::flight::{FlightEvent, Outcome, Reader};
use crate::lookup::answer_from_flight::answer_from_flight;
use crate::lookup::result::LookupResult;
use crate::request::sent::Aborted;
use crate::request::wanted::Wanted;
use crate::worker::Worker;
use foxy_base::clock;
use foxy_rules::RequestControl;
use std::rc::Rc;

/// What another request's flight was good for.
pub(crate) enum Followed {
    /// It answered.
    Answered(LookupResult),
    /// What it brought is not for this request.
    Not,
    /// What it brought may not be used any more without asking the origin again (RFC 9111 §4).
    Stale,
}

/// Reads another request's flight, for a request that `came` then.
pub(crate) async fn follow(
    worker: &Rc<Worker>,
    sender: &mut Sender<'_>,
    wanted: &Wanted<'_>,
    control: &RequestControl,
    miss: &Miss,
    (reader, came): (&Reader, Epoch),
) -> Result<Followed, Aborted> {
    let outcome = match reader.event(false).await {
        FlightEvent::Outcome(outcome) => outcome,
        FlightEvent::Interim(_) => return Ok(Followed::Not),
    };
    let stands_in = miss.as_hit_after(&wanted.head.headers, &outcome).is_some();
    if !stands_in && !brings(wanted, miss, &outcome) {
        return Ok(Followed::Not);
    }
    // An origin that was asked after this request came answers it too, whatever it says of
    // freshness.
    if !stands_in && !reader.began_after(came) && !outcome.may_answer(control, clock::steady()) {
        return Ok(Followed::Stale);
    }
    let got = answer_from_flight(worker, sender, wanted, miss, reader, outcome, true).await?;
    Ok(got.map_or(Followed::Not, Followed::Answered))
}

/// Whether what a flight came to is for a request that did not begin it.
fn brings(wanted: &Wanted<'_>, miss: &Miss, outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Response(head) if head.not_stored.is_some() => false,
        Outcome::Response(head) => head.list.as_ref().is_none_or(|list| {
            wanted.key.variant(list, &list.vary.key(&View(&wanted.head.headers))) == head.key
        }),
        // The leader may have asked about another variant.
        Outcome::Revalidated(stored, None) => {
            miss.stale.as_ref().is_some_and(|stale| stale.key.text == stored.key)
        }
        Outcome::Revalidated(_, Some(_)) | Outcome::Unconfirmed => false,
        Outcome::Failed(_) => true,
    }
}
