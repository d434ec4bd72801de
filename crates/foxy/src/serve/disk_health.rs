//! Whether a store's disk is full, fails or hangs: what the store counts, remembered for a while,
//! and what its disk owes. Such a store goes on serving what it can, and the proxy goes on without
//! the rest.

use foxy_base::Instant;
use foxy_device::FileTrouble;
use foxy_store::Observer;
use foxy_store::statistics::StoreStatistics;
use std::cell::Cell;
use std::fmt;
use std::time::Duration;

/// How long a trouble lasts after it was last seen. Until the disk is used again nobody can know
/// better.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Failed operations that make a failing disk. A bad sector costs a few, once.
const FAILURES: u64 = 10;

/// A disk that has owed an answer for so long hangs. The slowest disks that work answer within a
/// few seconds.
const SILENT_FOR: Duration = Duration::from_secs(10);

/// What is wrong with a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskTrouble {
    /// It is full.
    Full,
    /// Its file system takes no writes.
    ReadOnly,
    /// Most operations fail on it.
    Failing,
    /// Some operations fail on it.
    FailingSometimes,
    /// It does not answer.
    Silent,
}

impl fmt::Display for DiskTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str(
                "the disk is full, so new responses are not stored; free some space, raise a quota or the limit on a file's size, \
                 or give the store a smaller --size",
            ),
            Self::ReadOnly => FileTrouble::ReadOnly.fmt(f),
            Self::Failing => f.write_str(
                "reads and writes fail, so little is stored or found; look at the disk and the system's log, then restart \
                 foxy",
            ),
            Self::FailingSometimes => f.write_str(
                "some reads and writes fail, and each costs a miss or a response that is not stored; look at the disk and the \
                 system's log",
            ),
            Self::Silent => write!(
                f,
                "its disk has not answered for more than {} seconds, so little is stored or found; look at the disk and the \
                 system's log",
                SILENT_FOR.as_secs()
            ),
        }
    }
}

/// What is known of one store's disk.
pub struct DiskHealth {
    full: Lately,
    read_only: Lately,
    failing: Lately,
    share: Share,
}

impl DiskHealth {
    /// A sound disk, as far as its store knows once it is open: while it was opened it may have
    /// tried several sizes.
    pub fn of(Observer { statistics, .. }: &Observer) -> Self {
        Self {
            full: Lately::after(statistics.no_room.get(), 1),
            read_only: Lately::after(statistics.read_only.get(), 1),
            failing: Lately::after(statistics.device_errors.get(), FAILURES),
            share: Share::after(statistics.device_errors.get(), operations(statistics)),
        }
    }

    /// Whether its file system has refused a write since it takes none. The system's own word on
    /// that may come later, or never.
    pub fn is_read_only(&self, observer: &Observer, now: Instant) -> bool {
        self.read_only.judge(observer.statistics.read_only.get(), now)
    }

    /// What is wrong `now`. A full disk fails as well, and is called full; one that hangs may be
    /// anything besides.
    pub fn judge(&self, observer: &Observer, now: Instant) -> Option<DiskTrouble> {
        let statistics = &observer.statistics;
        let full = self.full.judge(statistics.no_room.get(), now);
        let failing = self.failing.judge(statistics.device_errors.get(), now);
        let read_only = self.is_read_only(observer, now).then_some(DiskTrouble::ReadOnly);
        let most_fail = self.share.is_most(statistics.device_errors.get(), operations(statistics));
        let fails = if most_fail { DiskTrouble::Failing } else { DiskTrouble::FailingSometimes };
        let counted = full.then_some(DiskTrouble::Full).or(read_only).or(failing.then_some(fails));
        if is_silent(observer, now) { Some(DiskTrouble::Silent) } else { counted }
    }
}

/// Operations that a disk was given.
fn operations(statistics: &StoreStatistics) -> u64 {
    let StoreStatistics {
        creates, opens, closes, reads, writes, syncs, unlinks, directories, ..
    } = statistics;
    let kinds = [creates, opens, closes, reads, writes, syncs, unlinks, directories];
    kinds.into_iter().map(|kind| kind.get()).sum()
}

/// Whether most operations fail.
struct Share {
    failed: Cell<u64>,
    of: Cell<u64>,
    is_most: Cell<bool>,
}

impl Share {
    /// As many operations as tell.
    const ENOUGH: u64 = 20;

    const fn after(failed: u64, of: u64) -> Self {
        Self { failed: Cell::new(failed), of: Cell::new(of), is_most: Cell::new(true) }
    }

    /// Looks at the operations since those that told last.
    fn is_most(&self, failed: u64, of: u64) -> bool {
        let lately = of.saturating_sub(self.of.get());
        if lately >= Self::ENOUGH {
            self.is_most.set(2 * failed.saturating_sub(self.failed.get()) >= lately);
            self.failed.set(failed);
            self.of.set(of);
        }
        self.is_most.get()
    }
}

/// Whether a disk has owed an answer for long.
pub fn is_silent(observer: &Observer, now: Instant) -> bool {
    observer.owed.since().is_some_and(|since| since + SILENT_FOR <= now)
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
        Self {
            least,
            counted: Cell::new(counted),
            before: Cell::new(counted),
            last: Cell::new(None),
        }
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
            &[
                (0, 2, false),
                (5, 3, true),
                (64, 3, true),
                (65, 3, false),
                (66, 9, true),
                (126, 9, false),
            ],
        );
    }

    #[test]
    fn one_write_that_a_read_only_file_system_refuses_names_it() {
        let observer = Observer::default();
        let health = DiskHealth::of(&observer);
        let now = Instant::ZERO + Duration::from_secs(5);
        assert_eq!(health.judge(&observer, now), None);
        observer.statistics.read_only.add(1);
        observer.statistics.device_errors.add(1);
        assert_eq!(health.judge(&observer, now), Some(DiskTrouble::ReadOnly));
        assert!(DiskTrouble::ReadOnly.to_string().contains("file system has become read-only"));
    }

    #[test]
    fn a_disk_of_which_one_operation_in_a_hundred_fails_is_not_said_to_fail() {
        let observer = Observer::default();
        let health = DiskHealth::of(&observer);
        let look = |second, failed: u64, of: u64| {
            observer.statistics.device_errors.add(failed);
            observer.statistics.reads.add(of);
            health.judge(&observer, Instant::ZERO + Duration::from_secs(second))
        };
        assert_eq!(look(1, 9, 900), None);
        assert_eq!(look(2, 1, 100), Some(DiskTrouble::FailingSometimes));
        assert_eq!(look(3, 90, 100), Some(DiskTrouble::Failing));
        assert_eq!(look(4, 5, 5), Some(DiskTrouble::Failing), "too few to tell");
        assert_eq!(look(5, 1, 100), Some(DiskTrouble::FailingSometimes));
    }

    #[test]
    fn a_disk_fails_when_operations_fail_again_and_again() {
        check(
            3,
            &[
                (0, 2, false),
                (5, 3, false),
                (20, 4, false),
                (70, 5, true),
                (129, 5, true),
                (130, 5, false),
            ],
        );
        check(3, &[(0, 4, false), (70, 5, false), (140, 7, false), (150, 8, true)]);
    }
}
