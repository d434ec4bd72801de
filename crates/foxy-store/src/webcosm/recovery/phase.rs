//! The phases of a store's life, which may follow which, and what they mean to others.

use crate::one_file::lifecycle;
use crate::status::StoreStatus;
use crate::webcosm::Webcosm;
use crate::webcosm::index::shared::Readable;

/// Where the store is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Made, not started.
    New,
    /// The file is being opened and its superblocks read, or it is being created.
    Opening,
    /// The forget journal is being read.
    ReadingJournal,
    /// The segments written last are being looked for.
    FindingHead,
    /// This opening is made durable, with another size.
    Switching,
    /// What was stored is served as it becomes known again; nothing is taken until this opening is
    /// durable.
    Reading,
    /// A fresh superblock is being made durable: the store begins empty.
    Formatting,
    /// All is served, but records whose segment's summary has not been read yet are not known.
    Rebuilding,
    /// All is served.
    Serving,
    /// What waits is being written.
    Closing,
    /// Nothing is served any more.
    Closed,
    /// Nothing can be served.
    Unusable,
}

use Phase::{
    Closed, Closing, FindingHead, Formatting, New, Opening, Reading, ReadingJournal, Rebuilding,
    Serving, Switching, Unusable,
};

impl Phase {
    /// Whether all requests are answered.
    #[must_use]
    pub const fn serves(self) -> bool {
        matches!(self, Rebuilding | Serving)
    }

    /// Whether gets are answered.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Reading | Rebuilding | Serving)
    }

    /// Whether records become known again.
    #[must_use]
    pub const fn learns(self) -> bool {
        matches!(self, Reading | Rebuilding)
    }
}

impl lifecycle::StorePhase for Phase {
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

impl Webcosm {
    /// Moves to another phase.
    pub(crate) fn enter(&mut self, next: Phase) {
        let readable = Readable {
            salt: self.file.superblock().salt,
            secret: *self.file.secret(),
            file: self.file.id(),
        };
        self.index.set_complete((next == Serving).then_some(readable));
        self.life.enter(next);
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
