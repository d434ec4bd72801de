//! Whether a store's disk is full or fails: what the store counts, remembered for a while. Such a store goes on serving
//! what it can, and the proxy goes on without the rest.

use foxy_base::Instant;
use foxy_store::StoreStatistics;
use std::cell::Cell;
use std::fmt;
use std::time::Duration;

/// How long a trouble lasts after it was last seen. Until the disk is used again nobody can know better.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Failed operations that make a failing disk. A bad sector costs a few, once.
const FAILURES: u64 = 10;

/// What is wrong with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskTrouble {
    /// It is full.
    Full,
    /// Operations fail on it.
    Failing,
}

impl fmt::Display for DiskTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => {
                "the disk is full, so new responses are not stored; free some space or give the store a smaller --size"
            }
            Self::Failing => {
                "reads and writes fail, so little is stored or found; look at the disk and the system's log, then restart \
                 foxy"
            }
        })
    }
}

/// What is known of one store's disk.
pub struct DiskHealth {
    full: Lately,
    failing: Lately,
}

impl DiskHealth {
    /// A sound disk, as far as its store knows once it is open: while it was opened it may have tried several sizes.
    pub fn of(statistics: &StoreStatistics) -> Self {
        Self {
            full: Lately::after(statistics.no_room.get(), 1),
            failing: Lately::after(statistics.device_errors.get(), FAILURES),
        }
    }

    /// What is wrong `now`. A full disk fails as well, and is called full.
    pub fn judge(&self, statistics: &StoreStatistics, now: Instant) -> Option<DiskTrouble> {
        let full = self.full.judge(statistics.no_room.get(), now);
        let failing = self.failing.judge(statistics.device_errors.get(), now);
        full.then_some(DiskTrouble::Full).or(failing.then_some(DiskTrouble::Failing))
    }
}

/// Whether something was counted often enough, with no minute between.
struct Lately {
    least: u64,
    counted: Cell<u64>,
    before: Cell<u64>,
    last: Cell<Option<Instant>>,
}

impl Lately {
    const fn after(counted: u64, least: u64) -> Self {
        Self { least, counted: Cell::new(counted), before: Cell::new(counted), last: Cell::new(None) }
    }

    fn judge(&self, counted: u64, now: Instant) -> bool {
        let previous = self.counted.replace(counted);
        let recent = |last: Option<Instant>| last.is_some_and(|last| now < last + REMEMBERED);
        if !recent(self.last.get()) {
            self.before.set(previous);
        }
        if previous != counted {
            self.last.set(Some(now));
        }
        recent(self.last.get()) && counted - self.before.get() >= self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(least: u64, looks: &[(u64, u64, bool)]) {
        let lately = Lately::after(2, least);
        for &(at, counted, expected) in looks {
            let now = Instant::ZERO + Duration::from_secs(at);
            assert_eq!(lately.judge(counted, now), expected, "after {at} s");
        }
    }

    #[test]
    fn a_disk_is_full_for_a_minute_after_it_last_had_no_room() {
        check(
            1,
            &[(0, 2, false), (5, 3, true), (64, 3, true), (65, 3, false), (66, 9, true), (126, 9, false)],
        );
    }

    #[test]
    fn a_disk_fails_when_operations_fail_again_and_again() {
        check(
            3,
            &[(0, 2, false), (5, 3, false), (20, 4, false), (70, 5, true), (129, 5, true), (130, 5, false)],
        );
        check(3, &[(0, 4, false), (70, 5, false), (140, 7, false), (150, 8, true)]);
    }
}
