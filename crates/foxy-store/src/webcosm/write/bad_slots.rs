//! Slots that the disk does not write to. A slot whose write failed is tried again in the log's next
//! turn; when it fails again it is retired: each segment that would lie there is void. The
//! tombstones of void segments say so, and the next opening retires the slot again.

use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{Geometry, LogName, Segment, Sequence};
use crate::webcosm::tombstones::Tombstones;
use crate::webcosm::write::Writer;
use foxy_device::IoError;
use std::collections::{BTreeMap, BTreeSet};

/// At most one of this many slots is retired. If more fail, the disk needs attention.
const MAX_RETIRED_SHARE: u32 = 8;

#[derive(Debug, Default)]
pub struct BadSlots {
    /// Slots that failed in one turn, and the segment that failed there.
    suspects: BTreeMap<u32, Sequence>,
    retired: BTreeSet<u32>,
    /// Segments that nothing was written to.
    skipped: BTreeSet<Segment>,
}

impl BadSlots {
    pub fn retire(&mut self, geometry: &Geometry, slot: u32) {
        let most = (geometry.slots() / MAX_RETIRED_SHARE).max(1) as usize;
        if self.retired.len() < most {
            self.retired.insert(slot);
        }
    }

    pub fn is_retired(&self, slot: u32) -> bool {
        self.retired.contains(&slot)
    }

    /// Takes the result of a write to a segment.
    pub fn record(&mut self, geometry: &Geometry, segment: Segment, result: Result<(), IoError>) {
        if result != Err(IoError::Device) {
            return;
        }
        let slot = geometry.slot(segment);
        let before = self.suspects.insert(slot, segment.sequence);
        if before.is_some_and(|sequence| sequence != segment.sequence) {
            self.retire(geometry, slot);
        }
    }

    /// The summary of a segment is written: a failure in an earlier turn has passed.
    pub fn trust(&mut self, slot: u32, sequence: Sequence) {
        if self.suspects.get(&slot).is_some_and(|&failed| failed != sequence) {
            self.suspects.remove(&slot);
        }
    }
}

impl Writer {
    pub fn retire(&mut self, geometry: &Geometry, segment: Segment) {
        self.bad_slots.retire(geometry, geometry.slot(segment));
    }

    /// Returns whether a segment was skipped, and forgets it.
    pub fn unskip(&mut self, segment: Segment) -> bool {
        self.bad_slots.skipped.remove(&segment)
    }

    /// Makes the next segments of a log void while they would lie in retired slots.
    pub fn skip_retired(&mut self, cx: &Context, tombstones: &mut Tombstones, name: LogName) {
        loop {
            let log = &mut self.logs[name as usize];
            let segment = log.segment(log.next);
            let is_retired = self.bad_slots.is_retired(cx.geometry.slot(segment));
            if log.open.is_some() || !log.has_room() || !is_retired {
                return;
            }
            log.next += 1;
            cx.occupy_slot(segment, cx.incarnation());
            self.bad_slots.skipped.insert(segment);
            self.void(cx, tombstones, segment);
        }
    }
}
