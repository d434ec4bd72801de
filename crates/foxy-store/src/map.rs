//! A view of a store's layout, for people: which segments are open, full, being freed or free, and
//! which records are in them. The view changes nothing, and no request waits for it.

use crate::contract::{Key, ReadNow, Record};
use std::ops::Range;

/// Number of equal parts of a segment for which a map tells how much of the part is live.
pub const STRIPS: usize = 16;

/// Largest number of units (see [`Survey::unit_bytes`]) that a survey tells apart. Each unit needs
/// a bit of memory.
const MAX_UNITS: u64 = 1 << 25;

const PAGE: u64 = crate::layout::PAGE as u64;

/// The current use of the place of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentUse {
    /// No segment is here.
    #[default]
    Free,
    /// The segment is open: new records are written to it.
    Open,
    /// The segment is full, and the list of its records is being written.
    Sealing,
    /// The segment is complete.
    Sealed,
    /// The segment is the next to be discarded, and its records in use are being copied.
    Copying,
    /// The segment is being discarded: the journal states this, then its records leave the index.
    Leaving,
}

impl SegmentUse {
    /// Returns the use as one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Open => "open",
            Self::Sealing => "sealing",
            Self::Sealed => "sealed",
            Self::Copying => "copying",
            Self::Leaving => "leaving",
        }
    }
}

/// The place of a segment, and what is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentPlace {
    /// Number of the place in the file.
    pub slot: u32,
    /// Number of the log that the place belongs to.
    pub log: u8,
    /// The current use of the place.
    pub state: SegmentUse,
    /// The number of the segment in its log, in writing order. `None` if the place is free.
    pub sequence: Option<u32>,
    /// Number of segments that the log has begun after this segment.
    pub age: u32,
    /// Number of bytes written so far, from the start of the segment.
    pub written: u64,
    /// Number of records that a get would find.
    pub live_records: u32,
    /// Bytes of all units (see [`Survey::unit_bytes`]) that contain bytes of a live record.
    pub live_bytes: u64,
    /// Number of live records by their use count, which ends at 3.
    pub uses: [u32; 4],
    /// For each part of the segment, how much of it live records use: from 0 (nothing) to 9 (all).
    pub strips: [u8; STRIPS],
}

/// A hole is space inside a segment that no live record uses. Holes are grouped by size: the size
/// in pages of a hole of group `n` is at least 2^n and below 2^(n+1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoleCount {
    /// Number of free gaps of this size.
    pub holes: u64,
    /// Bytes of all free gaps of this size.
    pub bytes: u64,
}

/// An unfinished map of the live records. Each step visits a part of the index, so that no step
/// delays a request.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Size of a segment in bytes.
    pub segment_bytes: u64,
    /// The smallest amount of space that the survey tells apart, in bytes.
    pub unit_bytes: u64,
    /// The places in the order of the file.
    pub segments: Vec<SegmentPlace>,
    /// Holes by size.
    pub holes: Vec<HoleCount>,
    live: Vec<u64>,
    /// The part of the index to visit next.
    pub(crate) next: usize,
}

impl Survey {
    /// Begins a survey of these places. `segment_bytes` is a power of two.
    pub(crate) fn new(segment_bytes: u64, segments: Vec<SegmentPlace>) -> Self {
        let total = segment_bytes * segments.len() as u64;
        let unit_bytes = (total / MAX_UNITS).max(PAGE).next_power_of_two().min(segment_bytes);
        let units = total / unit_bytes;
        let live = vec![0; usize::try_from(units.div_ceil(64)).unwrap_or(0)];
        Self { segment_bytes, unit_bytes, segments, holes: Vec::new(), live, next: 0 }
    }

    /// Returns a survey without places, for tests.
    #[doc(hidden)]
    pub fn empty() -> Self {
        Self::new(PAGE, Vec::new())
    }

    /// Adds a live record that starts at byte `at` of a place and touches `bytes` bytes.
    pub(crate) fn add(&mut self, slot: u32, at: u64, bytes: u64, uses: u8) {
        let Some(segment) = self.segments.get_mut(slot as usize) else { return };
        segment.live_records += 1;
        segment.uses[usize::from(uses & 3)] += 1;
        let start = u64::from(slot) * self.segment_bytes;
        let end = (at + bytes.max(1)).min(self.segment_bytes);
        for unit in (start + at) / self.unit_bytes..(start + end).div_ceil(self.unit_bytes) {
            self.live[(unit / 64) as usize] |= 1 << (unit % 64);
        }
    }

