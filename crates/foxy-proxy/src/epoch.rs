//! When a fetch began, as the cache counts it: what must not come back is told from what may by this alone.

use crate::purge::Stamp;

/// When a fetch began: the number of invalidations of its key's group, and of purges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) number: u64,
    pub(crate) begun: Stamp,
}

impl Epoch {
    /// The same for a fetch that began earlier, and has itself invalidated what was there then.
    pub(crate) fn begun_in(self, earlier: Self) -> Self {
        Self { begun: earlier.begun, ..self }
    }
}

/// An epoch for tests of what only compares them.
#[cfg(test)]
pub(crate) const fn test_epoch(number: u64) -> Epoch {
    Epoch { number, begun: Stamp { era: 0, moment: 0 } }
}
