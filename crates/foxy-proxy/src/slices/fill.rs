//! Fetches one slice of an object, passes it to the readers of its flight (shared fetch), and
//! stores it with the object's other slices. A *slice* is 1 MiB of the object, aligned to 1 MiB. If
//! the origin answers with something other than the slice, the answer is handled like a fetch of
//! the whole object.

use crate::cache::purge::site_of;
use crate::cache::{
    CacheKey, NotKept, PART, Refused, Stored, StoredBody, VaryList, Watch, part_key, strip,
};
use crate::core::{Counter, View};
use crate::fill;
use crate::fill::request::{
    Ending, FillRequest, OriginHead, final_head, prepare, why_not_storable,
};
use crate::fill::stale::Stale;
use crate::flight::memory_budget::Collected;
use crate::flight::{Flight, FlightHead, FlightOutcome};
use crate::upstream::{BodyEvent, Origin, UpstreamError, UpstreamExchange};
use crate::worker::Worker;
use bytes::{Bytes, BytesMut};
use foxy_base::WallTime;
use foxy_http::{DecodeError, Headers, RequestHead, ResponseHead};
use foxy_rules::partial::{SliceAnswer, are_of_one, slice_answer, strong_validator};
use foxy_rules::{NotStoredReason, Part, Span, StoredTimes};
use foxy_store::PlacementHint;
use std::rc::Rc;
use std::sync::Arc;

/// A request to the origin for one slice (aligned MiB) of an object.
pub(crate) struct SliceRequest {
    /// The client's request. The header fields of this request may forbid the cache to store the
    /// slice.
    pub(crate) request: RequestHead,
    pub(crate) origin: Origin,
    pub(crate) base: CacheKey,
    pub(crate) flight_name: CacheKey,
    pub(crate) span: Span,
    /// The record that describes the stored slices of the object: their common head, and the
    /// object's length.
    pub(crate) set: Option<Arc<Stored>>,
    pub(crate) validate: bool,
    pub(crate) watch: Watch,
    pub(crate) list: Option<VaryList>,
}

/// The form in which the cache stores a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SliceKind {
    /// The slice contains the whole object. It is stored like an ordinary response.
    Whole,
    /// The slice is stored together with the object's other slices, because all have the same
    /// strong validator.
    Slice,
    /// The slice is stored alone as a partial response. The response has no validator that
    /// identifies further slices of the same representation.
    Part,
}

pub(crate) async fn run(
    worker: Rc<Worker>,
    flight: Arc<Flight>,
    slice: SliceRequest,
    mut exchange: Box<UpstreamExchange>,
) {
    let mut ending = Ending::of(&worker, &flight, &slice.flight_name);
    let origin = match final_head(&worker, &flight, &slice.base, &mut exchange).await {
        Ok(found) => found,
        Err(error) => {
            flight.publish(FlightOutcome::Failed(error));
            ending.result = Err(error);
            return;
        }
    };
    let set = slice.set.as_ref().filter(|_| !slice.validate);
    let view = set.map(|set| (View(&set.head.headers), set.length));
    let known = view.as_ref().map(|(view, length)| (view as _, *length));
    let (status, fields) = (origin.head.status, View(&origin.head.headers));
    match slice_answer(slice.span, status, &fields, origin.length, known) {
        SliceAnswer::Slice(part) => {
            ending.result = receive(&worker, &flight, &slice, origin, part, &mut exchange).await;
        }
        SliceAnswer::Changed => {
            worker.shared.cache.forget(&slice.base.part());
            flight.publish(FlightOutcome::Unconfirmed);
        }
        SliceAnswer::Unusable(_) => {
            let refused = Refused { status, at: origin.times.received, why: NotKept::NoSlices };
            worker.remember_refusal(&slice.base, refused);
            flight.publish(FlightOutcome::Unconfirmed);
        }
        SliceAnswer::Unsatisfiable | SliceAnswer::Other => {
            let received = receive_whole(&worker, &flight, slice, origin, exchange);
            ending.result = Box::pin(received).await;
        }
    }
}

