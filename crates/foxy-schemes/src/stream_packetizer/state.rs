//! The phases of a store's life and which may follow which.

use foxy_store::phases;

/// Where the store is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Made, not started.
    New,
    /// The file is being opened and its superblocks read, or it is being created.
    Opening,
    /// The forget journal is being read.
    ReadingJournal,
    /// The newest checkpoint is being read.
    ReadingCheckpoint,
    /// The journal moves to its other half and this opening is made durable.
    Switching,
    /// A fresh superblock is being made durable: the store begins empty.
    Formatting,
    /// Checkpointed records are served while headers are read.
    Scanning,
    /// All is served.
    Serving,
    /// What is buffered and a last checkpoint are being written.
    Closing,
    /// Nothing is served any more.
    Closed,
    /// Nothing can be served.
    Unusable,
}

use Phase::{
    Closed, Closing, Formatting, New, Opening, ReadingCheckpoint, ReadingJournal, Scanning,
    Serving, Switching, Unusable,
};

/// Every legal step from one phase to another.
pub const TRANSITIONS: &[(Phase, &[Phase])] = &[
    (New, &[Opening, Closed]),
    (Opening, &[ReadingJournal, Formatting, Unusable, Closed]),
    (ReadingJournal, &[ReadingCheckpoint, Formatting, Closed]),
    (ReadingCheckpoint, &[Switching, Closed]),
    (Switching, &[Scanning, Serving, Unusable, Closed]),
    (Formatting, &[Serving, Unusable, Closed]),
    (Scanning, &[Serving, Closed]),
    (Serving, &[Closing]),
    (Closing, &[Closed]),
    (Closed, &[]),
    (Unusable, &[Closed]),
];

impl Phase {
    /// Whether `next` may follow.
    pub fn may_become(self, next: Self) -> bool {
        phases::may_become(TRANSITIONS, &self, &next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_its_row_and_can_be_closed() {
        phases::check_every_phase_reaches(TRANSITIONS, Closed);
    }
}
