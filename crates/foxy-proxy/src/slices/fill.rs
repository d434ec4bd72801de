//! A fetch of one aligned slice of an object: drives one exchange with an origin, hands what comes
//! to the flight's readers, and stores it under the object's set of slices. What may be believed of
//! the answer is decided in foxy-rules; an answer that is no slice goes on as a fill of the whole.

use crate::cache::purge::site_of;
use crate::cache::refusals::{NotKept, Refused};
use crate::cache::storage::{PART, part_key};
use crate::cache::stored::{CacheKey, Stored, StoredBody, VaryList, strip};
use crate::cache::watch::Watch;
use crate::core::counters::Counter;
use crate::core::fields::View;
use crate::fill;
use crate::fill::request::{Ending, FillRequest, finish, known_length, prepare};
use crate::fill::stale::Stale;
use crate::fill::storability::why_not_storable;
use crate::fill::times::Times;
use crate::flight::memory_budget::Collected;
use crate::flight::{Flight, FlightHead, FlightOutcome};
use crate::upstream::{BodyEvent, Origin, UpstreamError, UpstreamExchange};
use crate::worker::Worker;
use bytes::{Bytes, BytesMut};
use foxy_base::{WallTime, clock};
use foxy_http::{BodyLength, DecodeError, Headers, RequestHead, ResponseHead};
use foxy_rules::partial::are_of_one;
use foxy_rules::slice::{SliceAnswer, slice_answer, strong_validator};
use foxy_rules::{NotStoredReason, Part, Span, StoredTimes};
use foxy_store::PlacementHint;
use std::rc::Rc;
use std::sync::Arc;

/// What a fetch of a slice is about.
pub(crate) struct SliceRequest {
    /// The client's request, whose fields may forbid storing.
    pub(crate) request: RequestHead,
    pub(crate) origin: Origin,
    /// The URL's key.
    pub(crate) base: CacheKey,
    /// The name of the flight.
    pub(crate) name: CacheKey,
    /// The bytes the origin was asked for.
    pub(crate) asked: Span,
    /// What the object's other slices are of.
    pub(crate) set: Option<Arc<Stored>>,
    /// Whether the origin was asked if that is still good.
    pub(crate) validate: bool,
    pub(crate) watch: Watch,
    /// The Vary list in force.
    pub(crate) list: Option<VaryList>,
}

/// How a slice is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FillKind {
    /// It is the whole object, and stored as that.
    Whole,
    /// With others of the same strong validator.
    Slice,
    /// Alone: nothing says what other parts are of the same.
    Part,
}

/// Runs a fetch to its end.
pub(crate) async fn run(
    worker: Rc<Worker>,
    flight: Arc<Flight>,
    slice: SliceRequest,
    mut exchange: UpstreamExchange,
) {
    let _ending = Ending {
        worker: Rc::clone(&worker),
        flight: Arc::clone(&flight),
        base: slice.name.clone(),
    };
    let requested = clock::steady();
    let (head, length) =
        match crate::fill::request::final_head(&worker, &flight, &mut exchange).await {
            Ok(found) => found,
            Err(error) => {
                flight.publish(FlightOutcome::Failed(error));
                return finish(&worker, &flight, &slice.name, Err(error));
            }
        };
    let times = Times::until_now(requested);
    let set = slice.set.as_ref().filter(|_| !slice.validate);
    let view = set.map(|set| (View(&set.head.headers), set.length));
    let known = view.as_ref().map(|(view, length)| (view, *length));
    let fields = View(&head.headers);
    match slice_answer(slice.asked, head.status, &fields, known_length(length), known) {
        SliceAnswer::Slice(part) => {
            take(&worker, &flight, &slice, &mut exchange, (head, part), times).await
        }
        SliceAnswer::Changed => {
            worker.shared.cache.forget(&slice.base.part());
            flight.publish(FlightOutcome::Unconfirmed);
        }
        SliceAnswer::Unusable(_) => {
            let refused =
                Refused { status: head.status, at: times.received, why: NotKept::NoSlices };
            worker.shared.refusals.remember(&slice.base, refused);
            flight.publish(FlightOutcome::Unconfirmed);
        }
        SliceAnswer::Unsatisfiable | SliceAnswer::Other => {
            other(&worker, &flight, slice, exchange, (head, length), times).await;
        }
    }
}

/// Goes on with an answer that is no slice, as with that to a request for the whole.
async fn other(
    worker: &Rc<Worker>,
    flight: &Arc<Flight>,
    slice: SliceRequest,
    exchange: UpstreamExchange,
    (head, length): (ResponseHead, BodyLength),
    times: Times,
) {
    let key = slice.base.part();
    if head.status == 200 {
        if slice.set.is_some() {
            worker.shared.cache.forget(&key);
        }
        worker.shared.flights.also(slice.base.hash, flight);
    }
    let waiting = &worker.shared.waiting;
    let stale =
        slice.set.filter(|_| slice.validate).map(|stored| Stale::hold(waiting, stored, key, true));
    let SliceRequest { request, origin, base, watch, list, .. } = slice;
    let request = FillRequest { request, origin, base, list, stale, watch, ranged: true };
    fill::answered(worker, flight, request, exchange, (head, length), times).await;
}

