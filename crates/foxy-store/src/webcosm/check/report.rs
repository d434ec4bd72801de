//! What a check says of a store. Values only.

use super::finding::Findings;
use crate::contract::Key;
use crate::one_file::superblock::{CopyState, Superblock};
pub use crate::webcosm::format::geometry::{Geometry, LogName};

/// All that was found out.
#[derive(Clone, Debug)]
pub struct Report {
    /// The two copies of the superblock.
    pub copies: [CopyState; 2],
    /// The one that counts.
    pub superblock: Superblock,
    /// How the file is divided.
    pub geometry: Geometry,
    /// The journal half that counts.
    pub journal: JournalReport,
    /// Every slot, in the order of the file.
    pub segments: Vec<SegmentReport>,
    /// The records that would be served, by the class of their extent.
    pub classes: [ClassCount; 64],
    /// The records of the segment that was asked for, in the order of writing.
    pub listed: Vec<RecordReport>,
    /// What is wrong or unusual.
    pub findings: Findings,
    /// Bytes whose checksums were computed.
    pub verified_bytes: u64,
}

impl Report {
    /// Records that would be served.
    #[must_use]
    pub fn live_records(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_records).sum()
    }

    /// Bytes of disk that these take.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_bytes).sum()
    }
}

/// Records of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCount {
    /// How many.
    pub records: u64,
    /// Bytes of disk that they take.
    pub bytes: u64,
}

/// What the journal says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JournalReport {
    /// Blocks written.
    pub blocks: u64,
    /// Blocks there is room for.
    pub room: u64,
    /// Facts: tags under which something older is forgotten.
    pub tombstones: u64,
    /// Of each log, the first segment that counts.
    pub tails: [u32; 2],
    /// Of each log, the first segment whose summary may not be durable.
    pub durable_ends: [u32; 2],
}

/// What a slot holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentState {
    /// Nothing that counts: never written, or given up.
    #[default]
    Free,
    /// A segment with its summary.
    Sealed,
    /// A segment whose writing was cut off.
    Unsealed,
    /// Nothing, though its turn has come: its summary could not be written, or nothing of it was.
    Void,
    /// A segment whose summary cannot be read.
    Lost,
    /// A segment that is given up because a newer one of its log is lost.
    GivenUp,
}

impl SegmentState {
    /// One word.
    #[must_use]
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

/// One slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentReport {
    /// Which slot of the file.
    pub slot: u32,
    /// Where it begins, in bytes.
    pub at: u64,
    /// The log it belongs to.
    pub log: LogName,
    /// Which segment of its log the slot holds, if any that counts.
    pub sequence: Option<u32>,
    /// What it holds.
    pub state: SegmentState,
    /// The incarnation it was written in.
    pub incarnation: u64,
    /// Pages of its summary.
    pub summary_pages: u32,
    /// Records in it.
    pub records: u64,
    /// Bytes of disk that they take.
    pub bytes: u64,
    /// Those that would be served.
    pub live_records: u64,
    /// Bytes of disk that these take.
    pub live_bytes: u64,
    /// Facts in its summary.
    pub tombstones: u64,
}

/// Why a record would be served, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It would.
    Live,
    /// A newer one has its tag.
    Replaced,
    /// A fact says that it is forgotten.
    Forgotten,
}

impl Standing {
    /// One word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Replaced => "replaced",
            Self::Forgotten => "forgotten",
        }
    }
}

/// One record, as its segment has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordReport {
    /// Its tag.
    pub tag: u64,
    /// Where it begins in the file, in bytes; a packed one where its page begins.
    pub at: u64,
    /// The class of its extent.
    pub class: u8,
    /// Whether it would be served.
    pub standing: Standing,
    /// Its key and the bytes of its head and body, if it is whole.
    pub found: Option<(Key, u64, u64)>,
}
