//! Fetches one slice of an object, and shares the fetch with other requests for the same slice. A
//! *slice* is 1 MiB of the object, aligned to 1 MiB.

use crate::answer::transaction::Transaction;
use crate::cache::{CacheKey, NotKept, Stored, VaryList, Watch};
use crate::core::{Counter, ForwardReason, View};
use crate::fill::outgoing;
use crate::flight::{Boarding, Flight, FlightEvent, FlightOutcome, Reader};
use crate::request::CacheStatus;
use crate::slices::fill::{self, SliceRequest};
use foxy_base::clock;
use foxy_rules::Span;
use foxy_rules::partial::{are_of_one, strong_validator};
use std::rc::Rc;
use std::sync::Arc;

/// A request for one slice (aligned MiB) of an object.
#[derive(Clone, Copy)]
pub(crate) struct SliceFetch<'a> {
    pub(crate) span: Span,
    /// The stored set of slices to which the slice must belong. If `validate` is true, the origin
    /// must confirm this set.
    pub(crate) set: Option<&'a Arc<Stored>>,
    pub(crate) validate: bool,
    /// True if no other request may share the fetch.
    pub(crate) alone: bool,
    /// The current Vary list of the URL: the request headers on which its response depends.
    pub(crate) list: Option<&'a VaryList>,
}

/// A slice whose fetch is in progress.
pub(crate) struct FetchedSlice {
    pub(crate) reader: Reader,
    pub(crate) span: Span,
    /// The set of slices to which the slice belongs.
    pub(crate) set: Arc<Stored>,
    /// True if the slice is being stored, and its set has a strong validator. Only then can the
    /// slice be read again, and only then can more slices of the same representation be fetched.
    pub(crate) lasting: bool,
    pub(crate) age: u64,
    not_stored: Option<NotKept>,
    collapsed: bool,
}

impl FetchedSlice {
    /// Returns the cache status of an answer that begins with this slice.
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

/// The outcome of a fetch to which the origin did not answer with the slice.
pub(crate) struct OtherAnswer {
    pub(crate) reader: Reader,
    pub(crate) outcome: FlightOutcome,
    /// True if another request started the flight (shared fetch).
    pub(crate) collapsed: bool,
}

/// The result of fetching a slice.
pub(crate) enum FetchResult {
    Slice(FetchedSlice),
    /// The origin confirmed that the stored slices are still valid.
    Confirmed(Arc<Stored>),
    Other(OtherAnswer),
    Unusable,
}

/// Fetches a slice, alone or together with other requests.
pub(crate) async fn fetch(
    transaction: &Transaction<'_, '_>,
    watch: &Watch,
    slice: SliceFetch<'_>,
) -> FetchResult {
    let Transaction { worker, wanted, .. } = *transaction;
    if !slice.alone {
        let flights = &worker.shared.flights;
        // If the answer has already begun, its next slices need not be fresh.
        let goes_on = slice.set.is_some() && !slice.validate;
        let fits = |flight: &Flight| {
            let may_join = worker.shared.cache.may_join(&wanted.key, None, flight.epoch);
            may_join && (goes_on || flight.may_answer(&transaction.control, clock::steady()))
        };
        let name = flight_name(transaction, slice).hash;
        match flights.board(name, watch.again().epoch, fits, || None) {
            Boarding::Leads(flight, reader) => {
                start(transaction, watch, slice, flight);
                return result(reader, slice, false).await;
            }
            Boarding::Follows(reader) => {
                let FlightEvent::Outcome(found) = reader.event(false).await else {
                    return FetchResult::Unusable;
                };
                let fresh = || found.may_answer(&transaction.control, clock::steady());
                if may_follow(&found) && (goes_on || reader.began_after(watch.looked()) || fresh())
                {
                    worker.counters.add(Counter::Collapsed, 1);
                    return result(reader, slice, true).await;
                }
            }
            Boarding::Landed(_) => {}
        }
    }
    let (flight, reader) = worker.shared.flights.alone(watch.again().epoch);
    start(transaction, watch, slice, flight);
    result(reader, slice, false).await
}

/// Returns the name under which other requests find the flight of a slice. A flight that also
/// validates the stored slices has another name, because its answer differs.
fn flight_name(transaction: &Transaction<'_, '_>, slice: SliceFetch<'_>) -> CacheKey {
    let kind: &[u8] = if slice.validate { b"\nvalidated slice " } else { b"\nslice " };
    let first = slice.span.first.to_be_bytes();
    CacheKey::new([&transaction.wanted.key.text[..], kind, &first].concat())
}

fn start(
    transaction: &Transaction<'_, '_>,
    watch: &Watch,
    slice: SliceFetch<'_>,
    flight: Arc<Flight>,
) {
    let Transaction { worker, wanted, .. } = *transaction;
    worker.counters.add(Counter::Forwarded, 1);
    let origin = wanted.origin.clone();
    let outgoing = match slice.set {
        Some(set) if slice.validate => {
            outgoing::for_validated_range(worker, wanted.head, origin, slice.span, set)
        }
        set => {
            let head = set.map(|set| &*set.head);
            outgoing::for_range(worker, wanted.head, origin, slice.span, head)
        }
    };
    let request = SliceRequest {
        request: wanted.head.clone(),
        origin: wanted.origin.clone(),
        base: wanted.key.clone(),
        flight_name: flight_name(transaction, slice),
        span: slice.span,
        set: slice.set.cloned(),
        validate: slice.validate,
        watch: watch.of_flight(flight.epoch),
        list: slice.list.cloned(),
    };
    let exchange = Box::new(worker.upstream.exchange(outgoing).asked_by(wanted.client));
    let filling = fill::run(Rc::clone(worker), flight, request, exchange);
    tokio::task::spawn_local(Box::pin(filling));
}

/// Returns true if the outcome of a flight (a shared fetch) may answer a request that joined the
/// flight.
fn may_follow(outcome: &FlightOutcome) -> bool {
    match outcome {
        FlightOutcome::Response(head) => head.not_stored.is_none() && head.list.is_none(),
        FlightOutcome::Revalidated(_, not_stored) => not_stored.is_none(),
        FlightOutcome::Unconfirmed | FlightOutcome::Failed(_) => true,
    }
}

async fn result(reader: Reader, slice: SliceFetch<'_>, collapsed: bool) -> FetchResult {
    let FlightEvent::Outcome(outcome) = reader.event(false).await else {
        return FetchResult::Unusable;
    };
    match outcome {
        FlightOutcome::Response(head) if head.set.is_some() => {
            let Some(set) = head.set.clone() else { return FetchResult::Unusable };
            let view = View(&set.head.headers);
            let fits = |known: &&Arc<Stored>| {
                known.length == set.length && are_of_one(&View(&known.head.headers), &view)
            };
            if !slice.validate && !slice.set.as_ref().is_none_or(fits) {
                return FetchResult::Unusable;
            }
            let lasting = head.not_stored.is_none() && strong_validator(&view).is_some();
            FetchResult::Slice(FetchedSlice {
                reader,
                span: slice.span,
                set,
                lasting,
                age: head.times.age(clock::steady()),
                not_stored: head.not_stored,
                collapsed,
            })
        }
        FlightOutcome::Revalidated(set, _) => FetchResult::Confirmed(set),
        FlightOutcome::Unconfirmed => FetchResult::Unusable,
        outcome @ (FlightOutcome::Response(_) | FlightOutcome::Failed(_)) => {
            FetchResult::Other(OtherAnswer { reader, outcome, collapsed })
        }
    }
}
