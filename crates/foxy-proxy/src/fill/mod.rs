//! Fetches for the cache. A fetch drives one exchange with an origin, hands the response to the
//! flight's readers, and stores it.

pub(crate) mod body;
pub(crate) mod body_writer;
pub(crate) mod joined_part;
pub(crate) mod outgoing;
pub(crate) mod patience;
pub(crate) mod request;
pub(crate) mod stale;
pub(crate) mod storability;
pub(crate) mod supersede;
pub(crate) mod tee;
pub(crate) mod times;
pub(crate) mod update_stored;

use crate::cache::refusals::{NotKept, Refused};
use crate::cache::stored::{CacheKey, Stored, StoredBody, VaryList, strip};
use crate::core::fields::View;
use crate::fill::body::IncomingBody;
use crate::fill::body_writer::BodyWriter;
use crate::fill::request::{
    Ending, FillRequest, final_head, finish, known_length, placed, prepare,
};
use crate::fill::stale::Stale;
use crate::fill::storability::why_not_storable;
use crate::fill::supersede::{
    forget_outdated, forget_rejected, forget_replaced, forget_what_was, vacate_memory,
};
use crate::fill::times::Times;
use crate::flight::keeping::Keeping;
use crate::flight::keeping::Needed;
use crate::flight::{Flight, FlightHead, FlightOutcome};
use crate::upstream::UpstreamExchange;
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{BodyLength, Headers, ResponseHead};
use foxy_rules::validate::is_about;
use foxy_rules::{Failure, NotStoredReason, StoredTimes};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

/// Runs a fill to its end.
pub(crate) async fn run(
    worker: Rc<Worker>,
    flight: Arc<Flight>,
    fill: FillRequest,
    mut exchange: UpstreamExchange,
) {
    let _ending =
        Ending { worker: Rc::clone(&worker), flight: Arc::clone(&flight), base: fill.base.clone() };
    let requested = clock::steady();
    match final_head(&worker, &flight, &mut exchange).await {
        Err(error) => {
            flight.publish(FlightOutcome::Failed(error));
            finish(&worker, &flight, &fill.base, Err(error));
        }
        Ok((head, length)) => {
            let times = Times::until_now(requested);
            answered(&worker, &flight, fill, exchange, (head, length), times).await;
        }
    }
}

/// Goes on with the answer that came.
pub(crate) async fn answered(
    worker: &Rc<Worker>,
    flight: &Arc<Flight>,
    fill: FillRequest,
    mut exchange: UpstreamExchange,
    (mut head, length): (ResponseHead, BodyLength),
    times: Times,
) {
    if head.status == 304
        && let Some(stale) = fill.stale.as_ref().filter(|stale| stale.validate)
    {
        let outcome = validated(worker, &fill, stale, &head, times);
        let result = exchange.next().await.map(|_| Headers::new());
        flight.publish(outcome);
        return finish(worker, flight, &fill.base, result);
    }
    let initial = times.stored(&View(&head.headers));
    let (length, status, at) = (known_length(length), head.status, times.received);
    let refused = |why| worker.shared.refusals.remember(&fill.base, Refused { status, at, why });
    let not_stored = why_not_stored(worker, &fill, &head, length, times);
    prepare(&mut head, worker, times.civil);
    strip(&mut head.headers);
    let (key, list) =
        placed(&worker.shared.cache, &fill.base, fill.list.as_ref(), &head, &fill.request.headers);
    let expected = not_stored.is_none().then(|| expected(worker, &fill, &key, &head, initial));
    let head =
        expected.as_ref().map_or_else(|| Arc::new(head), |expected| Arc::clone(&expected.head));
    let shown = FlightHead {
        head: Arc::clone(&head),
        length,
        not_stored,
        times: initial,
        key: key.clone(),
        list: list.as_ref().map(|(list, _)| list.clone()),
        set: None,
        stored: expected.clone(),
    };
    match not_stored {
        Some(why) => {
            // That the object has no byte in a range says nothing of its other bytes.
            if !(fill.ranged && status == 416) {
                refused(why);
            }
            worker.shared.flights.land(fill.base.hash, flight);
            forget_rejected(worker, &fill, &key, (status, why));
        }
        None => forget_replaced(worker, &fill, (&key, &head), times.received).await,
    }
    let writer = not_stored.is_none().then(|| BodyWriter::new(worker, &fill.base, &key, length));
    flight.keep(
        writer
            .as_ref()
            .map(|writer| Keeping::confirmed(writer.confirmed_so_far()))
            .unwrap_or_default(),
    );
    flight.publish(FlightOutcome::Response(Arc::new(shown)));
    let body = IncomingBody { worker, flight, fill: &fill, head: &head, length };
    let (new_list, is_gone) =
        (list.as_ref().is_some_and(|(_, new)| *new), Cell::new(expected.is_none()));
    let outdated = Outdated { worker, fill: &fill, key: &key, new_list, status, is_gone };
    let (result, writer) =
        body.carry(exchange, writer, (&refused, |writer| outdated.let_go(writer))).await;
    if let (Err(_), None, Some(writer)) = (&result, &list, &writer) {
        body.leave_slices(writer, initial);
    }
    if let (Some(expected), Ok(_)) = (expected, &result) {
        if writer.as_ref().is_none_or(BodyWriter::is_in_parts) {
            outdated.let_go(writer.as_ref());
            // Readers do not wait until the store has confirmed every part.
            flight.end(result.clone());
        }
        if let Some(kept) = writer
            && !store(worker, flight, &fill, (&key, list.as_ref()), &expected, kept).await
        {
            refused(NotKept::StoreRefused);
        }
    }
    finish(worker, flight, &fill.base, result);
}

