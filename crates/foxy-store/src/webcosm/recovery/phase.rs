//! The phases of a store's life, which may follow which, and what they mean to others.

use crate::contract::{AbsentReason, RefusedReason};
use crate::phases;
use crate::status::{OpenStoreError, StoreStatus, Unable};
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

/// Every legal step from one phase to another.
pub const TRANSITIONS: &[(Phase, &[Phase])] = &[
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

impl Phase {
    /// Whether `next` may follow.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        phases::may_become(TRANSITIONS, &self, &next)
    }

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

impl Webcosm {
    /// What a get is told when the phase does not serve it, and what a put or removal.
    pub(crate) fn unable(&self) -> (AbsentReason, RefusedReason) {
        let unable = match self.phase {
            Phase::Unusable => Unable::Failed(self.failure.unwrap_or(OpenStoreError::Foreign)),
            Phase::Closing | Phase::Closed => Unable::Closed,
            _ => Unable::Recovering,
        };
        unable.reasons()
    }

    pub(crate) fn status(&self) -> StoreStatus {
        match self.phase {
            Phase::Reading | Phase::Rebuilding => StoreStatus::Rebuilding,
            Phase::Serving | Phase::Closing => StoreStatus::Serving,
            Phase::Closed => StoreStatus::Closed,
            Phase::Unusable => {
                StoreStatus::Unusable(self.failure.unwrap_or(OpenStoreError::Foreign))
            }
            _ => StoreStatus::Opening,
        }
    }

    /// Moves to another phase.
    pub(crate) fn enter(&mut self, next: Phase) {
        assert!(self.phase.may_become(next), "{:?} does not lead to {next:?}", self.phase);
        self.phase = next;
        let readable =
            Readable { salt: self.superblock.salt, secret: self.secret, file: self.file };
        self.index.set_complete((next == Phase::Serving).then_some(readable));
        self.observer.status.set(self.status());
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
