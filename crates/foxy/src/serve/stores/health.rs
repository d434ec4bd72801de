//! Health of the stores' disks and files. A disk can be full, read-only, failing or silent (it does
//! not answer), and a file can be removed. A store with such a trouble continues to serve as far as
//! possible.

use foxy_base::Instant;
use foxy_device::{FileFault, LockedFile};
use foxy_store::Observer;
use foxy_store::statistics::StoreStatistics;
use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// foxy reports a trouble for this time after it last observed the trouble. Only another disk
/// operation could show that the trouble is over.
const REMEMBERED: Duration = Duration::from_secs(60);
/// A disk counts as failing after this many failed operations. A single bad sector causes fewer
/// failures.
const MIN_FAILURES: u64 = 10;
/// A disk counts as silent if an operation has had no answer for this time. Slow disks answer
/// within a few seconds.
const SILENT_AFTER: Duration = Duration::from_secs(10);
/// Smallest number of operations from which foxy computes the share of failed operations.
const MIN_OPERATIONS: u64 = 20;
const FILE_LOOK_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskTrouble {
    Full,
    ReadOnly,
    /// At least half of the recent disk operations failed.
    Failing,
    /// Fewer than half of the recent disk operations failed.
    FailingSometimes,
    Silent,
    /// Records have wrong checksums.
    Damaged,
}

impl fmt::Display for DiskTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str(
                "the disk is full, so new responses are not stored; free some space, raise a \
                 quota or the limit on a file's size, \
                 or give the store a smaller --size",
            ),
            Self::ReadOnly => FileFault::ReadOnly.fmt(f),
            Self::Failing => f.write_str(
                "reads and writes fail, so few responses are stored or found; check the disk and \
                 the system's log, then restart \
                 foxy",
            ),
            Self::FailingSometimes => f.write_str(
                "some reads and writes fail; each failure costs a miss or a response that is not \
                 stored; check the disk and the system's log",
            ),
            Self::Damaged => f.write_str(
                "records on its disk are damaged, so requests for them are misses; after a power \
                 failure, a few such records are normal; otherwise check the disk and the \
                 system's log",
            ),
            Self::Silent => write!(
                f,
                "its disk has not answered for more than {} seconds, so few responses are stored \
                 or found; check the disk and the system's log",
                SILENT_AFTER.as_secs()
            ),
        }
    }
}

/// Health of a store's disk, computed from the store's counters.
pub struct DiskHealth {
    full: RecentCount,
    read_only: RecentCount,
    failing: RecentCount,
    damaged: RecentCount,
    share: FailureShare,
}

impl DiskHealth {
    /// Starts with a healthy disk. Failures so far do not count, because opening a store may try
    /// sizes that do not fit.
    pub fn of(Observer { statistics, .. }: &Observer) -> Self {
        Self {
            full: RecentCount::new(statistics.no_room.get(), 1),
            read_only: RecentCount::new(statistics.read_only.get(), 1),
            failing: RecentCount::new(statistics.device_errors.get(), MIN_FAILURES),
            damaged: RecentCount::new(statistics.misses_checksum.get(), 1),
            share: FailureShare {
                failed: Cell::new(statistics.device_errors.get()),
                operations: Cell::new(operations(statistics)),
                is_most: Cell::new(true),
            },
        }
    }

    /// Returns whether the disk recently refused a write as read-only. foxy does not ask the
    /// system, because the system reports a read-only file system late or never.
    pub fn is_read_only(&self, observer: &Observer, now: Instant) -> bool {
        self.read_only.judge(observer.statistics.read_only.get(), now)
    }

    /// Returns the trouble of the disk at the time `now`. If a disk has several troubles, silent
    /// comes first, then full, read-only, failing and damaged.
    pub fn judge(&self, observer: &Observer, now: Instant) -> Option<DiskTrouble> {
        let statistics = &observer.statistics;
        let errors = statistics.device_errors.get();
        let is_full = self.full.judge(statistics.no_room.get(), now);
        let is_failing = self.failing.judge(errors, now);
        let is_read_only = self.is_read_only(observer, now);
        let is_damaged = self.damaged.judge(statistics.misses_checksum.get(), now);
        let most_fail = self.share.is_most(errors, operations(statistics));
        if is_silent(observer, now) {
            Some(DiskTrouble::Silent)
        } else if is_full {
            Some(DiskTrouble::Full)
        } else if is_read_only {
            Some(DiskTrouble::ReadOnly)
        } else if is_failing && most_fail {
            Some(DiskTrouble::Failing)
        } else if is_failing {
            Some(DiskTrouble::FailingSometimes)
        } else {
            is_damaged.then_some(DiskTrouble::Damaged)
        }
    }
}

