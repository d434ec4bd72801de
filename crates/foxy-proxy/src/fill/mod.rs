//! Fetches responses for the cache. A *flight* is a fetch that several requests share. Its *fill*
//! sends one request to an origin, passes the response to the readers of the flight, and stores the
//! response.

pub(crate) mod body;
pub(crate) mod body_writer;
pub(crate) mod compress;
mod encoder;
mod former_owner;
pub(crate) mod outgoing;
pub(crate) mod request;
pub(crate) mod stale;
pub(crate) mod supersede;
pub(crate) mod tee;

use crate::cache::{CacheKey, NotKept, Placement, Refused, Stored, StoredBody, Watch, strip};
use crate::core::{Counter, ForwardReason, View};
use crate::fill::body::IncomingBody;
use crate::fill::body_writer::BodyWriter;
use crate::fill::former_owner::FormerOwner;
use crate::fill::request::{
    Ending, FillRequest, OriginHead, final_head, placed, prepare, why_not_storable,
};
use crate::fill::stale::{Miss, Stale, list_of};
use crate::fill::supersede::{Superseded, forget_rejected, forget_replaced, forget_what_was};
use crate::flight::{Boarding, Flight, FlightHead, FlightOutcome, Keeping, Needed, Piece};
use crate::request::Wanted;
use crate::request::exchange::can_be_validated;
use crate::upstream::{UpstreamError, UpstreamExchange};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::validate::is_about;
use foxy_rules::{NotStoredReason, StoredTimes};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) fn start(worker: &Rc<Worker>, wanted: &Wanted<'_>, miss: &Miss, flight: Arc<Flight>) {
    worker.counters.add(Counter::Forwarded, 1);
    let validated = miss.stale.as_ref().filter(|stale| stale.validate).map(|stale| &*stale.stored);
    let outgoing = outgoing::for_cache(worker, wanted.head, wanted.origin.clone(), validated);
    let exchange = Box::new(worker.upstream.exchange(outgoing).asked_by(wanted.client));
    let request = Box::new(FillRequest {
        request: wanted.head.clone(),
        origin: wanted.origin.clone(),
        base: wanted.key.clone(),
        list: miss.list_in_force().cloned(),
        stale: miss.stale.clone(),
        watch: miss.watch.of_flight(flight.epoch),
        ranged: false,
    });
    let former = FormerOwner::of(worker, wanted, miss);
    tokio::task::spawn_local(Box::pin(run(Rc::clone(worker), flight, request, former, exchange)));
}

/// Validates a stored response in the background, while the stale response is already served (RFC
/// 5861 §3). Does nothing if a flight (shared fetch) of the URL is in progress.
pub(crate) fn refresh(
    worker: &Rc<Worker>,
    wanted: &Wanted<'_>,
    stored: &Arc<Stored>,
    key: CacheKey,
    watch: Watch,
) {
    let watch = watch.renewing(true);
    let boarding = worker.shared.board(&wanted.key, None, watch.epoch, |_| true, || None);
    let Boarding::Leads(flight, reader) = boarding else { return };
    worker.counters.add(Counter::BackgroundRefreshes, 1);
    let list = list_of(&wanted.key, stored, &key);
    let validate = can_be_validated(stored);
    let stale = Stale::hold(&worker.shared.waiting, Arc::clone(stored), key, validate);
    let miss = Miss { reason: ForwardReason::Stale, list, stale: Some(stale), watch };
    start(worker, wanted, &miss, flight);
    tokio::task::spawn_local(async move { while let Piece::Data(_) = reader.next().await {} });
}

