//! How a webcosm file is divided: superblocks, two journal halves, a ring of segments. Arithmetic
//! only; all of it follows from the file's size, and from the one it was begun with if that was
//! another.

use crate::layout::{PAGE, Region};
use crate::one_file::superblock::Superblock;
use crate::record::HEADER;
use crate::settings::{MINIMUM_SIZE, RECORD_BODY_LIMIT};
pub use crate::webcosm::format::slot_map::Turn;

/// The finest step at which a record may begin, in bytes.
const GRANULE: u64 = 64;

/// Bits of an index entry that say where a record begins.
pub const PLACE_BITS: u32 = 34;

/// The share of all segments that are on probation, as a divisor.
const PROBATION_SHARE: u32 = 8;

/// How many times larger or smaller than at its beginning a store can become: its index is made for
/// so many records.
const MOST_FACTOR: u64 = 8;

/// Pages of the largest segment: 16 MiB.
pub const MOST_SEGMENT_PAGES: u32 = 4096;

/// The most bytes one store can use: 8 TiB, where places with the coarsest granule end.
pub const MOST_BYTES: u64 = 512 << PLACE_BITS;

/// Which segment of its log in the order of writing. It grows by one a segment and never repeats
/// within a store.
pub type Sequence = u32;

/// The two logs, each a ring of segments of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogName {
    /// Where records stay.
    Main,
    /// Where large records must be asked for again to stay.
    Probation,
}

impl LogName {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Main, Self::Probation];
}

/// A segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Segment {
    /// Whose.
    pub log: LogName,
    /// Which.
    pub sequence: Sequence,
}

/// A page of a log: its segment's place in the order of writing, and its place within the segment.
/// Only positions of one log can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(pub u64);

impl Position {
    /// That page of that segment.
    #[must_use]
    pub const fn new(segment: Segment, page: u32) -> Self {
        Self(((segment.log as u64) << 44) + ((segment.sequence as u64) << 12) + page as u64)
    }

    /// Its segment.
    #[must_use]
    pub const fn segment(self) -> Segment {
        let log = if self.0 >> 44 == 0 { LogName::Main } else { LogName::Probation };
        Segment { log, sequence: (self.0 >> 12) as Sequence }
    }

    /// What a page there carries when it was written in that life of the store.
    #[must_use]
    pub const fn stamp(self, life: u64) -> u64 {
        life << LIFE_SHIFT | self.0
    }
}

/// How far left the life is in a stamp.
pub const LIFE_SHIFT: u32 = 45;

/// The slots of one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// The first of them.
    pub first: u32,
    /// How many.
    pub segments: u32,
}

/// The division of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Pages of the file that are used.
    pages: u64,
    /// The halves of the forget journal.
    pub journal: [Region; 2],
    /// Where the first segment begins, in bytes.
    pub start: u64,
    /// Pages of a segment; a power of two.
    pub segment_pages: u32,
    /// The slots of each log.
    pub rings: [Ring; 2],
    /// How the main log's follow each other.
    pub turn: Turn,
    /// Bytes of a granule: where records may begin.
    pub granule: u64,
    /// The index has this power of two partitions.
    pub partition_bits: u32,
}

impl Geometry {
    /// Divides a file of `size` bytes. Sizes are capped at [`MOST_BYTES`].
    #[must_use]
    pub fn of(size: u64) -> Self {
        let pages = size.min(MOST_BYTES) / PAGE as u64;
        let half = u32::try_from((pages / 256).clamp(8, 512)).expect("clamped") & !1;
        let first = 2 + 2 * half;
        let small = power_below(pages / 8).min(512);
        let large = power_below(pages / 128).min(u64::from(MOST_SEGMENT_PAGES));
        let segment_pages = u32::try_from(small.max(large).max(8)).expect("at most 4096");
        let mut granule = GRANULE;
        while pages * PAGE as u64 / granule > 1 << PLACE_BITS {
            granule *= 2;
        }
        Self {
            pages,
            journal: [Region { first: 2, pages: half }, Region { first: 2 + half, pages: half }],
            start: u64::from(first) * PAGE as u64,
            segment_pages,
            rings: rings(pages, first, segment_pages),
            turn: Turn::default(),
            granule,
            partition_bits: power_below(pages / 256).ilog2().clamp(2, 18),
        }
    }

    /// The division of the file with that superblock. What does not follow from the number of
    /// segments stays as it was when the store was begun. Sizes that no store has are taken for the
    /// nearest ones.
    #[must_use]
    pub fn in_file(superblock: &Superblock) -> Self {
        let size = superblock.size.clamp(MINIMUM_SIZE, MOST_BYTES);
        if superblock.origin == 0 {
            return Self::of(size);
        }
        let begun = Self::of(superblock.origin.clamp(MINIMUM_SIZE, MOST_BYTES));
        let pages = (size / PAGE as u64).max(begun.least_pages());
        let first = u32::try_from(begun.start / PAGE as u64).expect("journals are small");
        let turn = Turn::unpack(superblock.turn);
        Self { pages, rings: rings(pages, first, begun.segment_pages), turn, ..begun }
    }

    /// The division once the file has another size, all else being as it is; `None` when that is
    /// too far from what the store was begun with.
    #[must_use]
    pub fn resized(&self, origin: u64, size: u64) -> Option<Self> {
        let pages = size / PAGE as u64;
        let near = origin / MOST_FACTOR <= size && size <= origin.saturating_mul(MOST_FACTOR);
        let addressed = pages * PAGE as u64 / self.granule <= 1 << PLACE_BITS;
        let first = u32::try_from(self.start / PAGE as u64).expect("journals are small");
        let possible = near && addressed && size <= MOST_BYTES && pages >= self.least_pages();
        possible.then(|| Self { pages, rings: rings(pages, first, self.segment_pages), ..*self })
    }

