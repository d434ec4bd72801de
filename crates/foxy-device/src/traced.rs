//! Wraps a device to count and record its operations (requirement R2 of `foxy figure
//! requirements`). The wrapper changes no operation or result, so the counts are exact on any disk.

use crate::buffer::IoBuffer;
use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, IoOutput, OpKind};
use crate::park::{BlockingDevice, Waker};
use foxy_base::Instant;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The record of a finished operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// Kind of the operation.
    pub kind: OpKind,
    /// The open file; `None` for operations on paths.
    pub file: Option<FileId>,
    /// Offset in the file in bytes; 0 for operations without an offset.
    pub offset: u64,
    /// Number of bytes requested. For a `Create`, the number of bytes to preallocate.
    pub length: u64,
    /// Time when the operation was submitted.
    pub submitted: Instant,
    /// Time when the result was reaped.
    pub finished: Instant,
    /// Whether the operation succeeded, or its error.
    pub result: Result<(), IoError>,
}

/// Counts of the operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// Number of operations whose result was reaped.
    pub finished: u64,
    /// Number of failed operations among `finished`.
    pub failed: u64,
    /// Number of bytes that reads and writes moved.
    pub bytes: u64,
    /// Sum of the times from submission to reaping of all finished operations, in nanoseconds.
    pub nanoseconds: u64,
}

/// One set of counts for each kind of operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts([KindCounts; OpKind::ALL.len()]);

impl TraceCounts {
    /// Returns the counts of `kind`.
    #[must_use]
    pub const fn of(&self, kind: OpKind) -> KindCounts {
        self.0[kind as usize]
    }
}

/// The counts and records that a [`Traced`] device collects. Several threads can share a `Trace`.
#[derive(Debug)]
pub struct Trace {
    seen: Mutex<Seen>,
    limit: usize,
}

/// The counts and records that a trace has collected. If the limit is reached, the oldest records
/// are dropped.
#[derive(Debug, Default)]
struct Seen {
    counts: TraceCounts,
    records: VecDeque<TraceRecord>,
    dropped: u64,
}

impl Trace {
    /// Returns the counts of all operations since the trace began.
    #[must_use]
    pub fn counts(&self) -> TraceCounts {
        self.lock().counts
    }

    /// Removes and returns all records of operations, oldest first. Also returns the number of
    /// records that were dropped since the last call, because the limit was reached.
    #[must_use]
    pub fn take_records(&self) -> (Vec<TraceRecord>, u64) {
        let mut seen = self.lock();
        (seen.records.drain(..).collect(), std::mem::take(&mut seen.dropped))
    }