async fn run(
    worker: Rc<Worker>,
    flight: Arc<Flight>,
    fill: Box<FillRequest>,
    former: Option<FormerOwner>,
    mut exchange: Box<UpstreamExchange>,
) {
    let mut ending = Ending::of(&worker, &flight, &fill.base);
    if let Some(former) = former
        && let Some((head, exchange)) = Box::pin(former.answer(&worker, &flight)).await
    {
        ending.result = receive(&worker, &flight, &fill, head, exchange).await;
        return;
    }
    ending.result = match final_head(&worker, &flight, &fill.base, &mut exchange).await {
        Ok(origin) => receive(&worker, &flight, &fill, origin, exchange).await,
        Err(error) => {
            flight.publish(FlightOutcome::Failed(error));
            Err(error)
        }
    };
}

/// Receives a response from the origin, passes it to the readers of the flight, and stores it.
/// Returns the trailers.
pub(crate) async fn receive(
    worker: &Rc<Worker>,
    flight: &Arc<Flight>,
    fill: &FillRequest,
    mut origin: OriginHead,
    exchange: Box<UpstreamExchange>,
) -> Result<Headers, UpstreamError> {
    if origin.head.status == 304
        && let Some(stale) = fill.stale.as_ref().filter(|stale| stale.validate)
    {
        let outcome = validated(worker, fill, stale, &origin);
        return publish_validated(flight, outcome, exchange).await;
    }
    let OriginHead { length, times, .. } = origin;
    let (stored_times, status) = (times.stored(&View(&origin.head.headers)), origin.head.status);
    let not_stored = why_not_stored(worker, fill, &origin);
    let head = &mut origin.head;
    prepare(head, worker, times.civil);
    strip(&mut head.headers);
    let (cache, list) = (&worker.shared.cache, fill.list.as_ref());
    let placement = placed(cache, &fill.base, list, head, &fill.request.headers);
    let expected = not_stored
        .is_none()
        .then(|| expected(worker, fill, &placement.key, (head, length), stored_times));
    let head = match &expected {
        Some(expected) => Arc::clone(&expected.head),
        None => Arc::new(origin.head),
    };
    let refused = |why| {
        let refused = Refused { status, at: times.received, why };
        worker.remember_refusal(&fill.base, refused);
    };
    match not_stored {
        Some(why) => {
            // A 416 only means that the object lacks the requested bytes. Other bytes of the object
            // may still be stored, so the URL is not marked as refused.
            if !(fill.ranged && status == 416) {
                refused(why);
            }
            worker.shared.flights.land(fill.base.hash, flight);
            forget_rejected(worker, fill, &placement.key, status, why);
        }
        None => forget_replaced(worker, fill, &placement.key, &head, times.received).await,
    }
    let writer =
        not_stored.is_none().then(|| BodyWriter::new(worker, &fill.base, &placement.key, length));
    flight.keep(writer.as_ref().map(BodyWriter::keeping).unwrap_or_default());
    flight.publish(FlightOutcome::Response(Arc::new(FlightHead {
        head: Arc::clone(&head),
        length,
        not_stored,
        times: stored_times,
        key: placement.key.clone(),
        list: placement.list.clone(),
        set: None,
        stored: expected.clone(),
    })));
    let body = IncomingBody { worker, flight, fill, head: &head, length };
    let superseded = Superseded::new(worker, fill, &placement, status, expected.is_none());
    let let_go = |writer: Option<&BodyWriter>| {
        superseded.let_go(writer.is_none_or(BodyWriter::is_in_parts));
    };
    let (result, writer) = body.carry(exchange, writer, &refused, let_go).await;
    if let (Err(_), None, Some(writer)) = (&result, &placement.list, &writer) {
        body.leave_slices(writer, stored_times);
    }
    let (Some(expected), Ok(_)) = (expected, &result) else { return result };
    if writer.as_ref().is_none_or(BodyWriter::is_in_parts) {
        let_go(writer.as_ref());
        // The readers now have the complete body. They need not wait until the store has confirmed
        // every part (1 MiB of the body).
        flight.end(result.clone());
    }
    if let Some(writer) = writer
        && !store(worker, flight, fill, &placement, &expected, writer).await
    {
        refused(NotKept::StoreRefused);
    }
    result
}

