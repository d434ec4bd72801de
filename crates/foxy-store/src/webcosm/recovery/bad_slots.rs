//! Slots that the disk does not write to. One on which writing failed is tried again in the log's
//! next turn, since much that makes a write fail passes; when it fails once more the slot is
//! retired: each segment that would lie there is void before anything is written. The facts that
//! say so also say why, so that it is remembered as long as the slot's turns go on.

use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{LogName, Segment, Sequence};
use foxy_device::IoError;
use std::collections::{BTreeMap, BTreeSet};

/// The share of all slots, as a divisor, that is retired at most: where more fail it is the disk,
/// and that is for others to say and to mend.
const MOST: u32 = 8;

/// What is known of slots that failed.
#[derive(Debug, Default)]
pub struct BadSlots {
    doubted: BTreeMap<u32, Sequence>,
    retired: BTreeSet<u32>,
    /// Segments that nothing was written to.
    skipped: BTreeSet<Segment>,
}

impl BadSlots {
    /// Forgets that a segment was skipped; says whether it was.
    pub fn unskip(&mut self, segment: Segment) -> bool {
        self.skipped.remove(&segment)
    }
}

impl Webcosm {
    /// A slot is not to be used any more, unless too many are not.
    pub(crate) fn retire(&mut self, slot: u32) {
        let most = (self.geometry.slots() / MOST).max(1) as usize;
        if self.bad_slots.retired.len() < most {
            self.bad_slots.retired.insert(slot);
        }
    }

    /// Writing to a segment came to this.
    pub(crate) fn judge_slot(&mut self, segment: Segment, result: Result<(), IoError>) {
        let slot = self.geometry.slot(segment);
        let before = self.bad_slots.doubted.get(&slot).copied();
        if result == Err(IoError::Device) {
            self.bad_slots.doubted.insert(slot, segment.sequence);
            if before.is_some_and(|sequence| sequence != segment.sequence) {
                self.retire(slot);
            }
        }
    }

    /// A segment's summary is written: what failed there in an earlier turn has passed.
    pub(crate) fn trust_slot(&mut self, segment: Segment) {
        let slot = self.geometry.slot(segment);
        if self.bad_slots.doubted.get(&slot).is_some_and(|&sequence| sequence != segment.sequence) {
            self.bad_slots.doubted.remove(&slot);
        }
    }

    /// Makes the next segments of a log void as long as they would lie in retired slots.
    pub(crate) fn skip_retired(&mut self, name: LogName) {
        loop {
            let log = &mut self.logs[name as usize];
            let segment = log.segment(log.next);
            let slot = self.geometry.slot(segment);
            if log.open.is_some() || !log.has_room() || !self.bad_slots.retired.contains(&slot) {
                return;
            }
            log.next += 1;
            self.take_slot(segment, self.file.superblock().opens);
            self.bad_slots.skipped.insert(segment);
            self.void(segment);
        }
    }

    /// Whether the slot of a segment is retired, as the fact that says it is void is to say.
    pub(crate) fn is_retired(&self, segment: Segment) -> bool {
        self.bad_slots.retired.contains(&self.geometry.slot(segment))
    }
}
