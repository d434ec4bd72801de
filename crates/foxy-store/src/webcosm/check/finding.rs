//! What a check can find, and what each finding means for the cache. Names and words; nothing is
//! looked for here.

use foxy_device::IoError;
use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What is left when a process is killed or the power fails: the next opening deals with it.
    Normal,
    /// Bytes that were durable are not what they were.
    Damage,
    /// The device could not read them, so nobody knows.
    Unread,
}

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A copy of the superblock is not whole; the other one is.
    SuperblockDamaged,
    /// A copy of the superblock is older than the other: the writing of both was cut off between
    /// them.
    SuperblockOlder,
    /// One of the two copies of a journal block is not whole.
    JournalCopyDamaged,
    /// The block after the journal's last whole one is not whole: its writing was cut off.
    JournalTorn,
    /// A block of the journal is not whole although it must be.
    JournalDamaged,
    /// The journal's marks contradict the store's size.
    MarksImpossible,
    /// A segment that must have a summary has none that is whole.
    SummaryLost,
    /// A segment has no whole summary yet, and needs none.
    Unsealed,
    /// A summary lists a record where none can be.
    EntryImpossible,
    /// Where a record should be there is none of that place and incarnation.
    RecordNotThere,
    /// The header of a record does not have its checksum.
    HeaderDamaged,
    /// Head and body of a record do not have their checksum.
    ContentDamaged,
    /// A page of small records does not have its checksum.
    PageDamaged,
    /// The record that is there is not the one that the summary lists.
    OtherRecord,
    /// The device did not read it.
    Unreadable(IoError),
}

impl Reason {
    /// One word for programs.
    #[must_use]
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

    /// What it means for the cache when `misses` records that would be served are concerned.
    #[must_use]
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

/// Something found at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its first byte in the file.
    pub at: u64,
    /// Bytes of the part that it is about.
    pub length: u64,
    /// The slot of the segment that it lies in.
    pub slot: Option<u32>,
    /// What.
    pub reason: Reason,
    /// How much it matters.
    pub level: Level,
    /// Records that would be served, and will not be.
    pub misses: u64,
}

/// The findings, as many as are worth keeping; all are counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The first of them.
    pub kept: Vec<Finding>,
    /// How many more there were.
    pub left_out: u64,
    counts: [u64; 3],
}

/// Findings kept.
const MOST_KEPT: usize = 10_000;

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        self.counts[finding.level as usize] += 1;
        if self.kept.len() < MOST_KEPT {
            self.kept.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    /// How many there are of a level.
    #[must_use]
    pub const fn count(&self, level: Level) -> u64 {
        self.counts[level as usize]
    }
}
