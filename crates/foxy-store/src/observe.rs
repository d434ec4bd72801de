//! What a scheme shows besides its answers: counters, status, beginning, and a hanging device.

use crate::beginning::{Beginning, BeginningCell};
use crate::statistics::StoreStatistics;
use crate::status::StatusCell;
use foxy_base::Instant;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Handed to a scheme when it is made. Clones show the same values.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// Counters and gauges.
    pub statistics: Arc<StoreStatistics>,
    /// Whether the store serves, and if not why.
    pub status: Arc<StatusCell>,
    /// How the store came to be open.
    pub beginning: Arc<BeginningCell>,
    /// Since when the device owes an answer.
    pub owed: Arc<Owed>,
}

impl Observer {
    /// The store comes to be open like this.
    pub fn begins(&self, beginning: Beginning) {
        self.statistics.begun_anew.set(u64::from(matches!(beginning, Beginning::Anew(_))));
        self.beginning.set(beginning);
    }
}

/// The age of the oldest operation in flight. It shows that a disk hangs without an error. Written
/// by the store's thread, read from any.
#[derive(Debug, Default)]
pub struct Owed(AtomicU64);

impl Owed {
    /// When the oldest operation in flight was submitted, on the clock of the store.
    pub fn since(&self) -> Option<Instant> {
        self.0.load(Relaxed).checked_sub(1).map(Instant)
    }

    pub(crate) fn set(&self, since: Option<Instant>) {
        self.0.store(since.map_or(0, |since| since.0.saturating_add(1)), Relaxed);
    }
}
