//! The phases of a store, from opening to closed, and the allowed transitions between phases.

use foxy_store::one_file::lifecycle;
use foxy_store::status::StoreStatus;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    New,
    /// The store opens or creates its file, and reads the superblocks.
    Opening,
    ReadingJournal,
    ReadingCheckpoint,
    /// The store switches the forget journal to its other half. Then its superblock durably counts
    /// this opening of the store.
    Switching,
    /// The store makes the superblock of an empty store durable.
    Formatting,
    /// The store reads the headers of all records. Meanwhile it serves the records that the
    /// checkpoint lists.
    Scanning,
    Serving,
    /// The store writes its buffers and a last checkpoint.
    Closing,
    Closed,
    Unusable,
}

use Phase::{
    Closed, Closing, Formatting, New, Opening, ReadingCheckpoint, ReadingJournal, Scanning,
    Serving, Switching, Unusable,
};

impl lifecycle::StorePhase for Phase {
    const TRANSITIONS: &'static [(Self, &'static [Self])] = &[
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

    const NEW: Self = New;
    const UNUSABLE: Self = Unusable;

    fn status(self) -> StoreStatus {
        match self {
            Scanning => StoreStatus::Rebuilding,
            Serving | Closing => StoreStatus::Serving,
            Closed => StoreStatus::Closed,
            _ => StoreStatus::Opening,
        }
    }

    fn is_closing(self) -> bool {
        matches!(self, Closing | Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_has_its_row_and_can_be_closed() {
        lifecycle::check_every_phase_reaches(Closed);
    }
}