/// What a 304 says of a stored response.
fn validated(
    worker: &Worker,
    fill: &FillRequest,
    stale: &Stale,
    head: &ResponseHead,
    times: Times,
) -> FlightOutcome {
    if !is_about(&View(&head.headers), &View(&stale.stored.head.headers)) {
        // The origin has something else by now; the next request is not to ask about this again.
        worker.shared.cache.forget(&stale.key);
        return FlightOutcome::Unconfirmed;
    }
    match stale.clone().described(fill.base.clone(), fill.watch.clone()) {
        Some(described) => {
            let (fresh, not_stored) =
                described.confirmed(worker, &fill.request.headers, head, times);
            FlightOutcome::Revalidated(fresh, not_stored)
        }
        None => FlightOutcome::Unconfirmed,
    }
}

/// What a response replaces: gone before any reader has the last byte, since a client that has the
/// whole may tell others.
struct Outdated<'a> {
    worker: &'a Worker,
    fill: &'a FillRequest,
    key: &'a CacheKey,
    new_list: bool,
    status: u16,
    is_gone: Cell<bool>,
}

impl Outdated<'_> {
    fn let_go(&self, writer: Option<&BodyWriter>) {
        if self.is_gone.replace(true) {
            return;
        }
        let Self { worker, fill, .. } = *self;
        if writer.is_none_or(BodyWriter::is_in_parts) {
            forget_outdated(worker, fill, (self.key, self.new_list), self.status);
        } else {
            vacate_memory(worker, fill, (self.key, self.new_list));
        }
    }
}

/// Adds what a fill brought to the cache, if all of it was kept; whether it was.
async fn store(
    worker: &Worker,
    flight: &Flight,
    fill: &FillRequest,
    (key, list): (&CacheKey, Option<&(VaryList, bool)>),
    expected: &Stored,
    kept: BodyWriter,
) -> bool {
    let Some((body, length)) = kept.complete(flight.needs_what_is_kept()).await else {
        return false;
    };
    let stored = Arc::new(Stored { length, body, ..expected.clone() });
    let list = list.map(|(list, new)| (list, *new));
    worker.shared.cache.add(&fill.base, key, &stored, list, fill.watch.fetched(), &worker.counters);
    forget_what_was(worker, &fill.base, &stored);
    // A body that nobody reads back now need not be held for those who take their time.
    let room = match (&stored.body, flight.needs_what_is_kept()) {
        (StoredBody::Whole(body), Needed::ByReaders) => worker.shared.waiting.take(body.len()),
        (StoredBody::Whole(_), Needed::Later) => None,
        (StoredBody::Parts { .. }, _) => worker.shared.waiting.take(0),
    };
    let keeping = room.map(|room| Keeping::All { stored, _room: Arc::new(room) });
    flight.keep(keeping.unwrap_or_default());
    true
}

/// The response as it will be stored, but for its body.
fn expected(
    worker: &Worker,
    fill: &FillRequest,
    key: &CacheKey,
    head: &ResponseHead,
    times: StoredTimes,
) -> Arc<Stored> {
    let (policy, body) = (worker.settings().policy(), StoredBody::Whole(Bytes::new()));
    let stored = Stored::new(key.text.clone(), head, policy, times, 0, body);
    Arc::new(stored.begun(fill.watch.epoch.begun))
}

/// Why a response is not stored, if it is not.
fn why_not_stored(
    worker: &Worker,
    fill: &FillRequest,
    head: &ResponseHead,
    length: Option<u64>,
    times: Times,
) -> Option<NotKept> {
    let (request, response) = (("GET", &fill.request.headers), (head.status, &head.headers));
    let reason = why_not_storable(worker, &fill.base, request, response, times.civil);
    let answers_better = |stale: &Stale| {
        stale
            .permit_after(Failure::Status(head.status), &fill.request.headers, times.received)
            .is_some()
    };
    match reason {
        Some(reason) => Some(NotKept::Rule(reason)),
        None if fill.ranged && head.status == 416 => Some(NotKept::Rule(NotStoredReason::Partial)),
        None if fill.stale.as_ref().is_some_and(answers_better) => Some(NotKept::StaleIfError),
        None if length.is_some_and(|length| length > worker.shared.cache.object_limit) => {
            Some(NotKept::TooLarge)
        }
        None => None,
    }
}
