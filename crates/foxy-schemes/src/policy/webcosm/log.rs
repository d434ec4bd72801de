//! A log of entries in segments. It appends entries to its open segment, and frees its oldest
//! segment.

use std::collections::VecDeque;
use std::num::NonZeroU32;

/// The number of an entry's place in a log. An entry that was copied has a new place.
pub(super) type LogPlace = NonZeroU32;

#[derive(Clone, Copy, Default)]
struct LogSegment {
    entries: u32,
    bytes: u64,
}

#[derive(Default)]
pub(super) struct Log {
    /// The entries of all segments, oldest first. An entry that has left is still in the list.
    entries: VecDeque<(u32, LogPlace)>,
    complete: VecDeque<LogSegment>,
    open: LogSegment,
    complete_bytes: u64,
    /// Bytes of a segment, and of the complete segments that the log keeps.
    segment_bytes: u64,
    kept_bytes: u64,
    /// Bytes that were ever appended, as a number of segments.
    begun: f64,
}

impl Log {
    pub(super) const fn resize(&mut self, segment_bytes: u64, kept_bytes: u64) {
        (self.segment_bytes, self.kept_bytes) = (segment_bytes, kept_bytes);
    }

    /// Begins a new segment if a record of `record` bytes does not fit in the open segment.
    pub(super) fn make_room(&mut self, record: u64) {
        if self.open.bytes > 0 && self.open.bytes + record > self.segment_bytes {
            self.seal();
        }
    }

    /// Appends an entry without its bytes.
    pub(super) fn push(&mut self, at: (u32, LogPlace)) {
        self.entries.push_back(at);
        self.open.entries += 1;
    }

    /// Adds the bytes of a record of the last entry.
    pub(super) fn extend(&mut self, charged: u64) {
        self.open.bytes += charged;
        if self.open.bytes >= self.segment_bytes {
            self.seal();
        }
    }

    /// Completes the open segment. Its unused bytes are lost.
    pub(super) fn seal(&mut self) {
        let mut segment = std::mem::take(&mut self.open);
        segment.bytes = segment.bytes.max(self.segment_bytes);
        self.begun += segment.bytes as f64 / self.segment_bytes as f64;
        self.complete_bytes += segment.bytes;
        self.complete.push_back(segment);
    }

    /// Removes the oldest complete segment. Returns its entries and bytes.
    pub(super) fn free(&mut self) -> Option<(Vec<(u32, LogPlace)>, u64)> {
        let segment = self.complete.pop_front()?;
        self.complete_bytes -= segment.bytes;
        Some((self.entries.drain(..segment.entries as usize).collect(), segment.bytes))
    }

    pub(super) const fn is_over(&self) -> bool {
        self.complete_bytes > self.kept_bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn has_only_an_open_segment(&self) -> bool {
        self.complete.is_empty()
    }

    /// Returns the bytes of all segments. The open segment counts as full.
    pub(super) fn taken(&self) -> u64 {
        self.complete_bytes + if self.entries.is_empty() { 0 } else { self.segment_bytes }
    }

    /// Returns the number of segments that were ever completed.
    pub(super) const fn segments_begun(&self) -> f64 {
        self.begun
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &(u32, LogPlace)> {
        self.entries.iter()
    }

    /// Keeps only the entries to which `kept` gives a new number. They take half of the bytes.
    pub(super) fn halve(&mut self, kept: impl Fn(&(u32, LogPlace)) -> Option<(u32, LogPlace)>) {
        let old = std::mem::take(&mut self.entries);
        let mut rest = old.iter();
        for segment in self.complete.iter_mut().chain([&mut self.open]) {
            let before = self.entries.len();
            let own = rest.by_ref().take(segment.entries as usize);
            self.entries.extend(own.filter_map(&kept));
            let entries = (self.entries.len() - before) as u32;
            *segment = LogSegment { entries, bytes: segment.bytes / 2 };
        }
        self.complete_bytes = self.complete.iter().map(|segment| segment.bytes).sum();
    }

    pub(super) fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<(u32, LogPlace)>()
            + self.complete.capacity() * size_of::<LogSegment>()
    }
}