/// Waits until the origin's 304 answer has ended, and then publishes the outcome of the validation
/// to the readers.
async fn publish_validated(
    flight: &Flight,
    outcome: FlightOutcome,
    mut exchange: Box<UpstreamExchange>,
) -> Result<Headers, UpstreamError> {
    let result = exchange.next().await.map(|_| Headers::new());
    flight.publish(outcome);
    result
}

fn validated(
    worker: &Worker,
    fill: &FillRequest,
    stale: &Stale,
    origin: &OriginHead,
) -> FlightOutcome {
    if !is_about(&View(&origin.head.headers), &View(&stale.stored.head.headers)) {
        // The 304 confirms another response than the stored response. The stored response is
        // removed, so that the next request fetches instead of validating it.
        worker.shared.cache.forget(&stale.key);
        return FlightOutcome::Unconfirmed;
    }
    match stale.clone().pending_update(fill.base.clone(), fill.watch.clone()) {
        Some(update) => {
            let request = &fill.request.headers;
            let (fresh, not_stored) = update.confirm(worker, request, &origin.head, origin.times);
            FlightOutcome::Revalidated(fresh, not_stored)
        }
        None => FlightOutcome::Unconfirmed,
    }
}

/// Adds a response to the cache if its whole body was stored. Returns true if the response was
/// added.
async fn store(
    worker: &Worker,
    flight: &Flight,
    fill: &FillRequest,
    placement: &Placement,
    expected: &Stored,
    writer: BodyWriter,
) -> bool {
    let Some((body, length)) = writer.complete(flight.needs_what_is_kept()).await else {
        return false;
    };
    let stored = Arc::new(Stored { length, body, ..expected.clone() });
    let source = fill.watch.fetched();
    worker.shared.cache.add(&fill.base, placement, &stored, source, &worker.counters);
    forget_what_was(worker, &fill.base, &stored);
    // A whole body stays in memory only if a reader still needs it. A body in parts is read from
    // the store.
    let room = match (&stored.body, flight.needs_what_is_kept()) {
        (StoredBody::Whole(body), Needed::ByReaders) => worker.shared.waiting.take(body.len()),
        (StoredBody::Whole(_), Needed::Later) => None,
        (StoredBody::Parts { .. }, _) => worker.shared.waiting.take(0),
    };
    let keeping = room.map(|room| Keeping::All { stored, _room: Arc::new(room) });
    flight.keep(keeping.unwrap_or_default());
    true
}

/// Creates the response as the cache will store it, but without its body.
fn expected(
    worker: &Worker,
    fill: &FillRequest,
    key: &CacheKey,
    (head, length): (&ResponseHead, Option<u64>),
    times: StoredTimes,
) -> Arc<Stored> {
    let (policy, body) = (worker.policy(&key.text, head, length), StoredBody::Whole(Bytes::new()));
    let stored = Stored::new(key.text.clone(), head, policy, times, 0, body);
    Arc::new(stored.begun(fill.watch.epoch.begun))
}

fn why_not_stored(worker: &Worker, fill: &FillRequest, origin: &OriginHead) -> Option<NotKept> {
    let OriginHead { head, length, times } = origin;
    let (base, request) = (&fill.base, &fill.request.headers);
    let status = head.status;
    let reason = why_not_storable(worker, base, ("GET", request), head, *length, times.civil);
    let answers_better =
        |stale: &Stale| stale.hit_after(Some(status), request, times.received).is_some();
    match reason {
        Some(reason) => Some(NotKept::Rule(reason)),
        None if fill.ranged && status == 416 => Some(NotKept::Rule(NotStoredReason::Partial)),
        None if fill.stale.as_ref().is_some_and(answers_better) => Some(NotKept::StaleIfError),
        None if length.is_some_and(|length| length > worker.shared.cache.object_limit) => {
            Some(NotKept::TooLarge)
        }
        None => None,
    }
}
