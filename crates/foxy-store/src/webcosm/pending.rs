//! The purpose of each disk operation in flight. The storage scheme uses the purpose to process the
//! result.

use crate::contract::{Key, Ticket};
use crate::one_file::io_sequence::FailuresBefore;
use crate::webcosm::format::geometry::{Segment, Sequence};
use crate::webcosm::format::location::Location;
use crate::webcosm::format::summary::Trailer;
use crate::webcosm::index::{IndexEntry, Tag};

/// The purpose of a disk operation in flight.
pub enum Pending {
    /// Reads the active half of the journal, which contains tombstones (marks of removed records).
    Journal,
    /// Reads the last pages of a segment. An opening searches there for the newest segments.
    LookAtEnd(Segment),
    /// Reads the first page of a segment that has no summary (list of records).
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
    /// Performs a step of the running list of writes and syncs in a fixed order.
    Step(PendingStep),
    /// Reads use counters of records, starting at this page of the area that contains them.
    ReadUses(u32),
    WriteUses,
    /// Frees the disk space after the end of the store, once the store has become smaller.
    Trim,
}

/// The current step of the running list of writes and syncs.
pub enum PendingStep {
    Write,
    Summary(Segment),
    /// Syncs the file. After a success, all segments before these numbers (one for each log) are
    /// durable.
    Sync([Sequence; 2], FailuresBefore),
}

pub struct PendingRead {
    pub ticket: Ticket,
    pub key: Key,
    pub tag: Tag,
    pub entry: IndexEntry,
    pub location: Location,
}

/// The task that needs a summary: an opening that rebuilds the index, or the discarding of the
/// segment.
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

/// A batch of records that is being written to a segment.
pub struct Batch {
    pub segment: Segment,
    pub keys: Vec<Key>,
    /// Number of bytes in the records of the batch, without padding.
    pub bytes: usize,
}
