//! When a fetch began, as the cache counts it: what must not come back is told from what may by this alone.

use crate::purge::Stamp;
use foxy_store::Key;
use std::collections::VecDeque;

/// When a fetch began: the number of invalidations of its key's group, and of purges, and its own among the group's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) number: u64,
    pub(crate) begun: Stamp,
    /// Fetches of its group that began before it, and itself.
    pub(crate) order: u64,
    /// Whether it is made although something is stored or being fetched already, so that an older one may end after it.
    pub(crate) renews: bool,
}

impl Epoch {
    /// Whether its request came after that of `other`, for the same URL.
    pub(crate) const fn is_after(self, other: Self) -> bool {
        self.order > other.order
    }

    /// The same for a fetch that began earlier, and has itself invalidated what was there then.
    pub(crate) fn begun_in(self, earlier: Self) -> Self {
        Self { begun: earlier.begun, ..self }
    }
}

/// Renewals that a group remembers. One that is forgotten lets a fetch that began before it, and lasted longer than all those
/// after it, put an older response in its place.
const REMEMBERED: usize = 16;

/// What the keys of a group share.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Invalidations so far.
    pub(crate) invalidated: u64,
    /// Fetches that began so far.
    begun: u64,
    /// Whose response was renewed by the fetch of which number, the newest last.
    renewed: VecDeque<(Key, u64)>,
}

impl Group {
    /// The epoch of a fetch that begins now.
    pub(crate) fn begin(&mut self, begun: Stamp) -> Epoch {
        self.begun += 1;
        Epoch { number: self.invalidated, begun, order: self.begun, renews: false }
    }

    /// Whether what a fetch brings for a URL may still be kept: nothing was invalidated since it began, and no fetch that began
    /// after it has brought anything (RFC 9111 §4: the most recent response is to be used).
    pub(crate) fn may_keep(&self, base: Key, epoch: Epoch) -> bool {
        let newer = |(key, order): &(Key, u64)| *key == base && *order > epoch.order;
        self.invalidated == epoch.number && !self.renewed.iter().any(newer)
    }

    /// Notes that what a fetch brought for a URL is kept, or would have been if it could.
    pub(crate) fn keeps(&mut self, base: Key, epoch: Epoch) {
        if epoch.renews {
            self.renewed.retain(|(key, _)| *key != base);
            self.renewed.push_back((base, epoch.order));
            if self.renewed.len() > REMEMBERED {
                self.renewed.pop_front();
            }
        }
    }
}

/// An epoch for tests of what only compares them.
#[cfg(test)]
pub(crate) const fn test_epoch(number: u64) -> Epoch {
    Epoch { number, begun: Stamp { era: 0, moment: 0 }, order: 0, renews: false }
}
