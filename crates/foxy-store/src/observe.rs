//! Reports of a storage scheme besides its answers: counters, status and the outcome of opening the
//! store. Also reports when the oldest unfinished disk operation was submitted.

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
/// the disk hangs without an error. Any thread can read this value.
///
/// The store's thread knows the time of each of its operations. The reads of all other threads
/// count as one operation. Its time is the end of the last of these reads, or the start of the
/// first read while none has ended.
#[derive(Debug, Default)]
pub struct Owed {
    since: AtomicU64,
    reads: AtomicU64,
    read_since: AtomicU64,
}

impl Owed {
    /// Returns the submission time of the oldest operation in flight, on the store's clock.
    pub fn since(&self) -> Option<Instant> {
        let has_reads = self.reads.load(Relaxed) > 0;
        let read = has_reads.then(|| Instant(self.read_since.load(Relaxed)));
        self.since.load(Relaxed).checked_sub(1).map(Instant).into_iter().chain(read).min()
    }

    pub(crate) fn set(&self, since: Option<Instant>) {
        self.since.store(since.map_or(0, |since| since.0.saturating_add(1)), Relaxed);
    }

    /// Notes that a thread begins a read. Any thread may call this method.
    pub(crate) fn begin_read(&self, now: Instant) {
        if self.reads.load(Relaxed) == 0 {
            self.read_since.store(now.0, Relaxed);
        }
        self.reads.fetch_add(1, Relaxed);
    }

    /// Notes that a thread has finished a read.
    pub(crate) fn end_read(&self, now: Instant) {
        self.read_since.store(now.0, Relaxed);
        self.reads.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_of_other_threads_are_owed_since_the_last_read_finished() {
        let owed = Owed::default();
        owed.begin_read(Instant(5));
        owed.begin_read(Instant(7));
        assert_eq!(owed.since(), Some(Instant(5)));
        owed.end_read(Instant(9));
        assert_eq!(owed.since(), Some(Instant(9)));
        owed.set(Some(Instant(8)));
        assert_eq!(owed.since(), Some(Instant(8)));
        owed.set(None);
        owed.end_read(Instant(11));
        assert_eq!(owed.since(), None);
    }
}
