//! Counts the events of schedules. The counts show whether a run without failures tested anything.
//! A `Get` step sends the storage scheme a request. A `Look` step looks a record up without a
//! request, as another thread may do.

use crate::model::Verdict;
use std::ops::AddAssign;

/// Counts of the events in one or several schedules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// `Get` and `Look` steps that found a record with correct bytes.
    pub found: u64,
    /// `Look` steps that found a record. `found` also counts these steps.
    pub looked_up: u64,
    /// `Get` and `Look` steps that found nothing.
    pub absent: u64,
    /// `put`, `remove` and `close` requests that succeeded.
    pub done: u64,
    /// `put`, `remove` and `close` requests that the store refused.
    pub refused: u64,
    /// Number of crashes of the process or the machine.
    pub crashes: u64,
    /// Disk operations whose completion reached the storage scheme.
    pub completions: u64,
}

impl Tally {
    /// Counts one answer that keeps the store's contract.
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
