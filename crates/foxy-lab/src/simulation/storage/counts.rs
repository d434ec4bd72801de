//! What a store asked of its device in a run, as its own statistics have it.

use foxy_store::statistics::StoreStatistics;

/// What a store asked of its device (R2), without what it took to open it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Files created.
    pub creates: u64,
    /// Files opened.
    pub opens: u64,
    /// Files removed.
    pub unlinks: u64,
    /// Read operations.
    pub reads: u64,
    /// Write operations.
    pub writes: u64,
    /// Reads and writes that did not begin where the one before ended.
    pub seeks: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Records read along with others (R36).
    pub prefetched: u64,
    /// Of them, those that answered a get.
    pub prefetch_useful: u64,
    /// Of them, those that were dropped before anybody asked for them.
    pub prefetch_wasted: u64,
}

impl DeviceCounts {
    pub(super) fn of(statistics: &StoreStatistics) -> Self {
        Self {
            creates: statistics.creates.get(),
            opens: statistics.opens.get(),
            unlinks: statistics.unlinks.get(),
            reads: statistics.reads.get(),
            writes: statistics.writes.get(),
            seeks: statistics.seeks.get(),
            bytes: statistics.read_bytes.get() + statistics.written_bytes.get(),
            prefetched: statistics.prefetched.get(),
            prefetch_useful: statistics.prefetch_useful.get(),
            prefetch_wasted: statistics.prefetch_wasted.get(),
        }
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            creates: self.creates - before.creates,
            opens: self.opens - before.opens,
            unlinks: self.unlinks - before.unlinks,
            reads: self.reads - before.reads,
            writes: self.writes - before.writes,
            seeks: self.seeks - before.seeks,
            bytes: self.bytes - before.bytes,
            prefetched: self.prefetched - before.prefetched,
            prefetch_useful: self.prefetch_useful - before.prefetch_useful,
            prefetch_wasted: self.prefetch_wasted - before.prefetch_wasted,
        }
    }
}
