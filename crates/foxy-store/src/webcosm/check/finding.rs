//! The findings of a check: damaged or unexpected bytes in a store, and what each finding means for
//! the cache.

use foxy_device::IoError;
use std::fmt;

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Normal after a killed process or a power failure. The next opening of the store repairs it.
    Normal,
    /// Bytes changed after they had been durably written.
    Damage,
    /// The device could not read the bytes, so they were not checked.
    Unread,
}

/// The fault or peculiarity that a check found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// One copy of the superblock is damaged.
    SuperblockDamaged,
    /// One copy of the superblock is older than the other, because a crash prevented its write.
    SuperblockOlder,
    /// One copy of a journal block is damaged.
    JournalCopyDamaged,
    /// The write of the last journal block was interrupted.
    JournalTorn,
    /// A journal block is damaged, although its write was finished.
    JournalDamaged,
    /// The journal names segments with numbers that a store of this size cannot have.
    MarksImpossible,
    /// The summary (the list of records) of a complete segment is missing or damaged.
    SummaryLost,
    /// A segment has no summary (list of its records), because it was still being written. This is
    /// no damage.
    Unsealed,
    /// A summary lists a record at a place in the segment where no record can be.
    EntryImpossible,
    /// The place that a summary lists contains no record of the incarnation (opening of the store)
    /// that wrote the segment.
    RecordNotThere,
    /// The header of a record is damaged.
    HeaderDamaged,
    /// The head and body of a record do not match their checksum.
    ContentDamaged,
    /// A page that several small records share is damaged.
    PageDamaged,
    /// The place that a summary lists contains another record than the summary says.
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
                "no effect: foxy uses the other copy".into()
            }
            Self::JournalCopyDamaged => "no effect: foxy uses the other copy of the block".into(),
            Self::JournalTorn => {
                "no effect: the write did not end, so no answer relied on it".into()
            }
            Self::JournalDamaged | Self::MarksImpossible => {
                "all records become misses: removed records could return, so the next start \
                 empties the store"
                    .into()
            }
            Self::SummaryLost => {
                "the records of this segment, and of all older segments of its log, become misses"
                    .into()
            }
            Self::Unsealed => {
                "no effect: the next start reads the segment and writes its summary".into()
            }
            Self::Unreadable(_) if misses == 0 => {
                "unknown, because the disk could not read these bytes".into()
            }
            _ => match misses {
                0 => "no effect: the records here were replaced or removed before".into(),
                1 => "1 record becomes a miss".into(),
                misses => format!("{misses} records become misses"),
            },
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SuperblockDamaged => "this copy of the superblock is damaged",
            Self::SuperblockOlder => "this copy of the superblock is older than the other copy",
            Self::JournalCopyDamaged => "this copy of a journal block is damaged",
            Self::JournalTorn => "the write of the journal's last block was interrupted",
            Self::JournalDamaged => "a journal block is damaged, although its write had ended",
            Self::MarksImpossible => {
                "the journal names segments that a store of this size cannot have"
            }
            Self::SummaryLost => "the segment's summary is missing or damaged",
            Self::Unsealed => "the segment has no summary yet",
            Self::EntryImpossible => "the summary lists a record at an impossible place",
            Self::RecordNotThere => {
                "the index lists a place that has no record, or a record from before the segment was overwritten"
            }
            Self::HeaderDamaged => "the checksum of the record's header is wrong",
            Self::ContentDamaged => "the checksum of the record's content is wrong",
            Self::PageDamaged => "the checksum of a page of small records is wrong",
            Self::OtherRecord => "the summary lists another record at this place",
            Self::Unreadable(error) => {
                return write!(f, "the disk cannot read these bytes: {error}");
            }
        })
    }
}

/// A range of bytes in which the check found something, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Byte offset of the affected bytes in the file.
    pub at: u64,
    /// Number of affected bytes.
    pub length: u64,
    /// The slot (place of a segment in the file) that contains the bytes. `None` if the bytes are
    /// in no segment.
    pub slot: Option<u32>,
    pub reason: Reason,
    pub level: Level,
    /// Number of records that a get would find without this damage, but will not find because of
    /// it.
    pub misses: u64,
}

/// The findings of a check. Only the first 10,000 findings are kept; further findings are only
/// counted.
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