    /// Pages of the smallest file with such segments.
    fn least_pages(&self) -> u64 {
        self.start / PAGE as u64 + 5 * u64::from(self.segment_pages)
    }

    /// Bytes of a segment.
    #[must_use]
    pub const fn segment_bytes(&self) -> u64 {
        self.segment_pages as u64 * PAGE as u64
    }

    /// How many slots there are.
    #[must_use]
    pub const fn slots(&self) -> u32 {
        self.rings[0].segments + self.rings[1].segments
    }

    /// How many segments a log has.
    #[must_use]
    pub const fn segments(&self, log: LogName) -> u32 {
        self.rings[log as usize].segments
    }

    /// Bytes of the largest object that the store can hold, in parts or as the largest record of a
    /// segment.
    #[must_use]
    pub fn largest_object(&self) -> u64 {
        let record = u64::from(self.segment_pages - 1) * PAGE as u64;
        self.object_room(LogName::Main).max(record)
    }

    /// Bytes of one object in parts that a log holds at once: its clean segments and the ends of
    /// segments that no part fits into are lost.
    #[must_use]
    pub fn object_room(&self, log: LogName) -> u64 {
        let part = ((HEADER + RECORD_BODY_LIMIT).div_ceil(PAGE) as u32).min(self.segment_pages - 1);
        let parts = (self.segment_pages - 1) / part;
        let segments = self.segments(log);
        let filled = segments.saturating_sub(1 + kept_clean(segments)).max(1);
        u64::from(filled) * u64::from(parts * (part - 1)) * PAGE as u64
    }

    /// How many segments a log can have when that is the oldest of them.
    #[must_use]
    pub const fn segments_from(&self, oldest: Segment) -> u32 {
        let slots = self.segments(oldest.log);
        match oldest.log {
            LogName::Main => self.turn.segments(slots, oldest.sequence),
            LogName::Probation => slots,
        }
    }

    /// The slot that a segment lies in.
    #[must_use]
    pub const fn slot(&self, segment: Segment) -> u32 {
        let ring = self.rings[segment.log as usize];
        let number = match segment.log {
            LogName::Main => self.turn.place(segment.sequence),
            LogName::Probation => segment.sequence,
        };
        ring.first + number % ring.segments
    }

    /// The log that a slot belongs to.
    #[must_use]
    pub const fn log_of(&self, slot: u32) -> LogName {
        if slot < self.rings[0].segments { LogName::Main } else { LogName::Probation }
    }

    /// Where a page of a slot lies in the file, in bytes.
    #[must_use]
    pub const fn offset(&self, slot: u32, page: u32) -> u64 {
        self.start + slot as u64 * self.segment_bytes() + page as u64 * PAGE as u64
    }

    /// The granule at which `byte` of a slot lies.
    #[must_use]
    pub const fn place(&self, slot: u32, byte: u64) -> u64 {
        (slot as u64 * self.segment_bytes() + byte) / self.granule
    }

    /// What is left of the file behind the segments, for a hint of which records are in use.
    #[must_use]
    pub fn uses(&self) -> Region {
        let first = self.offset(self.slots(), 0) / PAGE as u64;
        let pages = u32::try_from(self.pages - first).expect("less than a segment");
        Region { first: u32::try_from(first).expect("at most 2^31 pages"), pages }
    }

    /// The slot of a granule, and its byte within the segment there.
    #[must_use]
    pub const fn find(&self, place: u64) -> (u32, u64) {
        let byte = place * self.granule;
        ((byte / self.segment_bytes()) as u32, byte % self.segment_bytes())
    }
}

/// How many segments a log of so many keeps clean at least.
#[must_use]
pub fn kept_clean(segments: u32) -> u32 {
    if segments < 16 { 1 } else { 1 + together(segments) }
}

/// How many segments of a log of so many are synced, and given up, together.
#[must_use]
pub fn together(segments: u32) -> u32 {
    (segments / 64).clamp(1, 8)
}

/// The slots of both logs in a file of that many pages.
fn rings(pages: u64, first: u32, segment_pages: u32) -> [Ring; 2] {
    let segments = (pages - u64::from(first)) / u64::from(segment_pages);
    let segments = u32::try_from(segments).expect("segments grow with the file");
    let probation = (segments / PROBATION_SHARE).max(2);
    let main = segments - probation;
    [Ring { first: 0, segments: main }, Ring { first: main, segments: probation }]
}

/// The largest power of two that is not above `number`, and at least 1.
fn power_below(number: u64) -> u64 {
    1 << number.max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_fill_the_file_and_there_are_enough_to_turn_over() {
        for size in
            [MINIMUM_SIZE, 1 << 20, 33 << 20, 512 << 20, 10 << 30, (1 << 40) + 12_345, MOST_BYTES]
        {
            let geometry = Geometry::of(size);
            let used = geometry.start + u64::from(geometry.slots()) * geometry.segment_bytes();
            assert!(
                used <= size && size - used < geometry.segment_bytes() + 4096,
                "{size}: {geometry:?}"
            );
            assert!(geometry.slots() >= 5, "{size}: {geometry:?}");
            let rest = geometry.uses();
            assert_eq!(rest.offset(), used, "{size}: {geometry:?}");
            assert!(used + rest.bytes() as u64 <= size.min(MOST_BYTES), "{size}: {geometry:?}");
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
}
