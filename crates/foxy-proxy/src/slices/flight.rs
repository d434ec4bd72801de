//! One slice of an object from its origin, for all who want it at the same time: boards its flight,
//! starts its fetch, and says what came of it. What is done with the bytes is in `slices::send`.

use crate::answer::transaction::Transaction;
use crate::cache::refusals::NotKept;
use crate::cache::stored::{CacheKey, Stored, VaryList};
use crate::cache::watch::Watch;
use crate::core::counters::Counter;
use crate::core::fields::View;
use crate::core::forward_reason::ForwardReason;
use crate::fill::outgoing;
use crate::flight::flights::Boarding;
use crate::flight::{Flight, FlightEvent, FlightOutcome, Reader};
use crate::request::cache_status::CacheStatus;
use crate::slices::fill::{self, SliceRequest};
use foxy_base::clock;
use foxy_rules::Span;
use foxy_rules::partial::are_of_one;
use foxy_rules::slice::strong_validator;
use std::rc::Rc;
use std::sync::Arc;

/// What is asked of an origin.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// The slice.
    pub(crate) asked: Span,
    /// What it must be of, or may be, if that is to be validated.
    pub(crate) set: Option<&'a Arc<Stored>>,
    pub(crate) validate: bool,
    /// Whether no other request's fetch will do.
    pub(crate) alone: bool,
    /// The Vary list in force.
    pub(crate) list: Option<&'a VaryList>,
}

/// A slice that is on its way.
pub(crate) struct Fetched {
    pub(crate) reader: Reader,
    pub(crate) asked: Span,
    /// What it is of.
    pub(crate) set: Arc<Stored>,
    /// Whether it is kept, so that it can be read again and others of the same fetched.
    pub(crate) lasting: bool,
    pub(crate) age: u64,
    not_stored: Option<NotKept>,
    collapsed: bool,
}

impl Fetched {
    /// How an answer that begins with it came about.
    pub(crate) fn outcome(&self, reason: ForwardReason) -> CacheStatus {
        CacheStatus::Forwarded {
            reason,
            status: Some(206),
            stored: self.not_stored.is_none(),
            collapsed: self.collapsed,
            detail: self.not_stored.map(NotKept::name),
        }
    }
}

/// What an origin answered.
pub(crate) enum Sliced {
    /// The slice.
    Slice(Fetched),
    /// What is known of the object is still good.
    Confirmed(Arc<Stored>),
    /// Another response, or none; and whether another request's fetch brought it.
    Other(Reader, FlightOutcome, bool),
    /// Nothing that can be used.
    Not,
}

/// Gets a slice, alone or with others who want the same.
pub(crate) async fn fetch(
    transaction: &Transaction<'_, '_>,
    watch: &Watch,
    ask: Ask<'_>,
) -> Sliced {
    let Transaction { worker, wanted, .. } = *transaction;
    if !ask.alone {
        let flights = &worker.shared.flights;
        // More of what this request began with is not asked for its freshness.
        let goes_on = ask.set.is_some() && !ask.validate;
        let fits = |flight: &Flight| {
            let may_join = worker.shared.cache.may_join(&wanted.key, None, flight.epoch);
            may_join && (goes_on || flight.may_answer(&transaction.control, clock::steady()))
        };
        match flights.board(name(transaction, ask).hash, watch.again().epoch, fits, || None) {
            Boarding::Leads(flight, reader) => {
                start(transaction, watch, ask, flight);
                return outcome(reader, ask, false).await;
            }
            Boarding::Follows(reader) => {
                let FlightEvent::Outcome(found) = reader.event(false).await else {
                    return Sliced::Not;
                };
                let fresh = || found.may_answer(&transaction.control, clock::steady());
                if may_follow(&found) && (goes_on || reader.began_after(watch.looked()) || fresh())
                {
                    worker.counters.add(Counter::Collapsed, 1);
                    return outcome(reader, ask, true).await;
                }
            }
            Boarding::Landed(_) => {}
        }
    }
    let (flight, reader) = worker.shared.flights.alone(watch.again().epoch);
    start(transaction, watch, ask, flight);
    outcome(reader, ask, false).await
}

/// The name of a slice's flight. One that validates brings another answer.
fn name(transaction: &Transaction<'_, '_>, ask: Ask<'_>) -> CacheKey {
    let kind: &[u8] = if ask.validate { b"\nvalidated slice " } else { b"\nslice " };
    CacheKey::new([&transaction.wanted.key.text[..], kind, &ask.asked.first.to_be_bytes()].concat())
}

fn start(transaction: &Transaction<'_, '_>, watch: &Watch, ask: Ask<'_>, flight: Arc<Flight>) {
    let Transaction { worker, wanted, .. } = *transaction;
    worker.counters.add(Counter::Forwarded, 1);
    let origin = wanted.origin.clone();
    let outgoing = match ask.set {
        Some(set) if ask.validate => {
            outgoing::for_validated_range(worker, wanted.head, origin, ask.asked, set)
        }
        set => {
            outgoing::for_range(worker, wanted.head, origin, ask.asked, set.map(|set| &*set.head))
        }
    };
    let request = SliceRequest {
        request: wanted.head.clone(),
        origin: wanted.origin.clone(),
        base: wanted.key.clone(),
        name: name(transaction, ask),
        asked: ask.asked,
        set: ask.set.cloned(),
        validate: ask.validate,
        watch: watch.of_flight(flight.epoch),
        list: ask.list.cloned(),
    };
    let exchange = worker.upstream.exchange(outgoing).asked_by(wanted.client);
    tokio::task::spawn_local(fill::run(Rc::clone(worker), flight, request, exchange));
}

/// Whether what a flight brings may answer a request that did not begin it.
fn may_follow(outcome: &FlightOutcome) -> bool {
    match outcome {
        FlightOutcome::Response(head) => head.not_stored.is_none() && head.list.is_none(),
        FlightOutcome::Revalidated(_, not_stored) => not_stored.is_none(),
        FlightOutcome::Unconfirmed | FlightOutcome::Failed(_) => true,
    }
}

async fn outcome(reader: Reader, ask: Ask<'_>, collapsed: bool) -> Sliced {
    let FlightEvent::Outcome(outcome) = reader.event(false).await else { return Sliced::Not };
    match outcome {
        FlightOutcome::Response(head) => match &head.set {
            Some(set) => {
                let fits = |known: &&Arc<Stored>| {
                    let fields = (View(&known.head.headers), View(&set.head.headers));
                    known.length == set.length && are_of_one(&fields.0, &fields.1)
                };
                if !ask.validate && !ask.set.as_ref().is_none_or(fits) {
                    return Sliced::Not;
                }
                Sliced::Slice(Fetched {
                    reader,
                    asked: ask.asked,
                    set: Arc::clone(set),
                    lasting: head.not_stored.is_none()
                        && strong_validator(&View(&set.head.headers)).is_some(),
                    age: head.times.age(clock::steady()),
                    not_stored: head.not_stored,
                    collapsed,
                })
            }
            None => Sliced::Other(reader, FlightOutcome::Response(head), collapsed),
        },
        FlightOutcome::Revalidated(set, _) => Sliced::Confirmed(set),
        FlightOutcome::Unconfirmed => Sliced::Not,
        FlightOutcome::Failed(error) => {
            Sliced::Other(reader, FlightOutcome::Failed(error), collapsed)
        }
    }
}