/// Handles an answer that is not the requested slice, like the answer to a request for the whole
/// object.
async fn receive_whole(
    worker: &Rc<Worker>,
    flight: &Arc<Flight>,
    slice: SliceRequest,
    origin: OriginHead,
    exchange: Box<UpstreamExchange>,
) -> Result<Headers, UpstreamError> {
    let key = slice.base.part();
    if origin.head.status == 200 {
        if slice.set.is_some() {
            worker.shared.cache.forget(&key);
        }
        worker.shared.flights.also(slice.base.hash, flight);
    }
    let waiting = &worker.shared.waiting;
    let stale =
        slice.set.filter(|_| slice.validate).map(|stored| Stale::hold(waiting, stored, key, true));
    let SliceRequest { request, origin: server, base, watch, list, .. } = slice;
    let fill = FillRequest { request, origin: server, base, list, stale, watch, ranged: true };
    let result = fill::receive(worker, flight, &fill, origin, exchange).await;
    worker.shared.flights.land(fill.base.hash, flight);
    result
}

async fn receive(
    worker: &Rc<Worker>,
    flight: &Arc<Flight>,
    slice: &SliceRequest,
    origin: OriginHead,
    part: Part,
    exchange: &mut UpstreamExchange,
) -> Result<Headers, UpstreamError> {
    let OriginHead { mut head, times, .. } = origin;
    let (cache, base) = (&worker.shared.cache, &slice.base);
    let fields = View(&head.headers);
    let not_stored = why_not_kept(worker, slice, &head, part.complete, times.civil);
    let kind = match strong_validator(&fields) {
        _ if part.is_whole() => SliceKind::Whole,
        Some(_) => SliceKind::Slice,
        None => SliceKind::Part,
    };
    if let Some(why) = not_stored.or((kind == SliceKind::Part).then_some(NotKept::NoSlices)) {
        let refused = Refused { status: head.status, at: times.received, why };
        worker.remember_refusal(base, refused);
    }
    let stored_times = times.stored(&fields);
    prepare(&mut head, worker, times.civil);
    strip(&mut head.headers);
    let head = Arc::new(head);
    let (set, is_new_set) = set_of(worker, slice, &head, part, stored_times).await;
    if not_stored.is_some() {
        worker.shared.flights.land(slice.flight_name.hash, flight);
    } else if kind == SliceKind::Slice && is_new_set {
        let source = slice.watch.fetched();
        cache.add(base, &base.part().into(), &set, source, &worker.counters);
    }
    flight.publish(FlightOutcome::Response(Arc::new(FlightHead {
        head: Arc::clone(&head),
        length: Some(part.length()),
        not_stored,
        times: stored_times,
        key: base.part(),
        list: None,
        set: Some(Arc::clone(&set)),
        stored: None,
    })));
    let held = not_stored.is_none().then(|| worker.shared.flights.collected());
    let (result, bytes) = carry(worker, flight, exchange, part.length(), held).await;
    if let Some(bytes) = bytes {
        match kind {
            SliceKind::Slice => put(worker, slice, &set, part, bytes),
            SliceKind::Whole => {
                add_alone(worker, slice, base.clone(), &set.head, stored_times, bytes)
            }
            SliceKind::Part => add_alone(worker, slice, base.part(), &head, stored_times, bytes),
        }
    }
    result
}

/// Returns the reason not to store a slice (an aligned MiB of a body). A slice is stored if RFC 9111
/// permits the cache to store the whole response, and if the response has no Vary field.
fn why_not_kept(
    worker: &Worker,
    slice: &SliceRequest,
    head: &ResponseHead,
    length: u64,
    received: WallTime,
) -> Option<NotKept> {
    let whole = ResponseHead { status: 200, ..head.clone() };
    let request = ("GET", &slice.request.headers);
    let reason = why_not_storable(worker, &slice.base, request, &whole, Some(length), received);
    let chosen = head.headers.contains("vary").then_some(NotStoredReason::Partial);
    reason.or(chosen).map(NotKept::Rule)
}