/// Returns the number of operations that the store has sent to its disk so far.
fn operations(statistics: &StoreStatistics) -> u64 {
    let StoreStatistics {
        creates, opens, closes, reads, writes, syncs, unlinks, directories, ..
    } = statistics;
    let kinds = [creates, opens, closes, reads, writes, syncs, unlinks, directories];
    kinds.into_iter().map(|kind| kind.get()).sum()
}

/// Returns whether an operation has had no answer from the disk for [`SILENT_AFTER`].
pub fn is_silent(observer: &Observer, now: Instant) -> bool {
    observer.owed.since().is_some_and(|since| since + SILENT_AFTER <= now)
}

/// Computes whether at least half of the recent operations failed. `failed` and `operations` are
/// the counters' values at the last computation.
struct FailureShare {
    failed: Cell<u64>,
    operations: Cell<u64>,
    is_most: Cell<bool>,
}

impl FailureShare {
    fn is_most(&self, failed: u64, operations: u64) -> bool {
        let recent = operations.saturating_sub(self.operations.get());
        if recent >= MIN_OPERATIONS {
            self.is_most.set(2 * failed.saturating_sub(self.failed.get()) >= recent);
            self.failed.set(failed);
            self.operations.set(operations);
        }
        self.is_most.get()
    }
}

/// Computes whether recent increases of a counter add up to at least `least`. Increases are recent
/// if each came less than a minute ([`REMEMBERED`]) after the one before, and the last came less
/// than a minute ago.
struct RecentCount {
    least: u64,
    count: Cell<u64>,
    /// Value of the counter before the first of the recent increases.
    before: Cell<u64>,
    last_growth: Cell<Option<Instant>>,
}

impl RecentCount {
    const fn new(count: u64, least: u64) -> Self {
        Self {
            least,
            count: Cell::new(count),
            before: Cell::new(count),
            last_growth: Cell::new(None),
        }
    }

    fn judge(&self, count: u64, now: Instant) -> bool {
        let previous = self.count.replace(count);
        let is_recent = |last: Option<Instant>| last.is_some_and(|last| now < last + REMEMBERED);
        if !is_recent(self.last_growth.get()) {
            self.before.set(previous);
        }
        if previous != count {
            self.last_growth.set(Some(now));
        }
        is_recent(self.last_growth.get()) && count - self.before.get() >= self.least
    }
}

/// Checks every second whether the files of the stores exist, are complete, and are writable. Uses
/// its own thread, because a silent disk blocks the check. Drop ends the thread.
pub struct FileWatch(Arc<Mutex<Vec<Option<FileFault>>>>);

impl FileWatch {
    /// Starts to check the stores' files. `None` stands for a store without a file.
    pub fn start(files: Vec<Option<Weak<LockedFile>>>) -> std::io::Result<Self> {
        let seen = Arc::new(Mutex::new(vec![None; files.len()]));
        let watched = Arc::downgrade(&seen);
        std::thread::Builder::new().name("files".into()).spawn(move || {
            while let Some(seen) = watched.upgrade() {
                let look = |file: &Option<Weak<LockedFile>>| file.as_ref()?.upgrade()?.check();
                let now = files.iter().map(look).collect();
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
                drop(seen);
                std::thread::sleep(FILE_LOOK_INTERVAL);
            }
        })?;
        Ok(Self(seen))
    }

    pub fn trouble(&self, store: usize) -> Option<FileFault> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(store).copied().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(least: u64, looks: &[(u64, u64, bool)]) {
        let recent = RecentCount::new(2, least);
        for &(at, counted, expected) in looks {
            let now = Instant::ZERO + Duration::from_secs(at);
            assert_eq!(recent.judge(counted, now), expected, "after {at} s");
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
    fn one_write_refused_by_a_read_only_file_system_names_it() {
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
    fn a_record_with_a_wrong_checksum_is_named_for_a_minute() {
        let observer = Observer::default();
        let health = DiskHealth::of(&observer);
        let judge = |second| health.judge(&observer, Instant::ZERO + Duration::from_secs(second));
        assert_eq!(judge(1), None);
        observer.statistics.misses_checksum.add_shared(1);
        assert_eq!(judge(2), Some(DiskTrouble::Damaged));
        assert_eq!((judge(61), judge(62)), (Some(DiskTrouble::Damaged), None));
    }

    #[test]
    fn a_disk_fails_only_when_most_operations_fail() {
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
