//! One of the two logs: the range of segments with records, the open segment, and the records
//! waiting to be written.

use crate::webcosm::format::geometry::{self, Geometry, LogName, Segment, Sequence, SlotMap};
use crate::webcosm::format::summary::Listed;
use crate::webcosm::index::Tag;
use crate::webcosm::write::write_buffer::WriteBuffer;
use std::collections::{BTreeSet, VecDeque};

/// The segment that is being written.
#[derive(Debug)]
pub struct OpenSegment {
    pub segment: Segment,
    /// The first free page.
    pub page: u32,
    /// The records, in writing order.
    pub records: Vec<Listed>,
}

/// The index entries of a segment that is discarded.
#[derive(Debug)]
pub enum LeavingRecords {
    /// The tags and places of the segment's records.
    Listed(Vec<(Tag, u64)>),
    /// Unknown: the whole index must be searched, starting at this partition.
    Unknown(usize),
    /// The segment has no index entries.
    Nothing,
}

/// Tracks which segments are complete. A segment is complete once its summary is written, or a
/// tombstone marks it as void.
#[derive(Debug, Default)]
pub struct Seals {
    /// Every segment with a smaller number is complete.
    pub end: Sequence,
    /// Every segment with a smaller number has a durable summary.
    pub durable_end: Sequence,
    early: BTreeSet<Sequence>,
}

impl Seals {
    /// The state after all segments before `end` became durable.
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

/// A log: a ring of segments.
#[derive(Debug)]
pub struct Log {
    name: LogName,
    /// Number of slots. It is the limit once the segments from before the slot map's base are
    /// discarded.
    slots: u32,
    slot_map: SlotMap,
    /// The oldest segment with records.
    pub tail: Sequence,
    /// The number of the next new segment.
    pub next: Sequence,
    pub open: Option<OpenSegment>,
    pub seals: Seals,
    pub buffer: WriteBuffer,
    /// The journal durably states that segments before this number are discarded. Segments from the
    /// tail up to this number still have records in the index.
    pub given_up: Sequence,
    /// The oldest segments: they wait for the journal, or for the removal of their records from the
    /// index.
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

    /// Adopts the layout of another store size.
    pub fn divide(&mut self, geometry: &Geometry) {
        self.slots = geometry.segments(self.name);
        self.slot_map =
            if self.name == LogName::Main { geometry.slot_map } else { SlotMap::default() };
    }

    /// How many segments the log can have now.
    pub const fn segments(&self) -> u32 {
        self.slot_map.segments(self.slots, self.tail)
    }

    /// Whether the log's ends are possible: no more segments than slots, and enough sequence
    /// numbers left. The ends come from disk and may be wrong.
    pub fn is_possible(&self) -> bool {
        let used = self.next.checked_sub(self.tail);
        used.is_some_and(|used| used <= self.segments()) && self.next <= Sequence::MAX / 2
    }

    pub const fn segment(&self, sequence: Sequence) -> Segment {
        Segment { log: self.name, sequence }
    }

    /// The oldest segment after all waiting segments are discarded.
    pub fn next_tail(&self) -> Sequence {
        self.tail + u32::try_from(self.leaving.len()).expect("there are fewer segments")
    }

    /// The oldest segment that is not discarded. The journal must state it, because records of
    /// earlier segments may be missing in the index.
    pub fn kept_from(&self) -> Sequence {
        self.tail.max(self.given_up)
    }

    /// Number of discarded segments with records in the index.
    pub const fn given_up_segments(&self) -> u32 {
        self.given_up.saturating_sub(self.tail)
    }

    /// Number of segments waiting for the journal.
    pub fn waiting(&self) -> u32 {
        self.next_tail() - self.tail - self.given_up_segments()
    }

    /// Whether a segment can be written.
    pub const fn has_room(&self) -> bool {
        self.open.is_some() || self.next - self.tail < self.segments()
    }

    /// Number of segments that are clean now or after the next commit.
    pub fn clean(&self) -> u32 {
        let tail = self.next_tail();
        self.slot_map.segments(self.slots, tail) - (self.next - tail)
    }

    /// How many segments are synced, and discarded, together.
    pub fn group_size(&self) -> u32 {
        geometry::group_size(self.segments())
    }

    /// Number of summaries that may not be durable yet.
    pub const fn unsynced_summaries(&self) -> u32 {
        self.seals.end - self.seals.durable_end
    }
}
