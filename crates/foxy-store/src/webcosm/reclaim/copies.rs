//! Copies records that are in use out of a segment that will be discarded. The records are read
//! from the segment, and written again with the next batch.

use crate::layout::PAGE;
use crate::webcosm::context::Context;
use crate::webcosm::format::location::Location;
use crate::webcosm::index::{Extent, IndexEntry, Tag};
use crate::webcosm::pending::Pending;
use crate::webcosm::write::write_buffer::BufferedRecord;
use crate::worth::Distance;
use foxy_device::{IoBuffer, IoError};
use std::cmp::Reverse;
use std::collections::{BTreeSet, VecDeque};

/// Even without hits, the store may copy 1/`BASE_SHARE` of the bytes of each segment that it
/// discards.
const BASE_SHARE: i64 = 32;

/// Estimated size in bytes of a record in a shared page. The index entry of such a record does not
/// contain its length.
const PACKED_BYTES: u64 = 512;

const MAX_READS: usize = 4;

/// A record that was read and waits to be written again.
#[derive(Debug)]
pub struct RecordCopy {
    pub record: BufferedRecord,
    pub tag: Tag,
    /// The number of the granule (unit of disk space) where the record started before the copy.
    pub place: u64,
}

/// A record that is worth copying. The candidates with the most uses per byte are copied first.
#[derive(Debug)]
pub struct Candidate {
    uses_per_mebibyte: u64,
    entry: IndexEntry,
}

impl Candidate {
    /// Creates a candidate for a copy. Returns `None` if the record is not worth copying.
    pub fn new(entry: IndexEntry, mean_bytes: u64) -> Option<Self> {
        uses_left(entry, mean_bytes)?;
        let uses_per_mebibyte = (u64::from(entry.uses) << 20) / bytes_of(entry.extent);
        Some(Self { uses_per_mebibyte, entry })
    }
}

/// Returns the use count that a record has after a copy. Returns `None` if the record is not worth
/// copying. `mean_bytes` is the mean size of a record.
fn uses_left(entry: IndexEntry, mean_bytes: u64) -> Option<u8> {
    Distance::between(bytes_of(entry.extent), mean_bytes).uses_after_copy(entry.uses)
}

/// Returns whether a record would be copied if the limit on copied bytes permits.
pub fn is_worth_copying(entry: IndexEntry, mean_bytes: u64) -> bool {
    uses_left(entry, mean_bytes).is_some()
}

/// Returns the estimated size in bytes of a record with this extent (shared page, or number of
/// pages).
const fn bytes_of(extent: Extent) -> u64 {
    match extent {
        Extent::Packed => PACKED_BYTES,
        Extent::Pages(pages) => pages as u64 * PAGE as u64,
    }
}

/// The copies in progress. Before webcosm discards a segment, it copies records in use out of this
/// segment. webcosm first reads a record, then writes its copy.
#[derive(Debug, Default)]
pub struct Copies {
    to_read: VecDeque<IndexEntry>,
    reading: usize,
    queue: VecDeque<RecordCopy>,
    bytes: usize,
    /// Number of bytes that `get` requests found on disk since copies of the last segment began.
    found: u64,
    /// Number of bytes that may still be copied. A large record can make the number negative.
    budget: i64,
}

impl Copies {
    /// Notes that gets found `found` bytes on disk. The store may copy as many bytes in return.
    pub const fn earn(&mut self, found: u64) {
        self.found = self.found.saturating_add(found);
    }

    /// Raises the number of bytes that may be copied, because a segment of `segment` bytes will be
    /// discarded.
    fn grant(&mut self, segment: i64) {
        let earned = i64::try_from(std::mem::take(&mut self.found)).unwrap_or(i64::MAX);
        self.budget = (self.budget + segment / BASE_SHARE).saturating_add(earned).min(segment);
    }

    /// Returns the bytes of all copies that wait to be written.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether all copies of a segment have been read, and some wait to be written.
    pub fn are_ready(&self) -> bool {
        !self.queue.is_empty() && self.reading == 0 && self.to_read.is_empty()
    }

    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.reading == 0 && self.to_read.is_empty()
    }

    /// Drops the copied records that are not written yet.
    pub fn clear(&mut self) {
        self.to_read.clear();
        self.queue.clear();
        self.bytes = 0;
    }

    pub fn next(&mut self) -> Option<RecordCopy> {
        let copy = self.queue.pop_front()?;
        self.bytes -= copy.record.record.len();
        Some(copy)
    }

    /// Puts a copy back at the front of the queue, because a batch had no space for it.
    pub fn give_back(&mut self, copy: RecordCopy) {
        self.bytes += copy.record.record.len();
        self.queue.push_front(copy);
    }

    /// Starts to copy records of a segment. Copies the records with the most uses per byte first,
    /// until no more bytes may be copied.
    pub fn begin(&mut self, cx: &Context, mut candidates: Vec<Candidate>) {
        let segment = i64::try_from(cx.geometry.segment_bytes()).expect("segments are small");
        self.earn(cx.index.take_found());
        self.grant(segment);
        candidates.sort_unstable_by_key(|candidate| {
            (Reverse(candidate.uses_per_mebibyte), candidate.entry.place)
        });
        let mut pages = BTreeSet::new();
        for Candidate { entry, .. } in candidates {
            if self.budget <= 0 {
                break;
            }
            self.budget -= i64::try_from(bytes_of(entry.extent)).expect("records are small");
            if pages.insert(entry.place) {
                self.to_read.push_back(entry);
            }
        }
    }

    pub fn pump(&mut self, cx: &mut Context) {
        while self.reading < MAX_READS && self.bytes < cx.settings.waiting_bytes / 2 {
            let Some(entry) = self.to_read.pop_front() else { break };
            self.reading += 1;
            let location = cx.index.location(entry);
            cx.read(location.offset, location.length, Pending::Copy(entry, location));
        }
    }

    /// Queues the records that were read from one place of the segment. Unreadable records are not
    /// copied.
    pub fn read_done(
        &mut self,
        cx: &Context,
        mean_bytes: u64,
        entry: IndexEntry,
        location: Location,
        result: Result<IoBuffer, IoError>,
    ) {
        self.reading -= 1;
        let Ok(buffer) = result else { return };
        let place = entry.place;
        for (key, record) in location.records(buffer, cx.secret()) {
            let tag = cx.tag(key);
            let current = cx.index.get(tag).filter(|current| current.place == place);
            if let Some(uses) = current.and_then(|current| uses_left(current, mean_bytes)) {
                cx.statistics().carried_over.add(1);
                cx.statistics().carried_over_bytes.add(record.len() as u64);
                self.bytes += record.len();
                let record = BufferedRecord { key, record, uses };
                self.queue.push_back(RecordCopy { record, tag, place });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn found_bytes_pay_for_copies_up_to_a_segment() {
        let mut copies = Copies::default();
        copies.grant(3200);
        assert_eq!(copies.budget, 100, "a little is always allowed");
        copies.earn(401);
        copies.grant(3200);
        assert_eq!((copies.budget, copies.found), (601, 0));
        copies.earn(u64::MAX);
        copies.grant(3200);
        assert_eq!(copies.budget, 3200, "nothing is saved up beyond a segment");
    }
}
