//! The store's counters and gauges, declared in one table. They count requests and answers, disk
//! operations and their results, and actions of the storage scheme. The shard's thread writes them,
//! and any thread can read them.

use crate::contract::{AbsentReason, Answer, RefusedReason};
use foxy_device::IoOp;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Whether a value of the statistics can only grow, or also fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureKind {
    /// The value only grows.
    Counter,
    /// The value can grow and fall.
    Gauge,
}

/// The value of a statistic at the time of a snapshot, with its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The name of the value, in snake case.
    pub name: &'static str,
    /// The help text, one sentence.
    pub help: &'static str,
    /// The unit: `1` for plain counts, or `bytes`.
    pub unit: &'static str,
    /// Whether the value is a counter or a gauge.
    pub kind: MeasureKind,
    /// The value at the time of the snapshot, in `unit`.
    pub value: u64,
}

macro_rules! statistics {
    ($($name:ident $kind:ident $unit:literal $help:literal,)*) => {
        /// The current values of the store's counters and gauges. The shard's thread writes them,
        /// and any thread can read them.
        #[derive(Debug, Default)]
        pub struct StoreStatistics {
            $(#[doc = $help] pub $name: Cell,)*
        }

        impl StoreStatistics {
            /// Returns all values in the order of declaration. The values are read one after
            /// another, so they are not all from exactly the same time.
            pub fn snapshot(&self) -> Vec<Measure> {
                vec![$(Measure {
                    name: stringify!($name),
                    help: $help,
                    unit: $unit,
                    kind: MeasureKind::$kind,
                    value: self.$name.get(),
                },)*]
            }
        }
    };
}

statistics! {
    gets Counter "1" "Requests to read a record that the store answered.",
    hits Counter "1" "Gets answered with a verified record.",
    read_at_once Counter "1" "Hits read on the calling thread from the system's page cache, without a read operation.",
    read_by_caller Counter "1" "Hits that the calling thread read from the device with its own io_uring.",
    misses_not_indexed Counter "1" "Gets of keys that are not in the index.",
    misses_key_mismatch Counter "1" "Gets whose index entry led to another record.",
    misses_checksum Counter "1" "Gets whose record had a wrong checksum.",
    misses_device Counter "1" "Gets that failed because of a device error.",
    misses_busy Counter "1" "Gets refused because too many gets were waiting.",
    misses_recovering Counter "1" "Gets that arrived before the index was rebuilt.",
    misses_closed Counter "1" "Gets that arrived after the store was closed.",
    puts Counter "1" "Requests to store a record that the store answered.",
    stored Counter "1" "Puts whose record was stored.",
    removes Counter "1" "Requests to remove a record that the store answered.",
    removed Counter "1" "Records removed durably on request.",
    refused_too_large Counter "1" "Puts of records above the size limit.",
    refused_busy Counter "1" "Puts and removals refused because too many requests were waiting.",
    refused_no_space Counter "1" "Puts refused because the disk had no free space for the record.",
    refused_device Counter "1" "Puts and removals that failed because of a device error.",
    refused_stores_nothing Counter "1" "Puts to a scheme that stores nothing.",
    refused_recovering Counter "1" "Puts and removals that arrived before the index was rebuilt.",
    refused_closed Counter "1" "Puts and removals that arrived after the store was closed.",
    prefetched Counter "1" "Records read in advance together with a requested record of the same origin server.",
    prefetch_useful Counter "1" "Gets answered with a prefetched record, without a read operation for the get.",
    prefetch_wasted Counter "1" "Prefetched records dropped before a get requested them.",
    evicted Counter "1" "Records evicted to free space.",
    carried_over Counter "1" "Records in use that were copied to a new segment before their old segment was reused.",
    carried_over_bytes Counter "bytes" "Content bytes of the records that were copied to a new segment.",
    held Gauge "1" "New records kept in memory only, because the write budget is spent; a second request writes them to disk.",
    held_bytes Gauge "bytes" "Memory used by the new records that are kept in memory only.",
    held_written Counter "1" "New records kept in memory only, then written to disk after a second request.",
    held_dropped Counter "1" "New records kept in memory only, then dropped because no second request arrived in time.",
    recovered Counter "1" "Records found again when the store was opened.",
    recovered_from_checkpoint Counter "1" "Records read from a checkpoint when the store was opened.",
    checkpoints Counter "1" "Checkpoints completed.",
    forgets Counter "1" "Entries made durable in the forget journal, which lists removed records.",
    begun_anew Gauge "1" "1 if the store discarded its content when it was opened; the log gives the reason.",
    retired_pages Counter "1" "Pages that the store no longer uses after a device error.",
    records Gauge "1" "Records in the index.",
    live_bytes Gauge "bytes" "Disk space used by records.",
    foreign_files Gauge "1" "Files in the store's folder that do not belong to the store; foxy does not change them.",
    size_bytes Gauge "bytes" "Disk space that the store may use, including its own bookkeeping.",
    capacity_bytes Gauge "bytes" "Disk space available for records.",
    index_bytes Gauge "bytes" "Memory used by the index.",
    creates Counter "1" "Files created.",
    opens Counter "1" "Files opened.",
    closes Counter "1" "Files closed.",
    reads Counter "1" "Read operations.",
    writes Counter "1" "Write operations.",
    syncs Counter "1" "Sync operations.",
    unlinks Counter "1" "Files removed.",
    directories Counter "1" "Directories created or listed.",
    trims Counter "1" "Trim operations.",
    seeks Counter "1" "Reads and writes that did not start where the previous operation ended.",
    read_bytes Counter "bytes" "Bytes requested from the device by reads.",
    written_bytes Counter "bytes" "Bytes passed to the device by writes.",
    turned_away Counter "1" "Requests refused because the store's queue was full, before they reached the scheme.",
    device_errors Counter "1" "Operations that failed with a device error.",
    no_room Counter "1" "Operations that failed because the disk is full, a quota is used up, or a file reached its size limit.",
    read_only Counter "1" "Operations that failed because the file system has become read-only.",
    helper_restarts Counter "1" "Restarts of the helper process for disk operations after the process died.",
}

/// A value of the statistics. Any thread can read it.
#[derive(Debug, Default)]
pub struct Cell(AtomicU64);

impl Cell {
    /// Returns the current value.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Adds `amount`. Only one thread may call this method, because the addition is not atomic.
    pub fn add(&self, amount: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(amount), Relaxed);
    }

    /// Adds `amount` from any thread. Do not use this method and [`Cell::add`] for the same value,
    /// because [`Cell::add`] could overwrite a concurrent addition.
    pub fn add_shared(&self, amount: u64) {
        self.0.fetch_add(amount, Relaxed);
    }

    /// Replaces the value by `value`.
    pub fn set(&self, value: u64) {
        self.0.store(value, Relaxed);
    }
}

