//! What the operations in flight are for.

use crate::index::EntryId;
use foxy_store::contract::{Key, Ticket};
use foxy_store::one_file::io_sequence::FailuresBefore;

/// What an operation in flight is for.
pub enum Pending {
    /// Reading the active journal half.
    Journal,
    /// Reading the first page of a checkpoint area.
    CheckpointHead(usize),
    /// Reading pages of a checkpoint, from this one.
    CheckpointPages(u32),
    /// Reading pages of records for their headers.
    Scan(crate::pages::Run),
    /// A get.
    Read(PendingRead),
    /// A page buffer being written.
    Window,
    /// A step of an IO sequence; a sync takes along what it makes durable.
    Step(LaneName, Option<Synced>),
    /// Reading a record that may not be durable, to write it again.
    Settle(crate::pages::Run),
}

/// A get whose pages are being read.
#[derive(Debug)]
pub struct PendingRead {
    /// Who waits.
    pub ticket: Ticket,
    pub(super) key: Key,
    pub(super) sequence: u64,
    pub(super) entry: EntryId,
}

/// What a sync makes durable, if it succeeds.
pub struct Synced {
    pub(super) overwritten: Vec<EntryId>,
    pub(super) durable: u64,
    pub(super) failures_before: FailuresBefore,
}

/// Sequences of one lane run one after the other; the lanes run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneName {
    /// Superblock and journal.
    Journal,
    /// Checkpoints and sweeps.
    Checkpoint,
}
