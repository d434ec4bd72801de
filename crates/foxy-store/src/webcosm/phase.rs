//! The phases of a webcosm store and the allowed changes between them.

use crate::one_file::lifecycle::StorePhase;
use crate::status::StoreStatus;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    New,
    /// The file is opened and its superblocks are read, or the file is created.
    Opening,
    ReadingJournal,
    /// Searches for the newest segments.
    FindingHead,
    /// Makes this opening durable and changes the size of the store.
    Switching,
    /// Makes this opening durable. Gets already find the records known so far.
    Reading,
    /// Makes a new superblock durable, for an empty store.
    Formatting,
    /// All requests are served. Records whose summaries are still unread are unknown.
    Rebuilding,
    Serving,
    /// Writes buffered records.
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
    /// Whether all kinds of requests are served.
    pub const fn serves(self) -> bool {
        matches!(self, Rebuilding | Serving)
    }

    /// Whether gets are served.
    pub const fn reads(self) -> bool {
        matches!(self, Reading | Rebuilding | Serving)
    }

    /// Whether the index is being rebuilt from summaries.
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
