//! Counts of what happened in schedules, so that a run which tested nothing can be told from one which held.

use std::ops::AddAssign;

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Gets that were hits, byte for byte right.
    pub found: u64,
    /// Gets that were misses.
    pub absent: u64,
    /// Puts, removals and closes that happened.
    pub done: u64,
    /// Puts, removals and closes that were refused.
    pub refused: u64,
    /// Ends without a goodbye.
    pub crashes: u64,
    /// Operations whose completion reached the scheme.
    pub completions: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.found += other.found;
        self.absent += other.absent;
        self.done += other.done;
        self.refused += other.refused;
        self.crashes += other.crashes;
        self.completions += other.completions;
    }
}