/// Returns the set of stored slices (aligned MiB) to which a slice belongs. The flag is true if the
/// head of the set must be stored. Then the set is new, the request validated the set, or the slice
/// has another lifetime or other cache directives than the set.
async fn set_of(
    worker: &Worker,
    slice: &SliceRequest,
    head: &ResponseHead,
    part: Part,
    times: StoredTimes,
) -> (Arc<Stored>, bool) {
    let cache = &worker.shared.cache;
    let before = match &slice.set {
        Some(set) => Some(Arc::clone(set)),
        None => cache.part(&slice.base, &worker.counters).await.map(|found| found.stored),
    };
    let before = before.filter(|set| {
        let same = are_of_one(&View(&set.head.headers), &View(&head.headers));
        set.is_of_slices() && set.length == part.complete && same
    });
    let fill = match before.as_ref().map(|set| &set.body) {
        Some(StoredBody::Parts { fill }) => *fill,
        _ => cache.draw(),
    };
    let mut whole = ResponseHead { headers: head.headers.clone(), ..ResponseHead::new(200) };
    whole.headers.remove("content-range");
    let key = slice.base.part().text;
    let body = StoredBody::Parts { fill };
    let policy = worker.policy(&key, &whole, Some(part.complete));
    let newest = Stored::new(key, &whole, policy, times, part.complete, body);
    match before {
        Some(set) if !slice.validate && is_as_fresh(&set, &newest) => (set, false),
        _ => (Arc::new(newest), true),
    }
}

/// Returns true if the newest slice has the same freshness as its set. Otherwise the set takes the
/// freshness of the newest slice (RFC 9111 §3.4).
fn is_as_fresh(set: &Stored, newest: &Stored) -> bool {
    set.lifetime == newest.lifetime && set.control == newest.control
}

fn add_alone(
    worker: &Worker,
    slice: &SliceRequest,
    key: CacheKey,
    head: &ResponseHead,
    times: StoredTimes,
    body: Bytes,
) {
    let length = body.len() as u64;
    let policy = worker.policy(&key.text, head, Some(length));
    let stored =
        Stored::new(key.text.clone(), head, policy, times, length, StoredBody::Whole(body));
    let cache = &worker.shared.cache;
    let source = slice.watch.fetched();
    cache.add(&slice.base, &key.into(), &Arc::new(stored), source, &worker.counters);
}

/// Sends a whole slice to the store. Ignores the store's reply. If the store has no such slice
/// later, the proxy fetches it again.
fn put(worker: &Worker, slice: &SliceRequest, set: &Stored, part: Part, bytes: Bytes) {
    let (Some(storage), StoredBody::Parts { fill }) = (worker.shared.cache.storage(), &set.body)
    else {
        return;
    };
    if !worker.shared.cache.is_of_now(&slice.base, slice.watch.epoch) {
        return;
    }
    let key = part_key(set.object(), *fill, part.first / PART as u64);
    let hint = PlacementHint {
        site: site_of(&slice.base.text),
        size: part.length(),
        ..PlacementHint::default()
    };
    drop(storage.put_part(key, bytes, hint));
}

/// Passes a body of `expected` bytes to the readers of the flight (shared fetch). If `held` (memory
/// for the body) is given, also collects the body for the store and returns it. Such a slice is
/// fetched to its end, even if all readers leave.
async fn carry(
    worker: &Worker,
    flight: &Flight,
    exchange: &mut UpstreamExchange,
    expected: u64,
    mut held: Option<Collected>,
) -> (Result<Headers, UpstreamError>, Option<Bytes>) {
    const WRONG_LENGTH: UpstreamError = UpstreamError::BadResponse(DecodeError::TruncatedBody);
    let mut bytes = BytesMut::new();
    let mut received = 0;
    loop {
        let event = tokio::select! {
            biased;
            () = flight.deserted(), if held.is_none() => return (Err(UpstreamError::NoResponse), None),
            event = exchange.next() => event,
        };
        match event {
            Ok(BodyEvent::Data(data)) => {
                received += data.len() as u64;
                worker.counters.add_cacheable_fetched(data.len() as u64);
                if received > expected {
                    return (Err(WRONG_LENGTH), None);
                }
                if held.as_mut().is_some_and(|held| !held.take(data.len())) {
                    worker.counters.add(Counter::StoreRefusals, 1);
                    held = None;
                }
                if held.is_some() {
                    bytes.extend_from_slice(&data);
                }
                flight.write(data).await;
            }
            Ok(BodyEvent::Trailers(_)) => {}
            Ok(BodyEvent::End) if received < expected => return (Err(WRONG_LENGTH), None),
            Ok(BodyEvent::End) => return (Ok(Headers::new()), held.map(|_| bytes.freeze())),
            Err(error) => return (Err(error), None),
        }
    }
}
