//! Records in use that are carried over from a segment to be given up: read there, and written anew
//! with the next batch.

use crate::contract::Outbox;
use crate::layout::PAGE;
use crate::webcosm::Webcosm;
use crate::webcosm::format::location::Spot;
use crate::webcosm::format::summary::Listed;
use crate::webcosm::index::{Extent, Known, Tag};
use crate::webcosm::io::Pending;
use crate::webcosm::write::write_buffer::Staged;
use crate::worth::Distance;
use foxy_device::{IoBuffer, IoError};
use std::collections::{BTreeSet, VecDeque};

/// The share of all that is given up that may be carried over even if nothing is ever asked for, as
/// a divisor: what it costs in writes.
const SHARE: i64 = 32;

/// Of so many bytes that gets found on disk, one more may be carried over: where much is asked for
/// again, what is carried over saves more than it costs.
const FOUND: u64 = 4;

/// Bytes that a packed record is taken to have when the index alone is asked.
const PACKED_BYTES: u64 = 512;

/// Reads at once.
const READS: usize = 4;

/// A record to be written anew.
#[derive(Debug)]
pub struct Copy {
    /// What is to be written.
    pub staged: Staged,
    /// Its tag.
    pub tag: Tag,
    /// Where it is now.
    pub place: u64,
}

/// What is being carried over.
#[derive(Debug, Default)]
pub struct Copies {
    to_read: VecDeque<Known>,
    reading: usize,
    queue: VecDeque<Copy>,
    bytes: usize,
    /// Bytes that gets found since a segment was last given up.
    found: u64,
    /// Bytes that may be carried over, saved up; below zero after a large record.
    budget: i64,
}

impl Copies {
    /// A get found so many bytes on disk, which pays for copies.
    pub const fn earn(&mut self, found: u64) {
        self.found = self.found.saturating_add(found);
    }

    /// What may be written for a segment of so many bytes that is given up.
    fn grant(&mut self, segment: i64) {
        let earned = i64::try_from(self.found / FOUND).unwrap_or(i64::MAX);
        self.found %= FOUND;
        self.budget = (self.budget + segment / SHARE).saturating_add(earned).min(segment);
    }

    /// Bytes that wait to be written.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether what there is should be written without waiting for more.
    pub fn wanted(&self) -> bool {
        !self.queue.is_empty() && self.reading == 0 && self.to_read.is_empty()
    }

    /// Whether all is done.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.reading == 0 && self.to_read.is_empty()
    }

    /// Gives up what is not written yet.
    pub fn clear(&mut self) {
        self.to_read.clear();
        self.queue.clear();
        self.bytes = 0;
    }

    /// The next to be written.
    pub fn next(&mut self) -> Option<Copy> {
        let copy = self.queue.pop_front()?;
        self.bytes -= copy.staged.record.len();
        Some(copy)
    }

    /// One that found no room waits again.
    pub fn give_back(&mut self, copy: Copy) {
        self.bytes += copy.staged.record.len();
        self.queue.push_front(copy);
    }

    fn add(&mut self, copy: Copy) {
        self.bytes += copy.staged.record.len();
        self.queue.push_back(copy);
    }
}

/// Bytes of a record, as far as the index knows.
const fn bytes_of(extent: Extent) -> u64 {
    match extent {
        Extent::Packed => PACKED_BYTES,
        Extent::Pages(pages) => pages as u64 * PAGE as u64,
    }
}

impl Webcosm {
    /// Begins to carry over those records of a segment that are worth it: those with the most uses
    /// for their size, as far as what may be written goes.
    pub(crate) fn begin_copies(&mut self, mut worth: Vec<(u64, Known)>) {
        let segment = i64::try_from(self.geometry.segment_bytes()).expect("segments are small");
        self.copies.earn(self.index.take_found());
        self.copies.grant(segment);
        worth.sort_unstable_by_key(|&(worth, known)| (std::cmp::Reverse(worth), known.place));
        let mut pages = BTreeSet::new();
        for (_, known) in worth {
            if self.copies.budget <= 0 {
                break;
            }
            self.copies.budget -= i64::try_from(bytes_of(known.extent)).expect("records are small");
            if pages.insert(known.place) {
                self.copies.to_read.push_back(known);
            }
        }
    }

    /// What the index knows of a record, and how many uses it has for a mebibyte, if it is worth
    /// carrying over.
    pub(crate) fn worth(&self, slot: u32, listed: &Listed) -> Option<(u64, Known)> {
        let place = self.geometry.place(slot, u64::from(listed.step) * 64);
        let known = self.index.get(listed.tag).filter(|known| known.place == place)?;
        self.uses_left(known)?;
        let awaited = self.forgetting.awaits(listed.tag);
        (!awaited).then_some(((u64::from(known.uses) << 20) / bytes_of(known.extent), known))
    }

    /// The uses that a record has left once it is carried over, if it is worth it.
    fn uses_left(&self, known: Known) -> Option<u8> {
        Distance::between(bytes_of(known.extent), self.mean()).uses_after_copy(known.uses)
    }

    /// Reads on.
    pub(crate) fn pump_copies(&mut self, out: &mut Outbox) {
        while self.copies.reading < READS && self.copies.bytes < self.settings.waiting_bytes / 2 {
            let Some(known) = self.copies.to_read.pop_front() else { break };
            self.copies.reading += 1;
            let spot = self.index.spot(known);
            self.file.read(spot.offset, spot.length, Pending::Copy(known, spot), out);
        }
    }

    /// What cannot be read is not carried over.
    pub(crate) fn copy_read(
        &mut self,
        known: Known,
        spot: Spot,
        result: Result<IoBuffer, IoError>,
    ) {
        self.copies.reading -= 1;
        let Ok(buffer) = result else { return };
        for (key, record) in spot.records(buffer, self.file.secret()) {
            let tag = self.tag(key);
            let still = self.index.get(tag).filter(|other| other.place == known.place);
            if let Some(uses) = still.and_then(|known| self.uses_left(known)) {
                self.observer.statistics.carried_over.add(1);
                self.observer.statistics.carried_over_bytes.add(record.len() as u64);
                self.copies.add(Copy {
                    staged: Staged { key, record, uses },
                    tag,
                    place: known.place,
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gets_found_pays_for_copies_up_to_a_segment() {
        let mut copies = Copies::default();
        copies.grant(3200);
        assert_eq!(copies.budget, 100, "a little is always allowed");
        copies.earn(401);
        copies.grant(3200);
        assert_eq!((copies.budget, copies.found), (300, 1));
        copies.earn(u64::MAX);
        copies.grant(3200);
        assert_eq!(copies.budget, 3200, "nothing is saved up beyond a segment");
    }
}
