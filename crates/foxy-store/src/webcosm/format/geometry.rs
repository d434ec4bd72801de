//! The layout of a webcosm file: superblocks, two halves of a journal, and two logs of segments. A
//! log is a ring: it discards its oldest segments and reuses their places. The layout depends on
//! the file's current size and its size at creation.

use crate::layout::{PAGE, Region};
use crate::one_file::superblock::Superblock;
use crate::record::HEADER;
use crate::settings::{MINIMUM_SIZE, RECORD_BODY_LIMIT};

/// Smallest possible size of a granule, in bytes. A granule is the unit of disk space: every record
/// starts at a multiple of it. Larger stores have larger granules.
const MIN_GRANULE: u64 = 64;

/// Number of bits that an index entry has for the start of a record. The start is counted in
/// granules.
pub const PLACE_BITS: u32 = 34;

/// The probation log (for large new records) has 1/`PROBATION_SHARE` of all segments. The main log
/// has the others.
const PROBATION_SHARE: u32 = 8;

/// A store can become at most this many times larger or smaller than it was at its creation. The
/// limit keeps the index efficient, because the number of its partitions is fixed at creation.
const MAX_RESIZE_FACTOR: u64 = 8;

/// Largest number of pages in a segment. With pages of 4096 bytes, the largest segment has 16 MiB.
pub const MAX_SEGMENT_PAGES: u32 = 4096;

/// Size in bytes of the largest store: 8 TiB. An index entry could not address the records of a
/// larger store, even with granules of 512 bytes.
pub const MAX_STORE_BYTES: u64 = 512 << PLACE_BITS;

/// The number of a segment in its log, in writing order. A log never uses a number again.
pub type Sequence = u32;

/// The name of one of the two logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogName {
    /// The log for small records and for records that were requested again.
    Main,
    /// The log for large new records. A record here is discarded unless a client requests it again.
    Probation,
}

impl LogName {
    /// All logs: the main log and the probation log.
    pub const ALL: [Self; 2] = [Self::Main, Self::Probation];
}

/// Identifies a segment: its log, and its number in this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    pub log: LogName,
    pub sequence: Sequence,
}

/// The position of a page in a log: the sequence number of the segment, then the number of the page
/// in the segment. The order of positions in one log is the order of writing. Positions of
/// different logs cannot be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

/// A stamp contains the number of an opening of the store (incarnation) from this bit on. The bits
/// below contain a [`Position`].
pub const INCARNATION_SHIFT: u32 = 45;

impl Position {
    pub const fn new(segment: Segment, page: u32) -> Self {
        Self(((segment.log as u64) << 44) + ((segment.sequence as u64) << 12) + page as u64)
    }

    pub const fn segment(self) -> Segment {
        let log = if self.0 >> 44 == 0 { LogName::Main } else { LogName::Probation };
        Segment { log, sequence: (self.0 >> 12) as Sequence }
    }

    /// Returns the stamp that a page at this position contains if the given incarnation (opening of
    /// the store) writes it. Stamps expose old or misdirected pages.
    pub const fn stamp(self, incarnation: u64) -> u64 {
        incarnation << INCARNATION_SHIFT | self.0
    }
}

/// The slots of one log. A slot is a place in the file for one segment. A log reuses its slots in
/// turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    pub first: u32,
    pub segments: u32,
}

/// Maps the segments of the main log to slots (places in the file). When a store is resized, the
/// map changes in such a way that existing segments keep their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotMap {
    /// The segment that was in the first slot when the store was last resized. This segment and all
    /// later segments are placed with the current number of slots.
    pub base: Sequence,
    /// Number of slots that the segments before `base` use. Segment `base - 1` is in the last of
    /// these slots, `base - 2` in the slot before, and so on.
    pub before: u32,
}

impl SlotMap {
    /// Packs the map (from segments to slots) into one number, which the superblock contains.
    pub const fn pack(self) -> u64 {
        (self.base as u64) << 32 | self.before as u64
    }

