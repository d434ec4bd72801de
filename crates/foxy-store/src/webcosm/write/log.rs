//! One of the two logs of records: which segments it consists of, its open segment, and the records
//! that wait in memory to be written.

use crate::webcosm::format::geometry::{self, Geometry, LogName, Segment, Sequence, SlotMap};
use crate::webcosm::format::summary::Listed;
use crate::webcosm::index::Tag;
use crate::webcosm::log_view::LogView;
use crate::webcosm::write::write_buffer::WriteBuffer;
use std::collections::{BTreeSet, VecDeque};

/// The segment of a log to which records are currently written.
#[derive(Debug)]
pub struct OpenSegment {
    pub segment: Segment,
    /// The number of the segment's first page without records.
    pub page: u32,
    /// Entries for the segment's summary: the records written so far, in writing order.
    pub records: Vec<Listed>,
}

/// The index entries that belong to a segment that will be discarded.
#[derive(Debug)]
pub enum LeavingRecords {
    /// The index entries of these records, each as tag (shortened key) and place on disk.
    Listed(Vec<(Tag, u64)>),
    /// The records are unknown, because the summary (list of records) is unreadable. The whole
    /// index must be searched, from this partition on.
    Unknown(usize),
    /// No index entry belongs to the segment.
    Nothing,
}

/// Tracks which segments of a log are complete. A segment is complete if its summary was written,
/// or if a tombstone marks it as void (without a summary).
#[derive(Debug, Default)]
pub struct Seals {
    /// Every segment of the log with a smaller number is complete.
    pub end: Sequence,
    /// Every segment with a smaller number is complete and durable: a power failure cannot undo it.
    pub durable_end: Sequence,
    early: BTreeSet<Sequence>,
}

impl Seals {
    /// Returns the state in which all segments before `end` are complete and durable.
    pub const fn all_before(end: Sequence) -> Self {
        Self { end, durable_end: end, early: BTreeSet::new() }
    }

    pub fn add(&mut self, sequence: Sequence) {
        self.early.insert(sequence);
        while self.early.remove(&self.end) {
            self.end += 1;
        }
    }
}

/// A log of records. It reuses its slots (places for segments in the file) in turn, like a ring.
#[derive(Debug)]
pub struct Log {
    name: LogName,
    /// Number of slots (places for segments) for the log's segments. After a resize, fewer slots
    /// may be usable for some time (see [`SlotMap`]).
    slots: u32,
    slot_map: SlotMap,
    /// The number of the oldest segment whose place in the file is not free.
    pub tail: Sequence,
    /// The number of the next segment to start.
    pub next: Sequence,
    pub open: Option<OpenSegment>,
    pub seals: Seals,
    pub buffer: WriteBuffer,
    /// Segments before this number are discarded, as the journal durably states. The segments from
    /// `tail` to this number still have records in the index, so their slots are not free yet.
    pub given_up: Sequence,
    /// The oldest segments of the log, which will be discarded. The journal must first state
    /// durably that they are discarded. Then the records of these segments leave the index.
    pub leaving: VecDeque<LeavingRecords>,
}

impl Log {
    pub fn new(name: LogName, geometry: &Geometry) -> Self {
        let mut log = Self {
            name,
            slots: 0,
            slot_map: SlotMap::default(),
            tail: 0,
            next: 0,
            open: None,
            seals: Seals::default(),
            buffer: WriteBuffer::default(),
            given_up: 0,
            leaving: VecDeque::new(),
        };
        log.divide(geometry);
        log
    }

    /// Adapts the log to the file layout of another store size.
    pub fn divide(&mut self, geometry: &Geometry) {
        self.slots = geometry.segments(self.name);
        self.slot_map =
            if self.name == LogName::Main { geometry.slot_map } else { SlotMap::default() };
    }

    /// Returns the largest number of segments that the log can have now.
    pub const fn segments(&self) -> u32 {
        self.slot_map.segments(self.slots, self.tail)
    }

    /// Returns whether the first and the last segment number of the log are possible. They were
    /// read from disk and may be wrong. A log has no more segments than slots, and always has
    /// unused numbers left.
    pub fn is_possible(&self) -> bool {
        let used = self.next.checked_sub(self.tail);
        used.is_some_and(|used| used <= self.segments()) && self.next <= Sequence::MAX / 2
    }

    /// Returns the state of the log for the layout map of the store (module `crate::map`). `copied`
    /// is the segment whose records are being copied, in this log or in the other log.
    pub fn view(&self, copied: Option<Segment>) -> LogView {
        LogView {
            tail: self.tail,
            leaving_end: self.next_tail(),
            sealed_end: self.seals.end,
            next: self.next,
            open: self.open.as_ref().map(|open| (open.segment.sequence, open.page)),
            copied: copied.filter(|it| it.log == self.name).map(|it| it.sequence),
        }
    }

    pub const fn segment(&self, sequence: Sequence) -> Segment {
        Segment { log: self.name, sequence }
    }

    /// Returns the number of the oldest segment that remains after the segments in the queue
    /// `leaving` are discarded.
    pub fn next_tail(&self) -> Sequence {
        self.tail + u32::try_from(self.leaving.len()).expect("there are fewer segments")
    }

    /// Returns the number of the oldest segment that is not discarded. The journal must state this
    /// number. The index no longer has all records of earlier segments.
    pub fn kept_from(&self) -> Sequence {
        self.tail.max(self.given_up)
    }

    /// Returns the number of discarded segments that still have records in the index.
    pub const fn given_up_segments(&self) -> u32 {
        self.given_up.saturating_sub(self.tail)
    }

    /// Returns how many of the `leaving` segments the journal does not yet state as discarded.
    pub fn waiting(&self) -> u32 {
        self.next_tail() - self.tail - self.given_up_segments()
    }

    /// Returns whether records can be written: a segment is open, or a slot (place for a segment)
    /// is free.
    pub const fn has_room(&self) -> bool {
        self.open.is_some() || self.next - self.tail < self.segments()
    }

    /// Returns the number of slots that are free after all `leaving` segments are discarded.
    pub fn clean(&self) -> u32 {
        let tail = self.next_tail();
        self.slot_map.segments(self.slots, tail) - (self.next - tail)
    }

    /// Returns how many segments the log syncs together. It also discards this many segments
    /// together.
    pub fn group_size(&self) -> u32 {
        geometry::group_size(self.segments())
    }

    /// Returns the number of complete segments whose summary (list of records) may not be durable
    /// yet.
    pub const fn unsynced_summaries(&self) -> u32 {
        self.seals.end - self.seals.durable_end
    }
}
