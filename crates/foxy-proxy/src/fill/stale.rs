//! A stored response that may not answer as it is, and when it may all the same. It fetches
//! nothing.

use crate::cache::stored::{CacheKey, Stored, StoredBody, VaryList};
use crate::cache::watch::Watch;
use crate::core::fields::View;
use crate::core::forward_reason::ForwardReason;
use crate::core::hit_source::HitSource;
use crate::core::waiting::{HeldBytes, Waiting};
use crate::fill::update_stored::Described;
use crate::flight::event::FlightOutcome;
use crate::request::cache_status::How;
use bytes::Bytes;
use foxy_base::{WallTime, clock};
use foxy_http::Headers;
use foxy_rules::reuse::may_reuse_after;
use foxy_rules::{Failure, Permit, RequestControl};
use std::sync::Arc;

/// A stored response that the origin is asked about.
#[derive(Clone)]
pub(crate) struct Stale {
    pub(crate) stored: Arc<Stored>,
    pub(crate) key: CacheKey,
    /// Whether the request to the origin carries its validators.
    pub(crate) validate: bool,
    /// The room its body takes; `None` if there was none, so that the body was dropped.
    held: Option<Arc<HeldBytes>>,
}

impl Stale {
    /// Holds a stored response while the origin is asked. A body that has no room in `waiting` is
    /// dropped: then the response is not validated and answers nobody, but is replaced as any
    /// other.
    pub(crate) fn hold(
        waiting: &Waiting,
        stored: Arc<Stored>,
        key: CacheKey,
        validate: bool,
    ) -> Self {
        let held = match &stored.body {
            StoredBody::Whole(body) => waiting.take(body.len()).map(Arc::new),
            StoredBody::Parts { .. } => waiting.take(0).map(Arc::new),
        };
        if held.is_some() {
            return Self { stored, key, validate, held };
        }
        let body = StoredBody::Whole(Bytes::new());
        Self {
            stored: Arc::new(Stored { body, ..Stored::clone(&stored) }),
            key,
            validate: false,
            held,
        }
    }

    /// The same for an answer that may describe it anew; `None` without its body.
    pub(crate) fn described(self, base: CacheKey, watch: Watch) -> Option<Described> {
        let Self { stored, key, held, .. } = self;
        Some(Described { base, stored, key, watch, _held: held? })
    }

    /// What allows it to answer `request` after its origin failed, and for how many seconds it has
    /// been stale.
    pub(crate) fn permit_after(
        &self,
        failure: Failure,
        request: &Headers,
        now: WallTime,
    ) -> Option<(u64, Permit)> {
        self.held.as_ref()?;
        may_reuse_after(failure, &RequestControl::of(&View(request)), self.stored.facts(), now)
    }
}

/// What is known when the origin has to be asked.
pub(crate) struct Miss {
    pub(crate) reason: ForwardReason,
    /// The Vary list in force.
    pub(crate) list: Option<VaryList>,
    /// What is stored, if anything fits.
    pub(crate) stale: Option<Stale>,
    pub(crate) watch: Watch,
}

impl Miss {
    /// Whether the origin is asked if what is stored is still good.
    pub(crate) fn validates(&self) -> bool {
        self.stale.as_ref().is_some_and(|stale| stale.validate)
    }

    /// The Vary list that the look-up found, unless another write may have replaced the list since.
    pub(crate) fn list_in_force(&self) -> Option<&VaryList> {
        self.list.as_ref().filter(|_| !self.watch.late)
    }

    /// What is stored under that URL, for an answer that may describe it anew.
    pub(crate) fn described(self, base: &CacheKey) -> Option<Described> {
        let (base, watch) = (base.clone(), self.watch);
        self.stale?.described(base, watch)
    }

    /// What is stored, if it may answer `request` after a flight that came to `outcome`, and how.
    pub(crate) fn as_hit_after(
        &self,
        request: &Headers,
        outcome: &FlightOutcome,
    ) -> Option<(&Arc<Stored>, How)> {
        let (failure, status) = match outcome {
            FlightOutcome::Failed(error) if error.is_the_origins() => (Failure::Unreachable, None),
            FlightOutcome::Response(flight) => {
                (Failure::Status(flight.head.status), Some(flight.head.status))
            }
            FlightOutcome::Failed(_)
            | FlightOutcome::Revalidated(..)
            | FlightOutcome::Unconfirmed => return None,
        };
        let stale = self.stale.as_ref()?;
        let (by, permit) = stale.permit_after(failure, request, clock::steady())?;
        let ttl = -i64::try_from(by).unwrap_or(i64::MAX);
        Some((&stale.stored, (HitSource::Fallback(status), ttl, Some(permit))))
    }
}