    pub const fn unpack(packed: u64) -> Self {
        Self { base: (packed >> 32) as Sequence, before: packed as u32 }
    }

    /// Returns the slot (place for a segment) of a segment, not yet wrapped around: the caller must
    /// take the result modulo the number of slots.
    pub const fn place(self, sequence: Sequence) -> u32 {
        match sequence.checked_sub(self.base) {
            Some(number) => number,
            None => sequence.wrapping_sub(self.base).wrapping_add(self.before),
        }
    }

    /// Returns the largest number of segments that a log can have now. `slots` is the log's number
    /// of slots, and `oldest` its oldest segment. While `oldest` was written before the last change
    /// of the store's size (below `base`), the log can have only `before` segments.
    pub const fn segments(self, slots: u32, oldest: Sequence) -> u32 {
        if oldest < self.base { self.before } else { slots }
    }
}

/// The layout of one store file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of pages of the file that the store uses.
    pages: u64,
    /// The two halves of the journal of tombstones (marks of removals).
    pub journal: [Region; 2],
    /// Byte offset of the first segment in the file.
    pub start: u64,
    /// Number of pages in a segment; a power of two.
    pub segment_pages: u32,
    /// The slots of each log.
    pub rings: [Ring; 2],
    /// The map from segments of the main log to slots. A resize changes it.
    pub slot_map: SlotMap,
    /// Size of a granule (unit of disk space) in bytes. Every record starts at a multiple of it.
    pub granule: u64,
    /// The index has 2^`partition_bits` partitions.
    pub partition_bits: u32,
}

impl Geometry {
    /// Computes the layout of a new file of `size` bytes. A larger size than [`MAX_STORE_BYTES`]
    /// counts as that limit.
    pub fn of(size: u64) -> Self {
        let pages = size.min(MAX_STORE_BYTES) / PAGE as u64;
        let half = u32::try_from((pages / 256).clamp(8, 512)).expect("clamped") & !1;
        let first = 2 + 2 * half;
        let small = power_below(pages / 8).min(512);
        let large = power_below(pages / 128).min(u64::from(MAX_SEGMENT_PAGES));
        let segment_pages = u32::try_from(small.max(large).max(8)).expect("at most 4096");
        let mut granule = MIN_GRANULE;
        while pages * PAGE as u64 / granule > 1 << PLACE_BITS {
            granule *= 2;
        }
        Self {
            pages,
            journal: [Region { first: 2, pages: half }, Region { first: 2 + half, pages: half }],
            start: u64::from(first) * PAGE as u64,
            segment_pages,
            rings: rings(pages, first, segment_pages),
            slot_map: SlotMap::default(),
            granule,
            partition_bits: power_below(pages / 256).ilog2().clamp(2, 18),
        }
    }

    /// Computes the layout of an existing file from its superblock. A resize changes only the
    /// number of segments; all other values follow from the size at creation. Impossible sizes in
    /// the superblock are clamped to the possible range.
    pub fn in_file(superblock: &Superblock) -> Self {
        let size = superblock.size.clamp(MINIMUM_SIZE, MAX_STORE_BYTES);
        if superblock.origin == 0 {
            return Self::of(size);
        }
        let begun = Self::of(superblock.origin.clamp(MINIMUM_SIZE, MAX_STORE_BYTES));
        let pages = (size / PAGE as u64).max(begun.least_pages());
        let slot_map = SlotMap::unpack(superblock.turn);
        Self { pages, rings: begun.rings_in(pages), slot_map, ..begun }
    }

    /// Returns the layout of this store with a new size of `size` bytes. Returns `None` if the size
    /// differs too much from `origin`, the size at creation in bytes.
    pub fn resized(&self, origin: u64, size: u64) -> Option<Self> {
        let pages = size / PAGE as u64;
        let is_near =
            origin / MAX_RESIZE_FACTOR <= size && size <= origin.saturating_mul(MAX_RESIZE_FACTOR);
        let is_addressable = pages * PAGE as u64 / self.granule <= 1 << PLACE_BITS;
        let is_possible =
            is_near && is_addressable && size <= MAX_STORE_BYTES && pages >= self.least_pages();
        is_possible.then(|| Self { pages, rings: self.rings_in(pages), ..*self })
    }