    fn note(&self, record: TraceRecord, bytes: u64) {
        let mut seen = self.lock();
        let counts = &mut seen.counts.0[record.kind as usize];
        counts.finished += 1;
        counts.failed += u64::from(record.result.is_err());
        counts.bytes += bytes;
        let took = record.finished.since(record.submitted).as_nanos();
        counts.nanoseconds =
            counts.nanoseconds.saturating_add(u64::try_from(took).unwrap_or(u64::MAX));
        seen.records.push_back(record);
        while seen.records.len() > self.limit {
            seen.records.pop_front();
            seen.dropped += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wraps another device, counts its operations and records them.
#[derive(Debug)]
pub struct Traced<D> {
    inner: D,
    trace: Arc<Trace>,
    under_way: HashMap<IoId, TraceRecord>,
}

impl<D: Device> Traced<D> {
    /// Wraps `inner` and keeps the records of the last `limit` operations. With a limit of 0,
    /// operations are only counted.
    pub fn new(inner: D, limit: usize) -> Self {
        let trace = Arc::new(Trace { seen: Mutex::default(), limit });
        Self { inner, trace, under_way: HashMap::new() }
    }

    /// Returns the counts and records, which the caller shares with this device.
    pub fn trace(&self) -> Arc<Trace> {
        Arc::clone(&self.trace)
    }
}

/// Returns the file, the offset in bytes and the length in bytes of `op`.
fn particulars(op: &IoOp) -> (Option<FileId>, u64, u64) {
    let length = |buffer: &IoBuffer| buffer.len() as u64;
    match op {
        IoOp::Read { file, offset, buffer } | IoOp::Write { file, offset, buffer } => {
            (Some(*file), *offset, length(buffer))
        }
        IoOp::Trim { file, offset, length } => (Some(*file), *offset, *length),
        IoOp::Create { file, size, .. } => (Some(*file), 0, *size),
        IoOp::Open { file, .. }
        | IoOp::OpenBlockDevice { file, .. }
        | IoOp::Close { file }
        | IoOp::Sync { file } => (Some(*file), 0, 0),
        IoOp::Remove { .. } | IoOp::MakeDir { .. } | IoOp::List { .. } => (None, 0, 0),
    }
}

impl<D: Device> Device for Traced<D> {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        let (file, offset, length) = particulars(&op);
        let (kind, result) = (OpKind::of(&op), Ok(()));
        let record =
            TraceRecord { kind, file, offset, length, submitted: now, finished: now, result };
        self.under_way.insert(id, record);
        self.inner.submit(id, op, now);
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        let before = done.len();
        self.inner.reap(now, done);
        for done in &done[before..] {
            let Some(record) = self.under_way.remove(&done.id) else { continue };
            let bytes = match done.result {
                Ok(IoOutput::Moved { count }) => count as u64,
                _ => 0,
            };
            let result = done.result.as_ref().map(|_| ()).map_err(|&error| error);
            self.trace.note(TraceRecord { finished: now, result, ..record }, bytes);
        }
    }

    fn next_completion(&self) -> Option<Instant> {
        self.inner.next_completion()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }
}

impl<D: BlockingDevice> BlockingDevice for Traced<D> {
    fn wait(&mut self, timeout: Option<Duration>) {
        self.inner.wait(timeout);
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::StorePath;
    use crate::memory::Memory;

    fn traced(limit: usize) -> Arc<Trace> {
        let mut device = Traced::new(Memory::default(), limit);
        let file = FileId(1);
        let operations = [
            IoOp::Create { file, path: StorePath::new("a"), size: 7 },
            IoOp::Write { file, offset: 5, buffer: IoBuffer::copy_of(b"fox") },
            IoOp::Read { file, offset: 4, buffer: IoBuffer::zeroed(100) },
            IoOp::Read { file: FileId(2), offset: 0, buffer: IoBuffer::zeroed(9) },
            IoOp::Remove { path: StorePath::new("a") },
        ];
        for (id, op) in (0..).map(IoId).zip(operations) {
            device.submit(id, op, Instant(10));
        }
        device.reap(Instant(25), &mut Vec::new());
        assert_eq!(device.in_flight(), 0);
        device.trace()
    }

    #[test]
    fn operations_bytes_failures_and_time_are_counted_by_kind() {
        let counts = traced(0).counts();
        let one = KindCounts { finished: 1, failed: 0, bytes: 0, nanoseconds: 15 };
        assert_eq!(counts.of(OpKind::Create), one);
        assert_eq!(counts.of(OpKind::Write), KindCounts { bytes: 3, ..one });
        assert_eq!(
            counts.of(OpKind::Read),
            KindCounts { finished: 2, failed: 1, bytes: 4, nanoseconds: 30 }
        );
        assert_eq!(counts.of(OpKind::Remove), one);
        assert_eq!(counts.of(OpKind::Sync), KindCounts::default());
    }

    #[test]
    fn the_newest_records_are_kept_and_the_dropped_ones_counted() {
        let trace = traced(2);
        let (records, dropped) = trace.take_records();
        assert_eq!(dropped, 3);
        let expected = TraceRecord {
            kind: OpKind::Read,
            file: Some(FileId(2)),
            offset: 0,
            length: 9,
            submitted: Instant(10),
            finished: Instant(25),
            result: Err(IoError::NotOpen),
        };
        assert_eq!(records[0], expected);
        assert_eq!((records[1].kind, records[1].file), (OpKind::Remove, None));
        assert_eq!(trace.take_records(), (Vec::new(), 0));
    }

    #[test]
    fn kinds_have_different_names() {
        let names: std::collections::BTreeSet<_> = OpKind::ALL.map(OpKind::name).into();
        assert_eq!(names.len(), OpKind::ALL.len());
    }
}
