//! The report of a check: plain values.

use super::finding::Findings;
use crate::contract::Key;
use crate::one_file::superblock::{CopyState, Superblock};
pub use crate::webcosm::format::geometry::{Geometry, LogName};

#[derive(Clone, Debug)]
pub struct Report {
    pub copies: [CopyState; 2],
    /// The valid copy.
    pub superblock: Superblock,
    pub geometry: Geometry,
    pub journal: JournalReport,
    /// All slots, in file order.
    pub segments: Vec<SegmentReport>,
    /// Number of live records in each class of extent.
    pub classes: [ClassCount; 64],
    /// The records of the requested segment, in writing order.
    pub listed: Vec<RecordReport>,
    pub findings: Findings,
    pub verified_bytes: u64,
}

impl Report {
    pub fn live_records(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_records).sum()
    }

    pub fn live_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_bytes).sum()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCount {
    pub records: u64,
    /// Bytes of disk space.
    pub bytes: u64,
}

/// The active journal half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalReport {
    pub blocks: u64,
    pub room: u64,
    pub tombstones: u64,
    /// For each log, the first valid segment.
    pub tails: [u32; 2],
    /// For each log, the first segment whose summary may not be durable.
    pub durable_ends: [u32; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentState {
    /// Never written, or discarded.
    #[default]
    Free,
    Sealed,
    /// The writing of the segment was interrupted.
    Unsealed,
    /// The segment has no summary, because the summary's write failed or nothing was written.
    Void,
    /// The summary is unreadable.
    Lost,
    /// Discarded because a newer segment of its log is lost.
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
    /// Byte offset in the file.
    pub at: u64,
    pub log: LogName,
    /// The valid segment in the slot, if any.
    pub sequence: Option<u32>,
    pub state: SegmentState,
    /// The incarnation that wrote the segment.
    pub incarnation: u64,
    pub summary_pages: u32,
    pub records: u64,
    /// Bytes of disk space.
    pub bytes: u64,
    /// Number of records that a get would find.
    pub live_records: u64,
    pub live_bytes: u64,
    pub tombstones: u64,
}

/// Whether a get would find the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Live,
    /// A newer record has the same tag.
    Replaced,
    /// A tombstone covers the record.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordReport {
    pub tag: u64,
    /// Byte offset in the file. For a packed record, the offset of its page.
    pub at: u64,
    pub class: u8,
    pub standing: Standing,
    /// The key and the lengths of head and body, if the record is valid.
    pub found: Option<(Key, u64, u64)>,
}
