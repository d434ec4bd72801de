//! The phases of a store's life and which may follow which.

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
    Closed, Closing, Formatting, New, Opening, ReadingCheckpoint, ReadingJournal, Scanning, Serving,
    Switching, Unusable,
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
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        TRANSITIONS.iter().any(|(from, to)| *from == self && to.contains(&next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_its_row_and_can_be_closed() {
        for (from, _) in TRANSITIONS {
            assert_eq!(TRANSITIONS.iter().filter(|(other, _)| other == from).count(), 1, "{from:?}");
            let mut reached = vec![*from];
            let mut next = 0;
            while next < reached.len() {
                let row = TRANSITIONS.iter().find(|(other, _)| *other == reached[next]);
                let (_, to) = row.expect("every phase that is reached has a row");
                let new: Vec<_> = to.iter().filter(|phase| !reached.contains(phase)).copied().collect();
                reached.extend(new);
                next += 1;
            }
            assert!(reached.contains(&Closed), "{from:?} never closes");
        }
    }
}
