//! The phases of a webcosm store, from opening to closed, and the allowed changes between phases.

use crate::one_file::lifecycle::StorePhase;
use crate::status::StoreStatus;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    New,
    /// The store opens its file and reads the superblocks, or creates the file.
    Opening,
    ReadingJournal,
    /// The store searches the end of each log for its newest segments.
    FindingHead,
    /// The store makes this opening and a new size durable. The last write is a superblock with the
    /// number of this opening and the new size.
    Switching,
    /// The store makes this opening durable. The last write is a superblock with the number of this
    /// opening. A get already finds the records that are in the index.
    Reading,
    /// The store writes the first superblock of an empty store.
    Formatting,
    /// The store serves all requests while it still reads summaries (lists of records) of segments.
    /// A get does not find the records of unread summaries.
    Rebuilding,
    Serving,
    /// The store writes its buffered records before it closes the file.
    Closing,
    Closed,
    /// The store could not be opened.
    Unusable,
}

use Phase::{
    Closed, Closing, FindingHead, Formatting, New, Opening, Reading, ReadingJournal, Rebuilding,
    Serving, Switching, Unusable,
};

impl Phase {
    /// Returns whether the store serves all kinds of requests.
    pub const fn serves(self) -> bool {
        matches!(self, Rebuilding | Serving)
    }

    /// Returns whether the store serves `get` requests.
    pub const fn reads(self) -> bool {
        matches!(self, Reading | Rebuilding | Serving)
    }

    /// Returns whether the store is rebuilding its index from the summaries (lists of records) of
    /// segments.
    pub const fn rebuilds(self) -> bool {
        matches!(self, Reading | Rebuilding)
    }
}

impl StorePhase for Phase {
    const TRANSITIONS: &'static [(Self, &'static [Self])] = &[
        (New, &[Opening, Closed]),
        (Opening, &[ReadingJournal, Formatting, Unusable, Closed]),
        (ReadingJournal, &[FindingHead, Formatting, Closed]),
        (FindingHead, &[Switching, Reading, Closed]),
        (Switching, &[Rebuilding, Formatting, Unusable, Closed]),
        (Reading, &[Rebuilding, Unusable, Closed]),
        (Formatting, &[Serving, Unusable, Closed]),
        (Rebuilding, &[Serving, Closing]),
        (Serving, &[Closing]),
        (Closing, &[Closed]),
        (Closed, &[]),
        (Unusable, &[Closed]),
    ];

    const NEW: Self = New;
    const UNUSABLE: Self = Unusable;

    fn status(self) -> StoreStatus {
        match self {
            Reading | Rebuilding => StoreStatus::Rebuilding,
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
    use crate::one_file::lifecycle::check_every_phase_reaches;

    #[test]
    fn every_phase_has_its_row_and_can_be_closed() {
        check_every_phase_reaches(Closed);
    }
}
