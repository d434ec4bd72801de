//! Slots that the disk fails to write. After a failed write, the slot is tried once more when the
//! log reaches it again. After a second failure the slot is retired: every segment in it is void.
//! Tombstones record the void segments, so the next opening retires the slot again.

use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{Geometry, LogName, Segment, Sequence};
use crate::webcosm::tombstones::Tombstones;
use crate::webcosm::write::Writer;
use foxy_device::IoError;
use std::collections::{BTreeMap, BTreeSet};

/// At most one of this many slots is retired. If more fail, the disk itself needs repair.
const MAX_RETIRED_SHARE: u32 = 8;

#[derive(Debug, Default)]
pub struct BadSlots {
    /// Slots with one failed write, and the segment that failed there.
    suspects: BTreeMap<u32, Sequence>,
    retired: BTreeSet<u32>,
    /// Void segments in retired slots; nothing was written to them.
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

    /// Notes the result of a write to a segment.
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

    /// Clears an earlier failure of the slot, because the summary of a later segment was written.
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

    /// Returns whether a segment was skipped, and removes it from the list.
    pub fn unskip(&mut self, segment: Segment) -> bool {
        self.bad_slots.skipped.remove(&segment)
    }

    /// Makes the next segments of a log void as long as their slots are retired.
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
