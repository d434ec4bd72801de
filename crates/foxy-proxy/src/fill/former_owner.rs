//! Asks the former owner of a key for a stored response, before this node asks the origin. This
//! node may have become the owner because it joined the fleet, or because the former owner leaves.
//!
//! The client of this request may itself be another node. Asking the former owner cannot cause a
//! loop, because the former owner answers only from its cache and asks nobody.
//!
//! If the fleet has a purge log, this node stores the answer only under one condition: the former
//! owner must have applied every purge that this node had begun to apply when the answer came.
//! Later purges affect the stored response like a response of the origin. So this node stores no
//! response that an acknowledged purge has removed.

use crate::core::{Counter, ForwardReason};
use crate::fill::outgoing;
use crate::fill::request::{OriginHead, Times, known_length};
use crate::fill::stale::Miss;
use crate::flight::Flight;
use crate::request::exchange::FleetRole;
use crate::request::{Wanted, forwarding_fields};
use crate::upstream::fleet::owners_state::OwnersState;
use crate::upstream::fleet::{FIELD, STORED, Told};
use crate::upstream::{HeadEvent, UpstreamExchange};
use crate::worker::Worker;
use foxy_base::clock;
use foxy_http::{BodyLength, ResponseHead};
use std::time::Duration;
use tokio::time::timeout;

/// Time limit for the head of the former owner's answer. It can be short, because the former owner
/// looks only in its cache.
const PATIENCE: Duration = Duration::from_secs(1);

/// A request to the former owner of a cache key, another node of the fleet.
pub(crate) struct FormerOwner(Box<UpstreamExchange>);

impl FormerOwner {
    /// Creates the request to the former owner of the key. Returns `None` if only the origin may
    /// answer, or if the key has no former owner.
    pub(crate) fn of(worker: &Worker, wanted: &Wanted<'_>, miss: &Miss) -> Option<Self> {
        let link = worker.settings().upstream.fleet.as_ref()?;
        let (FleetRole::MayAsk(scheme) | FleetRole::Asked(scheme)) = wanted.role else {
            return None;
        };
        let is_missing = matches!(miss.reason, ForwardReason::UriMiss | ForwardReason::VaryMiss);
        if !is_missing || miss.stale.is_some() {
            return None;
        }
        let node = link.fleet.former_owner(&wanted.key.text)?;
        if node.has_passed(&wanted.head.headers) {
            return None;
        }
        let mut request = outgoing::for_cache(worker, wanted.head, wanted.origin.clone(), None);
        request.headers.retain(|name, _| !forwarding_fields::is_named(name));
        request.headers.append(FIELD, STORED);
        let exchange = worker.upstream.exchange(request).asked_by(wanted.client);
        worker.counters.add(Counter::FleetFormerAsked, 1);
        Some(Self(Box::new(exchange.sent_to_node(&node, scheme))))
    }

    /// Returns the former owner's stored response. Returns `None` if this node must ask the origin.
    pub(crate) async fn answer(
        mut self,
        worker: &Worker,
        flight: &Flight,
    ) -> Option<(OriginHead, Box<UpstreamExchange>)> {
        let requested = clock::steady();
        let (mut head, length) = timeout(PATIENCE, self.head()).await.ok()??;
        let told = Told::read(&head.headers)?;
        let may_copy = worker.shared.purges.book.followed().may_copy(told.applied);
        let is_usable = !told.is_busy && told.error.is_none() && may_copy;
        if !is_usable || OwnersState::of(&head) != OwnersState::Fresh {
            return None;
        }
        worker.counters.add(Counter::FleetFormerHits, 1);
        // These fields describe the former owner and its cache. They must not be stored with the
        // response.
        head.headers.remove_all(["cache-status", FIELD]);
        // This call fails if an earlier exchange of the flight (shared fetch) has already recorded
        // the server that answered.
        let _ = flight.responder.set(self.0.responder().found_in_cache());
        let (length, times) = (known_length(length), Times::until_now(requested));
        Some((OriginHead { head, length, times }, self.0))
    }

    async fn head(&mut self) -> Option<(ResponseHead, BodyLength)> {
        loop {
            match self.0.head().await.ok()? {
                HeadEvent::Final(head, length) => return Some((head, length)),
                HeadEvent::Continue | HeadEvent::Interim(_) => {}
            }
        }
    }
}
