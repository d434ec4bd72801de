//! What a scheme reports besides its answers: counters, status, how it was opened, and a device
//! that hangs.

use crate::beginning::{Beginning, BeginningCell};
use crate::statistics::StoreStatistics;
use crate::status::StatusCell;
use foxy_base::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The reporting channels of a scheme. All clones share the same values.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// Counters and gauges.
    pub statistics: Arc<StoreStatistics>,
    /// Whether the store serves requests, and if not, why.
    pub status: Arc<StatusCell>,
    /// How the store was opened.
    pub beginning: Arc<BeginningCell>,
    /// The time of the oldest disk operation without a result.
    pub owed: Arc<Owed>,
}

impl Observer {
    /// Records how the store was opened.
    pub fn begins(&self, beginning: Beginning) {
        self.statistics.begun_anew.set(u64::from(matches!(beginning, Beginning::Anew(_))));
        self.beginning.set(beginning);
    }
}

/// The submission time of the oldest disk operation in flight. An old time shows that a disk hangs
/// without an error. Only the store's thread writes this value; any thread may read it.
#[derive(Debug, Default)]
pub struct Owed(AtomicU64);

impl Owed {
    /// When the oldest operation in flight was submitted, in the store's own time.
    pub fn since(&self) -> Option<Instant> {
        self.0.load(Relaxed).checked_sub(1).map(Instant)
    }

    pub(crate) fn set(&self, since: Option<Instant>) {
        self.0.store(since.map_or(0, |since| since.0.saturating_add(1)), Relaxed);
    }
}
