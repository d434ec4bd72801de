//! Reports of a storage scheme besides its answers: counters, status, the outcome of opening the
//! store, and the submission time of the oldest unfinished disk operation.

use crate::beginning::{Beginning, BeginningCell};
use crate::statistics::StoreStatistics;
use crate::status::StatusCell;
use foxy_base::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The values through which a storage scheme reports. All clones share the same values.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// Counters and gauges.
    pub statistics: Arc<StoreStatistics>,
    /// Whether the store serves requests, and if not, why.
    pub status: Arc<StatusCell>,
    /// The outcome of opening the store.
    pub beginning: Arc<BeginningCell>,
    /// The submission time of the oldest disk operation in flight.
    pub owed: Arc<Owed>,
}

impl Observer {
    /// Reports the outcome of opening the store.
    pub fn begins(&self, beginning: Beginning) {
        self.statistics.begun_anew.set(u64::from(matches!(beginning, Beginning::Anew(_))));
        self.beginning.set(beginning);
    }
}

/// The submission time of the oldest disk operation that is not finished. If the time is long ago,
/// the disk hangs without an error. Only the store's thread writes this value, but any thread can
/// read it.
#[derive(Debug, Default)]
pub struct Owed(AtomicU64);

impl Owed {
    /// Returns the submission time of the oldest operation in flight, on the store's clock.
    pub fn since(&self) -> Option<Instant> {
        self.0.load(Relaxed).checked_sub(1).map(Instant)
    }

    pub(crate) fn set(&self, since: Option<Instant>) {
        self.0.store(since.map_or(0, |since| since.0.saturating_add(1)), Relaxed);
    }
}