/// The kind of a request. The counters of answers need it, because an answer does not contain the
/// kind of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A request to read a record.
    Get,
    /// A request to store a record.
    Put,
    /// A request to remove a record.
    Remove,
    /// A request to close the store.
    Close,
}

impl StoreStatistics {
    /// Counts a disk operation (requirement R2 of `foxy figure requirements`). Called when the
    /// operation is submitted. Threads that read records themselves also count their reads.
    pub fn count_operation(&self, op: &IoOp) {
        match op {
            IoOp::Open { .. } | IoOp::OpenBlockDevice { .. } => self.opens.add(1),
            IoOp::Create { .. } => self.creates.add(1),
            IoOp::Close { .. } => self.closes.add(1),
            IoOp::Read { buffer, .. } => {
                self.reads.add_shared(1);
                self.read_bytes.add_shared(buffer.len() as u64);
            }
            IoOp::Write { buffer, .. } => {
                self.writes.add(1);
                self.written_bytes.add(buffer.len() as u64);
            }
            IoOp::Sync { .. } => self.syncs.add(1),
            IoOp::Remove { .. } => self.unlinks.add(1),
            IoOp::MakeDir { .. } | IoOp::List { .. } => self.directories.add(1),
            IoOp::Trim { .. } => self.trims.add(1),
        }
    }

