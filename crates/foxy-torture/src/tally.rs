//! Counts of what happened in schedules, so that a run which tested nothing can be told from one
//! which held.

use crate::model::Verdict;
use std::ops::AddAssign;

/// What happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Gets that were hits, byte for byte right.
    pub found: u64,
    /// Those of them that a look past the scheme gave.
    pub looked_up: u64,
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

impl Tally {
    /// One more answer.
    pub const fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Found => self.found += 1,
            Verdict::Absent => self.absent += 1,
            Verdict::Done => self.done += 1,
            Verdict::Refused => self.refused += 1,
        }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.found += other.found;
        self.looked_up += other.looked_up;
        self.absent += other.absent;
        self.done += other.done;
        self.refused += other.refused;
        self.crashes += other.crashes;
        self.completions += other.completions;
    }
}
