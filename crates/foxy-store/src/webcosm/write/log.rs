//! One of the two logs: which segments hold records, the segment that is being written, and the
//! records that wait for it.

use crate::webcosm::format::geometry::{self, Geometry, LogName, Segment, Sequence, SlotMap};
use crate::webcosm::format::summary::Listed;
use crate::webcosm::index::Tag;
use crate::webcosm::write::write_buffer::WriteBuffer;
use std::collections::{BTreeSet, VecDeque};

/// A segment that is being written.
#[derive(Debug)]
pub struct OpenSegment {
    pub segment: Segment,
    /// The first free page.
    pub page: u32,
    /// The records in the order of writing.
    pub records: Vec<Listed>,
}

/// The index entries of a segment that is given up.
#[derive(Debug)]
pub enum LeavingRecords {
    /// The tags and places of its records.
    Listed(Vec<(Tag, u64)>),
    /// Unknown: the whole index must be searched, starting at this partition.
    Unknown(usize),
    /// The index has none.
    Nothing,
}

/// Which segments have ended. A segment whose summary could not be written counts too: a tombstone
/// says that it is void.
#[derive(Debug, Default)]
pub struct Seals {
    /// All segments before this one have ended.
    pub end: Sequence,
    /// The summaries of all segments before this one are durable.
    pub durable_end: Sequence,
    early: BTreeSet<Sequence>,
}

impl Seals {
    /// All segments before `end` have ended durably.
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

/// A ring of segments.
#[derive(Debug)]
pub struct Log {
    name: LogName,
    /// Segments once those from before the slot map's base are given up.
    slots: u32,
    slot_map: SlotMap,
    /// The oldest segment that holds records.
    pub tail: Sequence,
    /// The segment after the newest.
    pub next: Sequence,
    pub open: Option<OpenSegment>,
    pub seals: Seals,
    pub buffer: WriteBuffer,
    /// The journal says durably that segments before this one are given up. Where it is beyond the
    /// tail, their records are leaving the index.
    pub given_up: Sequence,
    /// The oldest segments, which wait for the journal, or for their records to leave.
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

    /// The store has another size.
    pub fn divide(&mut self, geometry: &Geometry) {
        self.slots = geometry.segments(self.name);
        self.slot_map =
            if self.name == LogName::Main { geometry.slot_map } else { SlotMap::default() };
    }

    /// How many segments the log can have now.
    pub const fn segments(&self) -> u32 {
        self.slot_map.segments(self.slots, self.tail)
    }

    /// Whether a log can have these ends: no more segments than slots, and enough sequence numbers
    /// left. They come from the disk.
    pub fn is_possible(&self) -> bool {
        let used = self.next.checked_sub(self.tail);
        used.is_some_and(|used| used <= self.segments()) && self.next <= Sequence::MAX / 2
    }

    pub const fn segment(&self, sequence: Sequence) -> Segment {
        Segment { log: self.name, sequence }
    }

    /// The oldest segment once those that wait are given up.
    pub fn next_tail(&self) -> Sequence {
        self.tail + u32::try_from(self.leaving.len()).expect("there are fewer segments")
    }

    /// The oldest segment that is not given up. A journal must say it, since records of earlier
    /// segments may have left the index.
    pub fn kept_from(&self) -> Sequence {
        self.tail.max(self.given_up)
    }

    /// Segments that are given up, with records in the index.
    pub const fn given_up_segments(&self) -> u32 {
        self.given_up.saturating_sub(self.tail)
    }

    /// Segments that wait for the journal.
    pub fn waiting(&self) -> u32 {
        self.next_tail() - self.tail - self.given_up_segments()
    }

    /// Whether there is a segment to write to.
    pub const fn has_room(&self) -> bool {
        self.open.is_some() || self.next - self.tail < self.segments()
    }

    /// Segments that are clean, or will be after the next commit.
    pub fn clean(&self) -> u32 {
        let tail = self.next_tail();
        self.slot_map.segments(self.slots, tail) - (self.next - tail)
    }

    /// Segments that are synced, and given up, together.
    pub fn group_size(&self) -> u32 {
        geometry::group_size(self.segments())
    }

    /// Summaries that are not known to be durable.
    pub const fn unsynced_summaries(&self) -> u32 {
        self.seals.end - self.seals.durable_end
    }
}
