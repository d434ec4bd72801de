//! The purpose of each IO operation in flight. The engine uses the purpose to process the result.

use crate::contract::{Key, Ticket};
use crate::one_file::io_sequence::FailuresBefore;
use crate::webcosm::format::geometry::{Segment, Sequence};
use crate::webcosm::format::location::Location;
use crate::webcosm::format::summary::Trailer;
use crate::webcosm::index::{IndexEntry, Tag};

pub enum Pending {
    /// Reads the active half of the journal of tombstones.
    Journal,
    /// Reads the end of a segment. Recovery looks there for the newest segments.
    LookAtEnd(Segment),
    /// Reads the first page of a segment that has no summary.
    LookAtStart(Segment),
    /// Reads a whole segment that has no summary.
    LookAtAll(Segment),
    /// Reads the last pages of a segment, which contain its summary.
    SummaryEnd(SummaryPurpose, Segment),
    /// Reads a whole summary that is longer than the pages read by `SummaryEnd`.
    LongSummary(SummaryPurpose, LongSummary),
    /// Reads a record, or a page of small records, to copy the records into a new segment.
    Copy(IndexEntry, Location),
    /// Reads the pages of a record for a get.
    Read(PendingRead),
    /// Writes a batch of records.
    Batch(Batch),
    /// Writes the summary of a segment.
    Summary(Segment),
    /// Performs a step of the IO sequence, a list of writes and syncs in a fixed order.
    Step(PendingStep),
    /// Reads stored use counters, starting at this page of the counters' region.
    ReadUses(u32),
    WriteUses,
    /// Returns the disk space after the end of the store's file, once the store has become smaller.
    Trim,
}

/// The kind of a step of the IO sequence that is in flight.
pub enum PendingStep {
    Write,
    Summary(Segment),
    /// Syncs the file. For each log, the segments before this number then become durable.
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
    /// Total bytes of the batch's records, without padding.
    pub bytes: usize,
}