    /// Counts an answer. Called when the answer is delivered. Any thread may count answers to gets.
    /// Only the shard's thread may count other answers.
    pub fn count_answer(&self, kind: RequestKind, answer: &Answer) {
        match kind {
            RequestKind::Get => self.gets.add_shared(1),
            RequestKind::Put => self.puts.add(1),
            RequestKind::Remove => self.removes.add(1),
            RequestKind::Close => return,
        }
        match answer {
            Answer::Found(_) => self.hits.add_shared(1),
            Answer::Stored => self.stored.add(1),
            Answer::Removed => self.removed.add(1),
            Answer::Closed => {}
            Answer::Absent(reason) => self.misses(*reason).add_shared(1),
            Answer::Refused(reason) => self.refusals(*reason).add(1),
        }
    }

    fn misses(&self, reason: AbsentReason) -> &Cell {
        match reason {
            AbsentReason::NotIndexed => &self.misses_not_indexed,
            AbsentReason::KeyMismatch => &self.misses_key_mismatch,
            AbsentReason::ChecksumMismatch => &self.misses_checksum,
            AbsentReason::DeviceFailed(_) => &self.misses_device,
            AbsentReason::Busy => &self.misses_busy,
            AbsentReason::Recovering => &self.misses_recovering,
            AbsentReason::Closed => &self.misses_closed,
        }
    }

    fn refusals(&self, reason: RefusedReason) -> &Cell {
        match reason {
            RefusedReason::TooLarge => &self.refused_too_large,
            RefusedReason::Busy => &self.refused_busy,
            RefusedReason::NoSpace => &self.refused_no_space,
            RefusedReason::DeviceFailed(_) => &self.refused_device,
            RefusedReason::StoresNothing => &self.refused_stores_nothing,
            RefusedReason::Recovering => &self.refused_recovering,
            RefusedReason::Closed => &self.refused_closed,
        }
    }

    /// Returns whether the counters agree. The outcomes of gets must add up to the number of gets.
    /// The outcomes of puts and removals must add up to the number of puts and removals. Each
    /// answered request has exactly one outcome.
    pub fn adds_up(&self) -> bool {
        let sum = |cells: &[&Cell]| cells.iter().map(|cell| cell.get()).sum::<u64>();
        let misses = sum(&[
            &self.misses_not_indexed,
            &self.misses_key_mismatch,
            &self.misses_checksum,
            &self.misses_device,
            &self.misses_busy,
            &self.misses_recovering,
            &self.misses_closed,
        ]);
        let refusals = sum(&[
            &self.refused_too_large,
            &self.refused_busy,
            &self.refused_no_space,
            &self.refused_device,
            &self.refused_stores_nothing,
            &self.refused_recovering,
            &self.refused_closed,
        ]);
        self.gets.get() == self.hits.get() + misses
            && self.puts.get() + self.removes.get()
                == self.stored.get() + self.removed.get() + refusals
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_one_place_in_the_sums() {
        let statistics = StoreStatistics::default();
        statistics.count_answer(RequestKind::Get, &Answer::Absent(AbsentReason::NotIndexed));
        statistics.count_answer(RequestKind::Put, &Answer::Stored);
        statistics.count_answer(RequestKind::Put, &Answer::Refused(RefusedReason::Busy));
        statistics.count_answer(RequestKind::Remove, &Answer::Removed);
        statistics.count_answer(RequestKind::Close, &Answer::Closed);
        assert!(statistics.adds_up());
        assert_eq!((statistics.gets.get(), statistics.puts.get()), (1, 2));
    }

    #[test]
    fn the_snapshot_names_each_value_once() {
        let mut names: Vec<_> =
            StoreStatistics::default().snapshot().iter().map(|m| m.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
