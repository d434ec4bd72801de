//! Steps that all fetches for the cache share: read the origin's head, decide where to store the
//! response, and end the flight. A *flight* is a fetch that several requests share.

use crate::cache::{Cache, CacheKey, Placement, VaryList, Watch};
use crate::core::View;
use crate::fill::stale::Stale;
use crate::flight::{Flight, Keeping};
use crate::upstream::{HeadEvent, Origin, UpstreamError, UpstreamExchange};
use crate::worker::Worker;
use foxy_base::{WallTime, clock};
use foxy_http::{BodyLength, Headers, RequestHead, ResponseHead, strip_hop_by_hop};
use foxy_rules::fields::Fields;
use foxy_rules::storable::Exchange;
use foxy_rules::{NotStoredReason, Storability, StoredTimes, Vary, storability};
use std::rc::Rc;
use std::sync::Arc;

pub(crate) struct FillRequest {
    /// The client's request. The header fields of this request select the variant of the URL, and
    /// may forbid storing.
    pub(crate) request: RequestHead,
    pub(crate) origin: Origin,
    pub(crate) base: CacheKey,
    pub(crate) list: Option<VaryList>,
    /// A stored response that the proxy may not serve without contacting the origin.
    pub(crate) stale: Option<Stale>,
    pub(crate) watch: Watch,
    pub(crate) ranged: bool,
}

pub(crate) struct OriginHead {
    pub(crate) head: ResponseHead,
    pub(crate) length: Option<u64>,
    pub(crate) times: Times,
}

pub(crate) async fn final_head(
    worker: &Worker,
    flight: &Flight,
    key: &CacheKey,
    exchange: &mut UpstreamExchange,
) -> Result<OriginHead, UpstreamError> {
    let requested = clock::steady();
    loop {
        if flight.is_deserted() {
            return Err(UpstreamError::NoResponse);
        }
        let next = tokio::select! {
            biased;
            next = exchange.head() => next,
            () = flight.deserted() => return Err(UpstreamError::NoResponse),
        };
        match next? {
            HeadEvent::Continue => {}
            HeadEvent::Interim(head) => flight.interim(head),
            HeadEvent::Final(mut head, length) => {
                worker.count_response(head.version);
                // This call fails if an earlier exchange of the flight (shared fetch) has already
                // recorded the server that answered.
                let _ = flight.responder.set(exchange.responder());
                let (length, times) = (known_length(length), Times::until_now(requested));
                worker.settings().rules.edit_response(&key.text, &mut head, length);
                return Ok(OriginHead { head, length, times });
            }
        }
    }
}

/// Returns the length of the body in bytes, if the origin announced it.
pub(crate) const fn known_length(length: BodyLength) -> Option<u64> {
    match length {
        BodyLength::Length(bytes) => Some(bytes),
        BodyLength::None => Some(0),
        BodyLength::Chunked | BodyLength::UntilClose | BodyLength::Tunnel => None,
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Time of the request on the steady clock, which never goes back.
    requested: WallTime,
    /// Time of the answer on the steady clock.
    pub(crate) received: WallTime,
    /// Time of the answer on the wall clock. This time is compared with the dates in the answer.
    pub(crate) civil: WallTime,
}

impl Times {
    /// Returns the times of an answer that arrives now. `requested` is a time on the steady clock.
    pub(crate) fn until_now(requested: WallTime) -> Self {
        Self { requested, received: clock::steady(), civil: clock::wall() }
    }

    pub(crate) fn stored(self, response: &(impl Fields + ?Sized)) -> StoredTimes {
        let took = self.received.0.saturating_sub(self.requested.0);
        let requested = WallTime(self.civil.0.saturating_sub(took));
        let times = StoredTimes::new(response, requested, self.civil);
        StoredTimes { received: self.received, ..times }
    }
}

/// Returns the reason not to store a response, or `None` if it may be stored. For a partial
/// response, the caller must pass a `response` with the status of the whole response. `length` is
/// the length of the whole body in bytes, if known. `received` is a time on the wall clock.
pub(crate) fn why_not_storable(
    worker: &Worker,
    base: &CacheKey,
    (method, request): (&str, &Headers),
    response: &ResponseHead,
    length: Option<u64>,
    received: WallTime,
) -> Option<NotStoredReason> {
    let exchange = Exchange {
        method,
        target: &base.text,
        request: &View(request),
        status: response.status,
        response: &View(&response.headers),
        received,
        policy: worker.policy(&base.text, response, length),
    };
    match storability(exchange) {
        Storability::Store => None,
        Storability::DoNotStore(reason) => Some(reason),
    }
}

pub(crate) fn placed(
    cache: &Cache,
    base: &CacheKey,
    in_force: Option<&VaryList>,
    head: &ResponseHead,
    request: &Headers,
) -> Placement {
    let vary = Vary::of(&View(&head.headers)).unwrap_or_default();
    if vary.is_empty() {
        return base.clone().into();
    }
    let (list, has_new_list) = cache.list_for(vary, in_force);
    let key = base.variant(&list, &list.vary.key(&View(request)));
    Placement { key, list: Some(list), has_new_list }
}

/// Removes hop-by-hop fields from the head of an origin's response. Adds Via, and Date if Date is
/// missing.
pub(crate) fn prepare(head: &mut ResponseHead, worker: &Worker, received: WallTime) {
    strip_hop_by_hop(&mut head.headers);
    worker.add_via(head.version, &mut head.headers);
    if !head.headers.contains("date") {
        head.headers.append("Date", worker.http_date(received));
    }
}

/// Ends a flight (shared fetch) with `result` when its fetch ends. A panic or the end of the worker
/// can also drop the fetch. Then the flight ends too, so that no reader waits for ever. If the
/// flight has already ended, nothing changes.
pub(crate) struct Ending {
    pub(crate) worker: Rc<Worker>,
    pub(crate) flight: Arc<Flight>,
    pub(crate) key: CacheKey,
    pub(crate) result: Result<Headers, UpstreamError>,
}

impl Ending {
    pub(crate) fn of(worker: &Rc<Worker>, flight: &Arc<Flight>, key: &CacheKey) -> Self {
        Self {
            worker: Rc::clone(worker),
            flight: Arc::clone(flight),
            key: key.clone(),
            result: Err(UpstreamError::NoResponse),
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.worker.shared.flights.land(self.key.hash, &self.flight);
        self.flight.end(self.result.clone());
        self.flight.keep_if(Keeping::end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_compared_with_the_civil_clock_and_the_age_goes_on_by_the_steady_one() {
        const DATE: WallTime = WallTime::from_seconds(784_111_777);
        let steady = WallTime::from_seconds(4_000_000_000);
        let times = Times {
            requested: WallTime(steady.0 - 2000),
            received: steady,
            civil: WallTime(DATE.0 + 5000),
        };
        let fields = [("Date", "Sun, 06 Nov 1994 08:49:37 GMT")];
        let stored = times.stored(&fields[..]);
        assert_eq!(stored, StoredTimes { received: steady, initial_age: 5 });
        assert_eq!(stored.age(WallTime(steady.0 + 7000)), 12);
        assert_eq!(times.stored(&fields[1..]).initial_age, 2, "the request's time alone");
    }
}