    /// Computes live bytes, strips and holes, after the whole index was visited.
    pub(crate) fn finish(&mut self) {
        let units = self.segment_bytes / self.unit_bytes;
        let groups = (self.segment_bytes / PAGE).ilog2() as usize + 1;
        self.holes = vec![HoleCount::default(); groups];
        for number in 0..self.segments.len() {
            let first = number as u64 * units;
            let is_live = |unit: u64| self.live[(unit / 64) as usize] >> (unit % 64) & 1 == 1;
            let (mut live, mut hole, mut strips) = (0, 0, [(0_u64, 0_u64); STRIPS]);
            let written = self.segments[number].written.div_ceil(self.unit_bytes).min(units);
            for unit in 0..units {
                let alive = is_live(first + unit);
                let strip = &mut strips[(unit * STRIPS as u64 / units) as usize];
                *strip = (strip.0 + u64::from(alive), strip.1 + 1);
                live += u64::from(alive);
                let is_hole = !alive && unit < written;
                if !is_hole {
                    note(&mut self.holes, std::mem::take(&mut hole) * self.unit_bytes);
                }
                hole += u64::from(is_hole);
            }
            note(&mut self.holes, hole * self.unit_bytes);
            let segment = &mut self.segments[number];
            segment.live_bytes = live * self.unit_bytes;
            segment.strips = strips.map(|(live, all)| (live * 9).div_ceil(all.max(1)).min(9) as u8);
        }
        self.live = Vec::new();
    }
}

fn note(holes: &mut [HoleCount], bytes: u64) {
    if let Some(group) = (bytes / PAGE).checked_ilog2()
        && let Some(count) = holes.get_mut(group as usize)
    {
        *count = HoleCount { holes: count.holes + 1, bytes: count.bytes + bytes };
    }
}

/// The fate of a record when its segment is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFate {
    /// The record was requested often enough for its size, so the store copies it to a new segment,
    /// as far as it may copy.
    Copied,
    /// The record is lost with its segment.
    Dropped,
}

/// A live record and its place.
#[derive(Clone, Copy, Debug)]
pub struct PlacedRecord {
    /// The place of the record's segment.
    pub slot: u32,
    /// Byte offset in the segment. Small records share a page, and have the offset of the page.
    pub at: u64,
    /// Bytes that a get reads.
    pub bytes: u64,
    /// Number of requests since the record was written, at most 3. Small records begin with more.
    pub uses: u8,
    /// The fate of the record when its segment is discarded.
    pub fate: RecordFate,
    pub(crate) tag: u64,
    pub(crate) place: u64,
}

/// A scan of the index for the records of some places.
#[derive(Debug)]
pub struct RecordScan {
    /// The places.
    pub slots: Range<u32>,
    /// The scan ends after about this number of records.
    pub most: usize,
    /// The records found so far, in no order.
    pub found: Vec<PlacedRecord>,
    /// The part of the index to visit next. A later scan can continue here.
    pub next: usize,
    /// Number of parts of the index.
    pub parts: usize,
}

impl RecordScan {
    /// Begins a scan at a part of the index: 0, or the end of an earlier scan.
    pub const fn new(slots: Range<u32>, most: usize, next: usize) -> Self {
        Self { slots, most, found: Vec::new(), next, parts: 0 }
    }
}

/// A storage scheme's view of its layout. Each method holds the index's lock for a fraction of a
/// millisecond, whatever the size of the store.
pub trait LayoutView {
    /// Begins a survey.
    fn begin_survey(&self) -> Survey;
    /// Visits the next part of the index. Returns whether there is more.
    fn continue_survey(&self, survey: &mut Survey) -> bool;
    /// Visits the next part of the index. Returns whether there is more.
    fn continue_scan(&self, scan: &mut RecordScan) -> bool;
    /// Reads and verifies a record that a scan found. `read` may wait for the disk. Returns `None`
    /// if the record is no longer there.
    fn read_placed(&self, record: &PlacedRecord, read: &mut ReadNow<'_>) -> Option<(Key, Record)>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_units_strips_and_holes_follow_from_the_records() {
        let place = |slot, written| SegmentPlace { slot, written, ..SegmentPlace::default() };
        let mut survey = Survey::new(64 * PAGE, vec![place(0, 64 * PAGE), place(1, 8 * PAGE)]);
        survey.add(0, 0, 16 * PAGE, 0);
        survey.add(0, 20 * PAGE + 64, 100, 3);
        survey.add(0, 20 * PAGE + 64, 100, 3);
        survey.add(1, 0, PAGE, 1);
        survey.finish();
        let [first, second] = &survey.segments[..] else { panic!("two places") };
        assert_eq!((first.live_records, first.live_bytes), (3, 17 * PAGE));
        assert_eq!((first.uses, second.uses), ([1, 0, 0, 2], [0, 1, 0, 0]));
        assert_eq!(first.strips[..7], [9, 9, 9, 9, 0, 3, 0]);
        let holes: Vec<_> = survey.holes.iter().map(|group| group.holes).collect();
        assert_eq!(holes, [0, 0, 2, 0, 0, 1, 0], "4 and 7 pages, 43 pages");
        assert_eq!(survey.holes[2].bytes, 11 * PAGE);
    }

    #[test]
    fn a_survey_of_a_huge_store_needs_little_memory() {
        let segments = vec![SegmentPlace::default(); 1 << 19];
        let survey = Survey::new(16 << 20, segments);
        assert_eq!(survey.unit_bytes, 256 << 10);
        assert_eq!(survey.live.len() * 8, 4 << 20);
    }
}
