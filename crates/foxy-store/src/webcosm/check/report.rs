//! The report that a check returns.

use super::finding::Findings;
use crate::contract::Key;
use crate::map::{SegmentPlace, SegmentUse, Survey};
use crate::one_file::superblock::{CopyState, Superblock};
pub use crate::webcosm::format::geometry::{Geometry, LogName};

/// The content of a store and the findings of the check.
#[derive(Clone, Debug)]
pub struct Report {
    pub copies: [CopyState; 2],
    /// The valid copy of the superblock.
    pub superblock: Superblock,
    pub geometry: Geometry,
    pub journal: JournalReport,
    /// The segment in each slot (place in the file), in the order of the file.
    pub segments: Vec<SegmentReport>,
    /// Number and bytes of live records, by class. A class is a code for the number of pages of a
    /// record.
    pub classes: [ClassCount; 64],
    /// The records of the segment that the caller asked for, in writing order.
    pub listed: Vec<RecordReport>,
    pub findings: Findings,
    pub verified_bytes: u64,
    /// The map of the live records. It has no use counts, because the check does not read them.
    pub survey: Survey,
}

impl Report {
    pub fn live_records(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_records).sum()
    }

    pub fn live_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_bytes).sum()
    }
}

/// The number and disk space of the live records of one class. A class is a code for the number of
/// pages of a record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCount {
    pub records: u64,
    /// Disk space of the live records of the class, in bytes.
    pub bytes: u64,
}

/// The content of the active half of the journal, as the check counted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalReport {
    pub blocks: u64,
    pub room: u64,
    pub tombstones: u64,
    /// For each log, the number of its oldest segment that is not discarded.
    pub tails: [u32; 2],
    /// For each log, the number of the first segment whose summary (list of records) may not be
    /// durable.
    pub durable_ends: [u32; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentState {
    /// The slot (place for a segment) was never written, or its segment is discarded.
    #[default]
    Free,
    Sealed,
    /// The segment has no summary, because a crash interrupted its writing.
    Unsealed,
    /// The segment has no summary, because writing the summary failed or because no record was
    /// written to the segment.
    Void,
    /// The summary of the segment is unreadable.
    Lost,
    /// The segment is discarded, because the summary of a newer segment of the same log is lost.
    /// The lost summary may have contained removals.
    GivenUp,
}

impl SegmentState {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Sealed => "sealed",
            Self::Unsealed => "unsealed",
            Self::Void => "void",
            Self::Lost => "lost",
            Self::GivenUp => "given-up",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    pub slot: u32,
    /// Byte offset of the segment in the file.
    pub at: u64,
    pub log: LogName,
    /// The number of the segment in the slot. `None` if the slot contains no valid segment.
    pub sequence: Option<u32>,
    pub state: SegmentState,
    /// The number of the opening of the store (incarnation) that wrote the segment.
    pub incarnation: u64,
    pub summary_pages: u32,
    pub records: u64,
    /// Disk space of all records in the segment, in bytes.
    pub bytes: u64,
    /// Number of records in the segment that a get would find.
    pub live_records: u64,
    /// Bytes of all pages that contain bytes of a live record, as in the map of the store.
    pub live_bytes: u64,
    pub tombstones: u64,
}

impl SegmentReport {
    /// Returns the place of the segment for a map. `newest` is the number of the newest segment of
    /// the log. In the map, an unsealed segment counts as open, and a void, lost or discarded
    /// segment as leaving.
    pub(super) fn place(&self, newest: u32, geometry: &Geometry) -> SegmentPlace {
        let state = match self.state {
            SegmentState::Free => SegmentUse::Free,
            SegmentState::Sealed => SegmentUse::Sealed,
            SegmentState::Unsealed => SegmentUse::Open,
            SegmentState::Void | SegmentState::Lost | SegmentState::GivenUp => SegmentUse::Leaving,
        };
        let is_free = state == SegmentUse::Free;
        SegmentPlace {
            state,
            sequence: self.sequence,
            age: self.sequence.map_or(0, |sequence| newest.saturating_sub(sequence)),
            written: if is_free { 0 } else { geometry.segment_bytes() },
            ..geometry.free_place(self.slot)
        }
    }
}

/// Whether a get would find the record, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Live,
    /// A newer record has the same tag (shortened key), so the index no longer contains this
    /// record.
    Replaced,
    /// A tombstone marks the record as removed.
    Forgotten,
}

impl Standing {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Replaced => "replaced",
            Self::Forgotten => "forgotten",
        }
    }
}

/// A record in the segment that the caller asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordReport {
    pub tag: u64,
    /// Byte offset of the record in the file. For a small record in a shared page, the offset of
    /// the page.
    pub at: u64,
    pub class: u8,
    pub standing: Standing,
    /// The key and the lengths of head and body. `None` if the record is invalid.
    pub found: Option<(Key, u64, u64)>,
}
