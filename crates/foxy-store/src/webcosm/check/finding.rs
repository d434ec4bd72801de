//! The findings of a check, with the consequence of each finding for the cache.

use foxy_device::IoError;
use std::fmt;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Normal after a killed process or a power failure. The next opening repairs the store.
    Normal,
    /// Bytes changed after they were durably written.
    Damage,
    /// The device could not read the bytes, so they were not checked.
    Unread,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One copy of the superblock is damaged.
    SuperblockDamaged,
    /// One copy of the superblock is older, because a crash prevented the write of that copy.
    SuperblockOlder,
    /// One copy of a journal block is damaged.
    JournalCopyDamaged,
    /// The write of the last journal block was interrupted.
    JournalTorn,
    /// A journal block is damaged, although its write was finished.
    JournalDamaged,
    /// The journal names segments that a store of this size cannot have.
    MarksImpossible,
    /// The summary of a complete segment is missing or damaged.
    SummaryLost,
    /// A segment has no summary, because it was still being written. This is no damage.
    Unsealed,
    /// A summary lists a record at a place where no record can be.
    EntryImpossible,
    /// The listed place contains no record of this place and incarnation.
    RecordNotThere,
    /// The header of a record is damaged.
    HeaderDamaged,
    /// The head and body of a record do not match their checksum.
    ContentDamaged,
    /// A page of small records is damaged.
    PageDamaged,
    /// The listed place contains another record than the summary says.
    OtherRecord,
    Unreadable(IoError),
}

impl Reason {
    /// Returns the name of the reason in machine-readable output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SuperblockDamaged => "superblock-damaged",
            Self::SuperblockOlder => "superblock-older",
            Self::JournalCopyDamaged => "journal-copy-damaged",
            Self::JournalTorn => "journal-torn",
            Self::JournalDamaged => "journal-damaged",
            Self::MarksImpossible => "marks-impossible",
            Self::SummaryLost => "summary-lost",
            Self::Unsealed => "unsealed",
            Self::EntryImpossible => "entry-impossible",
            Self::RecordNotThere => "record-not-there",
            Self::HeaderDamaged => "header-damaged",
            Self::ContentDamaged => "content-damaged",
            Self::PageDamaged => "page-damaged",
            Self::OtherRecord => "other-record",
            Self::Unreadable(_) => "unreadable",
        }
    }

    /// Describes the consequence for the cache if `misses` live records are affected.
    pub fn meaning(self, misses: u64) -> String {
        match self {
            Self::SuperblockDamaged | Self::SuperblockOlder => {
                "nothing: the other copy counts".into()
            }
            Self::JournalCopyDamaged => "nothing: the other copy of the block counts".into(),
            Self::JournalTorn => "nothing: nobody was answered for it".into(),
            Self::JournalDamaged | Self::MarksImpossible => {
                "all records are misses: what was removed could come back, so the store begins anew"
                    .into()
            }
            Self::SummaryLost => {
                "its records and those of all older segments of its log are misses".into()
            }
            Self::Unsealed => {
                "nothing: the next opening reads it through and writes its summary".into()
            }
            Self::Unreadable(_) if misses == 0 => "not known: it could not be looked at".into(),
            _ => match misses {
                0 => "nothing: what it holds has been replaced or removed".into(),
                1 => "1 record is a miss".into(),
                misses => format!("{misses} records are misses"),
            },
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SuperblockDamaged => "this copy of the superblock is not whole",
            Self::SuperblockOlder => "this copy of the superblock is older than the other",
            Self::JournalCopyDamaged => "this copy of a journal block is not whole",
            Self::JournalTorn => "the journal's last block was not written whole",
            Self::JournalDamaged => "a journal block that must be whole is not",
            Self::MarksImpossible => "the journal names segments that the store cannot have",
            Self::SummaryLost => "the segment has lost its summary",
            Self::Unsealed => "the segment has no summary yet",
            Self::EntryImpossible => "the summary lists a record where none can be",
            Self::RecordNotThere => "there is no record of this place and incarnation",
            Self::HeaderDamaged => "the record's header does not have its checksum",
            Self::ContentDamaged => "the record's content does not have its checksum",
            Self::PageDamaged => "the page of small records does not have its checksum",
            Self::OtherRecord => "the record is not the one that the summary lists",
            Self::Unreadable(error) => return write!(f, "it cannot be read: {error}"),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Byte offset of the affected bytes in the file.
    pub at: u64,
    /// Number of affected bytes.
    pub length: u64,
    /// The slot of the affected segment. `None` if the bytes are in no segment.
    pub slot: Option<u32>,
    pub reason: Reason,
    pub level: Level,
    /// Number of live records that a get will not find because of the finding.
    pub misses: u64,
}

/// The findings of a check. Only the first 10,000 findings are stored, the others are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    pub kept: Vec<Finding>,
    pub left_out: u64,
    counts: [u64; 3],
}

const MAX_KEPT: usize = 10_000;

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        self.counts[finding.level as usize] += 1;
        if self.kept.len() < MAX_KEPT {
            self.kept.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    pub const fn count(&self, level: Level) -> u64 {
        self.counts[level as usize]
    }
}
