//! A stored response that may not answer as it is, and when it may all the same. It fetches nothing.

use crate::cache_status::HitSource;
use crate::fields::View;
use crate::freshen::Described;
use crate::hit::How;
use crate::news::Outcome;
use crate::reason::ForwardReason;
use crate::stored::{CacheKey, Stored, VaryList};
use crate::watch::Watch;
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
}

impl Stale {
    /// What allows it to answer `request` after its origin failed, and for how many seconds it has been stale.
    pub(crate) fn permit_after(
        &self,
        failure: Failure,
        request: &Headers,
        now: WallTime,
    ) -> Option<(u64, Permit)> {
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

    /// What is stored under that URL, for an answer that may describe it anew.
    pub(crate) fn described(self, base: &CacheKey) -> Option<Described> {
        let (base, watch) = (base.clone(), self.watch);
        self.stale.map(|Stale { stored, key, .. }| Described { base, stored, key, watch })
    }

    /// What is stored, if it may answer `request` after a flight that came to `outcome`, and how.
    pub(crate) fn as_hit_after(&self, request: &Headers, outcome: &Outcome) -> Option<(&Stored, How)> {
        let (failure, status) = match outcome {
            Outcome::Failed(error) if error.is_the_origins() => (Failure::Unreachable, None),
            Outcome::Response(flight) => (Failure::Status(flight.head.status), Some(flight.head.status)),
            Outcome::Failed(_) | Outcome::Revalidated(..) | Outcome::Unconfirmed => return None,
        };
        let stale = self.stale.as_ref()?;
        let (by, permit) = stale.permit_after(failure, request, clock::steady())?;
        let ttl = -i64::try_from(by).unwrap_or(i64::MAX);
        Some((&stale.stored, (HitSource::Fallback(status), ttl, Some(permit))))
    }
}
