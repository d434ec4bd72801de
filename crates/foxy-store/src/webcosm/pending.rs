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
    /// Reads the end of a segment, to find the newest segments.
    LookAtEnd(Segment),
    /// Reads the first page of a segment without a summary.
    LookAtStart(Segment),
    /// Reads all of a segment without a summary.
    LookAtAll(Segment),
    /// Reads the end of a segment, where its summary is.
    SummaryEnd(SummaryPurpose, Segment),
    /// Reads a summary that is longer than the end that was read first.
    LongSummary(SummaryPurpose, LongSummary),
    /// Reads a record, or a page of records, that is copied forward.
    Copy(IndexEntry, Location),
    /// Reads the pages of a get.
    Read(PendingRead),
    /// Writes a batch of records.
    Batch(Batch),
    /// Writes the summary of a segment.
    Summary(Segment),
    /// A step of the IO sequence.
    Step(PendingStep),
    /// Reads use counters, from this page of their region.
    ReadUses(u32),
    WriteUses,
    /// Gives back the space behind the end of a store that was made smaller.
    Trim,
}

/// A step of the IO sequence in flight.
pub enum PendingStep {
    Write,
    Summary(Segment),
    /// For each log, the segments before this one become durable.
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
    /// Bytes of the records.
    pub bytes: usize,
}