    /// Returns the slots (places for segments) of both logs if the file has `pages` pages.
    fn rings_in(&self, pages: u64) -> [Ring; 2] {
        let first = u32::try_from(self.start / PAGE as u64).expect("journals are small");
        rings(pages, first, self.segment_pages)
    }

    /// Returns the number of pages in the smallest file that can contain segments of this size.
    fn least_pages(&self) -> u64 {
        self.start / PAGE as u64 + 5 * u64::from(self.segment_pages)
    }

    pub const fn segment_bytes(&self) -> u64 {
        self.segment_pages as u64 * PAGE as u64
    }

    /// Returns the number of slots of both logs together.
    pub const fn slots(&self) -> u32 {
        self.rings[0].segments + self.rings[1].segments
    }

    /// Returns the number of slots of a log.
    pub const fn segments(&self, log: LogName) -> u32 {
        self.rings[log as usize].segments
    }

    /// Returns the size in bytes of the largest object that fits the store, as one record or in
    /// parts.
    pub fn largest_object(&self) -> u64 {
        let record = u64::from(self.segment_pages - 1) * PAGE as u64;
        self.object_room(LogName::Main).max(record)
    }

    /// Returns how many bytes of one object fit in a log if the object is stored in parts (one
    /// record each). Leaves out segments that must stay free, and the end of each segment that is
    /// too small for a part.
    pub fn object_room(&self, log: LogName) -> u64 {
        let part = ((HEADER + RECORD_BODY_LIMIT).div_ceil(PAGE) as u32).min(self.segment_pages - 1);
        let parts = (self.segment_pages - 1) / part;
        let segments = self.segments(log);
        let filled = segments.saturating_sub(1 + kept_clean(segments)).max(1);
        u64::from(filled) * u64::from(parts * (part - 1)) * PAGE as u64
    }

    /// Returns how many segments a log can have if `oldest` is its oldest segment.
    pub const fn segments_from(&self, oldest: Segment) -> u32 {
        let slots = self.segments(oldest.log);
        match oldest.log {
            LogName::Main => self.slot_map.segments(slots, oldest.sequence),
            LogName::Probation => slots,
        }
    }

    /// Returns the slot that contains a segment.
    pub const fn slot(&self, segment: Segment) -> u32 {
        let ring = self.rings[segment.log as usize];
        let number = match segment.log {
            LogName::Main => self.slot_map.place(segment.sequence),
            LogName::Probation => segment.sequence,
        };
        ring.first + number % ring.segments
    }

    /// Returns the log that a slot belongs to.
    pub const fn log_of(&self, slot: u32) -> LogName {
        if slot < self.rings[0].segments { LogName::Main } else { LogName::Probation }
    }

    /// Returns the byte offset in the file at which page `page` of a slot starts.
    pub const fn offset(&self, slot: u32, page: u32) -> u64 {
        self.start + slot as u64 * self.segment_bytes() + page as u64 * PAGE as u64
    }

    /// Returns the number of the granule (smallest unit of disk space) that contains byte `byte` of
    /// a slot. Granules are counted from the first slot.
    pub const fn place(&self, slot: u32, byte: u64) -> u64 {
        (slot as u64 * self.segment_bytes() + byte) / self.granule
    }

    /// Returns the slot that contains the granule (smallest unit of disk space) with number
    /// `place`, and the byte offset of the granule within the slot.
    pub const fn find(&self, place: u64) -> (u32, u64) {
        let byte = place * self.granule;
        ((byte / self.segment_bytes()) as u32, byte % self.segment_bytes())
    }

