//! The purposes of operations in flight.

use crate::contract::{Key, Ticket};
use crate::one_file::io_sequence::FailuresBefore;
use crate::webcosm::format::geometry::{Segment, Sequence};
use crate::webcosm::format::location::Location;
use crate::webcosm::format::summary::Trailer;
use crate::webcosm::index::{IndexEntry, Tag};

pub enum Pending {
    /// Reads the active half of the forget journal.
    Journal,
    /// Reads the end of a segment to find the newest segments.
    LookAtEnd(Segment),
    /// Reads the first page of a segment without a summary.
    LookAtStart(Segment),
    /// Reads a whole segment that has no summary.
    LookAtAll(Segment),
    /// Reads the last pages of a segment, which contain its summary.
    SummaryEnd(SummaryPurpose, Segment),
    /// Reads a whole summary, because it did not fit in the pages read first.
    LongSummary(SummaryPurpose, LongSummary),
    /// Reads a record, or a page of records, to copy it forward.
    Copy(IndexEntry, Location),
    /// Reads the pages of a record for a get.
    Read(PendingRead),
    /// Writes a batch of records.
    Batch(Batch),
    /// Writes the summary of a segment.
    Summary(Segment),
    /// Performs a step of the IO sequence.
    Step(PendingStep),
    /// Reads use counters, starting at this page of their region.
    ReadUses(u32),
    WriteUses,
    /// Frees the file's space after the end of a store that became smaller.
    Trim,
}

/// A step of the IO sequence in flight.
pub enum PendingStep {
    Write,
    Summary(Segment),
    /// For each log, the segments before this number become durable.
    Sync([Sequence; 2], FailuresBefore),
}

pub struct PendingRead {
    pub ticket: Ticket,
    pub key: Key,
    pub tag: Tag,
    pub entry: IndexEntry,
    pub location: Location,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SummaryPurpose {
    Rebuild,
    Reclaim,
}

#[derive(Clone, Copy)]
pub struct LongSummary {
    pub segment: Segment,
    pub incarnation: u64,
    pub trailer: Trailer,
}

pub struct Batch {
    pub segment: Segment,
    pub keys: Vec<Key>,
    /// Total bytes of the batch's records.
    pub bytes: usize,
}
