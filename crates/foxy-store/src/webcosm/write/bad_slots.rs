//! Avoids slots (places for segments) to which the disk cannot write. After a failed write, the log
//! uses the slot once more when its turn comes. After a second failure the slot is retired: every
//! later segment in it stays without content (void). Tombstones record which segments are void, so
//! the next opening of the store retires the slot again.

use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{Geometry, LogName, Segment, Sequence};
use crate::webcosm::tombstones::Tombstones;
use crate::webcosm::write::Writer;
use foxy_device::IoError;
use std::collections::{BTreeMap, BTreeSet};

/// At most 1/`MAX_RETIRED_SHARE` of the slots are retired, which means no longer written to. If
/// even more slots fail, the whole disk is bad.
const MAX_RETIRED_SHARE: u32 = 8;

/// The slots to which writes have failed.
#[derive(Debug, Default)]
pub struct BadSlots {
    /// Slots to which one write has failed, each with the number of the segment whose write failed.
    suspects: BTreeMap<u32, Sequence>,
    retired: BTreeSet<u32>,
    /// Segments that the logs skipped because their slots are retired. Nothing was written to these
    /// segments.
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

    /// Notes the result of a write to a segment. A slot is retired after the disk failed writes to
    /// two successive segments in it. No more records are then written to it.
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

    /// Forgets an earlier failure of the slot, because the disk wrote the summary (list of records)
    /// of a later segment there.
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

    /// Removes a segment from the list of skipped segments. Returns whether the segment was in the
    /// list.
    pub fn unskip(&mut self, segment: Segment) -> bool {
        self.bad_slots.skipped.remove(&segment)
    }

    /// Skips the next segments of a log as long as their slots are retired (the disk cannot write
    /// there). Marks these segments as void (without content).
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