    /// Returns the pages of the file after the last segment. They contain the use counters (number
    /// of requests) of records.
    pub fn uses(&self) -> Region {
        let first = self.offset(self.slots(), 0) / PAGE as u64;
        let pages = u32::try_from(self.pages - first).expect("less than a segment");
        Region { first: u32::try_from(first).expect("at most 2^31 pages"), pages }
    }
}

/// Returns how many segments a log of `segments` segments tries to keep clean (free for new
/// records).
pub fn kept_clean(segments: u32) -> u32 {
    if segments < 16 { 1 } else { 1 + group_size(segments) }
}

/// Returns how many segments a log of `segments` segments syncs together. The log also discards
/// segments in groups of this number.
pub fn group_size(segments: u32) -> u32 {
    (segments / 64).clamp(1, 8)
}

fn rings(pages: u64, first: u32, segment_pages: u32) -> [Ring; 2] {
    let segments = (pages - u64::from(first)) / u64::from(segment_pages);
    let segments = u32::try_from(segments).expect("segments grow with the file");
    let probation = (segments / PROBATION_SHARE).max(2);
    let main = segments - probation;
    [Ring { first: 0, segments: main }, Ring { first: main, segments: probation }]
}

/// Returns the largest power of two that is at most `number`. Returns 1 for 0.
fn power_below(number: u64) -> u64 {
    1 << number.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_fill_the_file_and_there_are_enough_to_turn_over() {
        for size in [
            MINIMUM_SIZE,
            1 << 20,
            33 << 20,
            512 << 20,
            10 << 30,
            (1 << 40) + 12_345,
            MAX_STORE_BYTES,
        ] {
            let geometry = Geometry::of(size);
            let used = geometry.start + u64::from(geometry.slots()) * geometry.segment_bytes();
            assert!(
                used <= size && size - used < geometry.segment_bytes() + 4096,
                "{size}: {geometry:?}"
            );
            assert!(geometry.slots() >= 5, "{size}: {geometry:?}");
            let rest = geometry.uses();
            assert_eq!(rest.offset(), used, "{size}: {geometry:?}");
            assert!(
                used + rest.bytes() as u64 <= size.min(MAX_STORE_BYTES),
                "{size}: {geometry:?}"
            );
            let last = geometry.place(geometry.slots() - 1, geometry.segment_bytes() - 1);
            assert!(last < 1 << PLACE_BITS, "{size}: {geometry:?}");
            assert_eq!(geometry.find(last).0, geometry.slots() - 1);
        }
    }

    #[test]
    fn a_place_names_the_byte_it_was_made_from() {
        let geometry = Geometry::of(1 << 30);
        let place = geometry.place(3, 64 * 77);
        assert_eq!(geometry.find(place), (3, 64 * 77));
        assert_eq!(geometry.offset(3, 5), geometry.start + 3 * geometry.segment_bytes() + 5 * 4096);
    }

    #[test]
    fn each_log_turns_in_slots_of_its_own() {
        let geometry = Geometry::of(1 << 30);
        for log in LogName::ALL {
            let ring = geometry.rings[log as usize];
            let slot = |sequence| geometry.slot(Segment { log, sequence });
            assert_eq!((slot(0), slot(ring.segments)), (ring.first, ring.first));
            assert_eq!(slot(ring.segments - 1), ring.first + ring.segments - 1);
            let segment = Segment { log, sequence: 1 << 31 };
            assert_eq!(Position::new(segment, 4095).segment(), segment);
        }
    }

    #[test]
    fn older_segments_are_counted_back_from_where_the_slots_ended() {
        let slot_map = SlotMap { base: 20, before: 10 };
        let places = [12, 19, 20, 21, 35].map(|sequence| slot_map.place(sequence));
        assert_eq!(places, [2, 9, 0, 1, 15]);
        assert_eq!([slot_map.segments(30, 12), slot_map.segments(30, 20)], [10, 30]);
        assert_eq!(SlotMap::unpack(slot_map.pack()), slot_map);
    }
}
