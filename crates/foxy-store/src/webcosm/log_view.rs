//! The state of a log for the layout map of the store (module `crate::map`): numbers and uses of
//! its segments, without the records.

use crate::map::SegmentUse;
use crate::webcosm::format::geometry::Sequence;

/// The state of a log, from its oldest segment to its newest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogView {
    pub tail: Sequence,
    /// Segments before this number will be discarded, or are already being discarded.
    pub leaving_end: Sequence,
    /// Segments of the log before this number are complete.
    pub sealed_end: Sequence,
    pub next: Sequence,
    /// The number of the open segment, and the number of its first page without records. `None` if
    /// no segment is open.
    pub open: Option<(Sequence, u32)>,
    /// The segment whose records in use are being copied.
    pub copied: Option<Sequence>,
}

impl LogView {
    /// Returns whether the segment is open, complete, being copied or being discarded.
    pub fn state(&self, sequence: Sequence) -> SegmentUse {
        if sequence < self.leaving_end {
            SegmentUse::Leaving
        } else if self.copied == Some(sequence) {
            SegmentUse::Copying
        } else if self.open.is_some_and(|(open, _)| open == sequence) {
            SegmentUse::Open
        } else if sequence >= self.sealed_end {
            SegmentUse::Sealing
        } else {
            SegmentUse::Sealed
        }
    }
}