/// Takes in a slice.
async fn take(
    worker: &Rc<Worker>,
    flight: &Arc<Flight>,
    slice: &SliceRequest,
    exchange: &mut UpstreamExchange,
    (mut head, part): (ResponseHead, Part),
    times: Times,
) {
    let cache = &worker.shared.cache;
    let fields = View(&head.headers);
    let why = why_not_kept(worker, slice, &head, times.civil);
    let kind = match strong_validator(&fields) {
        _ if part.is_whole() => FillKind::Whole,
        Some(_) => FillKind::Slice,
        None => FillKind::Part,
    };
    let not_again = why.or((kind == FillKind::Part).then_some(NotKept::NoSlices));
    if let Some(why) = not_again {
        worker
            .shared
            .refusals
            .remember(&slice.base, Refused { status: head.status, at: times.received, why });
    }
    let initial = times.stored(&fields);
    prepare(&mut head, worker, times.civil);
    strip(&mut head.headers);
    let head = Arc::new(head);
    let (set, begun) = set_of(worker, slice, &head, part, initial).await;
    let shown = FlightHead {
        head: Arc::clone(&head),
        length: Some(part.length()),
        not_stored: why,
        times: initial,
        key: slice.base.part(),
        list: None,
        set: Some(Arc::clone(&set)),
        stored: None,
    };
    match why {
        Some(_) => worker.shared.flights.land(slice.name.hash, flight),
        None if kind == FillKind::Slice && begun => {
            cache.add(
                &slice.base,
                &slice.base.part(),
                &set,
                None,
                slice.watch.fetched(),
                &worker.counters,
            );
        }
        None => {}
    }
    flight.publish(FlightOutcome::Response(Arc::new(shown)));
    let held = why.is_none().then(|| worker.shared.flights.collected());
    let (result, bytes) = carry(worker, flight, exchange, part.length(), held).await;
    let base = &slice.base;
    match (bytes, kind) {
        (None, _) => {}
        (Some(bytes), FillKind::Slice) => put(worker, slice, &set, part, bytes),
        (Some(bytes), FillKind::Whole) => {
            add_alone(worker, slice, base.clone(), (&set.head, initial), bytes);
        }
        (Some(bytes), FillKind::Part) => {
            add_alone(worker, slice, base.part(), (&head, initial), bytes)
        }
    }
    finish(worker, flight, &slice.name, result);
}

/// Why a slice is not kept, if it is not: it is stored as its whole would be, if no request field
/// chose it.
fn why_not_kept(
    worker: &Worker,
    slice: &SliceRequest,
    head: &ResponseHead,
    received: WallTime,
) -> Option<NotKept> {
    let (request, fields) = (&slice.request.headers, &head.headers);
    let reason = why_not_storable(worker, &slice.base, ("GET", request), (200, fields), received);
    let chosen = fields.contains("vary").then_some(NotStoredReason::Partial);
    reason.or(chosen).map(NotKept::Rule)
}

/// The set a slice belongs to, and whether it is to be stored: one that is not there yet, or with
/// new fields.
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
        None => cache.part(&slice.base, &worker.counters).await.map(|(stored, _)| stored),
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
    let policy = worker.settings().policy();
    let newest = Stored::new(key, &whole, policy, times, part.complete, body);
    match before {
        Some(set) if !slice.validate && is_as_fresh(&set, &newest) => (set, false),
        _ => (Arc::new(newest), true),
    }
}

/// Whether a slice says of freshness what is known of its object. What the newest one says holds
/// for all (RFC 9111 §3.4).
fn is_as_fresh(set: &Stored, newest: &Stored) -> bool {
    set.lifetime == newest.lifetime && set.control == newest.control
}

/// Adds a slice that no other slice belongs with.
fn add_alone(
    worker: &Worker,
    slice: &SliceRequest,
    key: CacheKey,
    (head, times): (&ResponseHead, StoredTimes),
    body: Bytes,
) {
    let (policy, length) = (worker.settings().policy(), body.len() as u64);
    let stored =
        Stored::new(key.text.clone(), head, policy, times, length, StoredBody::Whole(body));
    let cache = &worker.shared.cache;
    let by = slice.watch.fetched();
    cache.add(&slice.base, &key, &Arc::new(stored), None, by, &worker.counters);
}

/// Hands a whole slice to the store. Whether it takes it nobody waits for: what is not there is
/// fetched again.
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

/// Carries a body of `expected` bytes to the readers; gives all of it where it is to be kept. Such
/// a slice is fetched to its end also when nobody reads it any more.
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
                worker.counters.add(Counter::BytesFromOrigins, data.len() as u64);
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
