//! A fetch that fills the cache: what it needs to know, and the steps that all fetches share.

use crate::cache::Cache;
use crate::cache::stored::{CacheKey, VaryList};
use crate::cache::watch::Watch;
use crate::core::fields::View;
use crate::fill::stale::Stale;
use crate::flight::Flight;
use crate::flight::keeping::Keeping;
use crate::upstream::{HeadEvent, Origin, UpstreamError, UpstreamExchange};
use crate::worker::Worker;
use foxy_base::WallTime;
use foxy_http::{BodyLength, Headers, RequestHead, ResponseHead, strip_hop_by_hop};
use foxy_rules::Vary;
use std::rc::Rc;
use std::sync::Arc;

/// What a fill is about.
pub(crate) struct FillRequest {
    /// The client's request, whose fields choose the variant and may forbid storing.
    pub(crate) request: RequestHead,
    pub(crate) origin: Origin,
    /// The URL's key.
    pub(crate) base: CacheKey,
    /// The Vary list in force.
    pub(crate) list: Option<VaryList>,
    /// What is stored, if that may not answer as it is.
    pub(crate) stale: Option<Stale>,
    pub(crate) watch: Watch,
    /// Whether the origin was asked for a range.
    pub(crate) ranged: bool,
}

/// Waits for the final head; gives up when the last reader leaves.
pub(crate) async fn final_head(
    worker: &Worker,
    flight: &Flight,
    exchange: &mut UpstreamExchange,
) -> Result<(ResponseHead, BodyLength), UpstreamError> {
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
            HeadEvent::Final(head, length) => {
                worker.count_response(head.version);
                return Ok((head, length));
            }
        }
    }
}

/// Ends a flight whose fill stops without a word, as a panic or the end of its worker would make
/// it, so that no reader waits for ever. A flight that has ended stays as it ended.
pub(crate) struct Ending {
    pub(crate) worker: Rc<Worker>,
    pub(crate) flight: Arc<Flight>,
    pub(crate) base: CacheKey,
}

impl Drop for Ending {
    fn drop(&mut self) {
        finish(&self.worker, &self.flight, &self.base, Err(UpstreamError::NoResponse));
    }
}

pub(crate) fn finish(
    worker: &Worker,
    flight: &Arc<Flight>,
    base: &CacheKey,
    result: Result<Headers, UpstreamError>,
) {
    worker.shared.flights.land(base.hash, flight);
    flight.end(result);
    flight.keep_if(Keeping::end);
}

/// The key a response is stored under, and the list that leads to it, if its Vary names any field,
/// with whether that is new.
pub(crate) fn placed(
    cache: &Cache,
    base: &CacheKey,
    in_force: Option<&VaryList>,
    head: &ResponseHead,
    request: &Headers,
) -> (CacheKey, Option<(VaryList, bool)>) {
    let vary = Vary::of(&View(&head.headers)).unwrap_or_default();
    if vary.is_empty() {
        return (base.clone(), None);
    }
    let (list, new) = cache.list_for(vary, in_force);
    (base.variant(&list, &list.vary.key(&View(request))), Some((list, new)))
}

/// Bytes of a body, where the origin said so.
pub(crate) const fn known_length(length: BodyLength) -> Option<u64> {
    match length {
        BodyLength::Length(bytes) => Some(bytes),
        BodyLength::None => Some(0),
        BodyLength::Chunked | BodyLength::UntilClose | BodyLength::Tunnel => None,
    }
}

/// Makes an origin's head ours: hop-by-hop fields off, Via and a missing Date on.
pub(crate) fn prepare(head: &mut ResponseHead, worker: &Worker, received: WallTime) {
    strip_hop_by_hop(&mut head.headers);
    worker.add_via(head.version, &mut head.headers);
    if !head.headers.contains("date") {
        head.headers.append("Date", worker.http_date(received));
    }
}
