//! One of the two logs: which of its segments hold records, which one is being written, and what
//! waits for it.

use crate::webcosm::format::geometry::{self, Geometry, LogName, Segment, Sequence, Turn};
use crate::webcosm::reclaim::Gone;
use crate::webcosm::write::OpenSegment;
use crate::webcosm::write::seal::Seals;
use crate::webcosm::write::write_buffer::Stage;
use std::collections::VecDeque;

/// A ring of segments.
#[derive(Debug)]
pub struct Log {
    name: LogName,
    /// How many segments it has once those from before its turn are given up.
    slots: u32,
    turn: Turn,
    /// The oldest segment that holds records.
    pub tail: Sequence,
    /// The segment after the newest.
    pub next: Sequence,
    /// The one that is being written.
    pub open: Option<OpenSegment>,
    /// Which have ended.
    pub seals: Seals,
    /// What waits to be written.
    pub stage: Stage,
    /// What the journal says durably: segments before this one are given up. Where it is beyond the
    /// tail, their records are leaving the index.
    pub given_up: Sequence,
    /// The oldest segments, which only wait for the journal to be given up, or for their records to
    /// leave.
    pub ready: VecDeque<Gone>,
}

impl Log {
    /// An empty log.
    #[must_use]
    pub fn new(name: LogName, geometry: &Geometry) -> Self {
        let mut log = Self {
            name,
            slots: 0,
            turn: Turn::default(),
            tail: 0,
            next: 0,
            open: None,
            seals: Seals::default(),
            given_up: 0,
            stage: Stage::default(),
            ready: VecDeque::new(),
        };
        log.divide(geometry);
        log
    }

    /// Its slots are those of that division.
    pub fn divide(&mut self, geometry: &Geometry) {
        self.slots = geometry.segments(self.name);
        self.turn = if self.name == LogName::Main { geometry.turn } else { Turn::default() };
    }

    /// How many segments it can have now.
    #[must_use]
    pub const fn segments(&self) -> u32 {
        self.turn.segments(self.slots, self.tail)
    }

    /// Whether its ends, which a disk may have made up, can be those of a log: no more segments
    /// than it has slots, and sequence numbers enough left for all that will ever be written.
    #[must_use]
    pub fn is_possible(&self) -> bool {
        let used = self.next.checked_sub(self.tail);
        used.is_some_and(|used| used <= self.segments()) && self.next <= Sequence::MAX / 2
    }

    /// One of its segments.
    #[must_use]
    pub const fn segment(&self, sequence: Sequence) -> Segment {
        Segment { log: self.name, sequence }
    }

    /// The oldest segment once those that wait are given up.
    #[must_use]
    pub fn next_tail(&self) -> Sequence {
        self.tail + u32::try_from(self.ready.len()).expect("there are fewer segments")
    }

    /// The oldest segment that is not given up: what a journal must say, since records before it
    /// may have left the index.
    #[must_use]
    pub fn kept_from(&self) -> Sequence {
        self.tail.max(self.given_up)
    }

    /// Segments that are given up and whose records are not all gone from the index.
    #[must_use]
    pub const fn leaving(&self) -> u32 {
        self.given_up.saturating_sub(self.tail)
    }

    /// Segments that wait for the journal.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.next_tail() - self.tail - self.leaving()
    }

    /// Whether there is a segment to write to.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        self.open.is_some() || self.next - self.tail < self.segments()
    }

    /// Segments that are clean, or will be once the journal says so.
    #[must_use]
    pub fn clean(&self) -> u32 {
        let tail = self.next_tail();
        self.turn.segments(self.slots, tail) - (self.next - tail)
    }

    /// Segments synced, and given up, together.
    #[must_use]
    pub fn together(&self) -> u32 {
        geometry::together(self.segments())
    }

    /// Segments whose summaries wait for a sync.
    #[must_use]
    pub const fn behind(&self) -> u32 {
        self.seals.end - self.seals.durable_end
    }
}
