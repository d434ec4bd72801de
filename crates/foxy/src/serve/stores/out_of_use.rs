//! Takes stores with worn-out disks out of use, and directs their keys to other stores. A store
//! remains out of use until foxy restarts.

use foxy_base::Instant;
use foxy_base::random::split_mix;
use foxy_store::Key;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Failures within this time count as a single failure.
const FAILURE_INTERVAL: Duration = Duration::from_secs(1);
/// After this time without a failure, foxy forgets earlier failures.
const REMEMBERED: Duration = Duration::from_secs(60);
/// A store is worn out after this many counted failures. A bad sector or a loose cable causes
/// fewer.
const MAX_FAILURES: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WornReason {
    /// Disk operations failed in [`MAX_FAILURES`] different seconds, with less than a minute
    /// between failures.
    Failing,
    /// The file system was read-only in [`MAX_FAILURES`] different seconds, with less than a minute
    /// between them.
    ReadOnly,
    /// The store's thread has ended, so the store will not answer again.
    Ended,
}

impl fmt::Display for WornReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failing => "reads and writes fail again and again",
            Self::ReadOnly => "the file system stays read-only",
            Self::Ended => "the thread of the store has ended",
        })
    }
}

/// The condition of a store at the time of one check. foxy checks each store regularly, to find
/// worn-out disks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// Number of failed disk operations since the store was opened, except failures because the
    /// disk is full.
    pub failures: u64,
    pub is_read_only: bool,
    /// Whether the store's thread has ended.
    pub has_ended: bool,
}

/// Decides whether a store is worn out. Counts the checks that found new failures or a read-only
/// file system, at most one check a second. The count starts again after a minute without such a
/// check.
#[derive(Clone, Copy, Debug)]
pub struct Wear {
    failures: u64,
    bad_looks: u32,
    last_bad: Option<Instant>,
    reason: Option<WornReason>,
}

impl Wear {
    /// Starts with a healthy store. `failures` is the number of failures so far. These failures do
    /// not count.
    pub const fn new(failures: u64) -> Self {
        Self { failures, bad_looks: 0, last_bad: None, reason: None }
    }

    /// Returns why the store is worn out, as of the last check. Returns `None` for a healthy store.
    pub const fn reason(&self) -> Option<WornReason> {
        self.reason
    }

    /// Counts new failures at the time `now`. Returns why the store is worn out, or `None` for a
    /// healthy store. A worn-out store never becomes healthy again.
    pub fn look(&mut self, sight: Sight, now: Instant) -> Option<WornReason> {
        let seen = match sight {
            Sight { has_ended: true, .. } => Some(WornReason::Ended),
            Sight { is_read_only: true, .. } => Some(WornReason::ReadOnly),
            Sight { failures, .. } if failures > self.failures => Some(WornReason::Failing),
            Sight { .. } => None,
        };
        if self.reason.is_some() || self.last_bad.is_some_and(|last| now < last + FAILURE_INTERVAL)
        {
            return self.reason;
        }
        self.failures = sight.failures;
        if let Some(seen) = seen {
            let is_remembered = self.last_bad.is_some_and(|last| now < last + REMEMBERED);
            self.bad_looks = if is_remembered { self.bad_looks + 1 } else { 1 };
            self.last_bad = Some(now);
            self.reason =
                (self.bad_looks >= MAX_FAILURES || seen == WornReason::Ended).then_some(seen);
        }
        self.reason
    }
}

/// A store, with the reason if it is worn out, and whether it is already out of use.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    pub worn: Option<WornReason>,
    pub is_out: bool,
}

/// Returns the numbers of the worn-out stores to take out of use together: at most half of the
/// stores in use. The next start needs more than half of the purge lists. Returns an empty list if
/// no healthy store would remain.
pub fn to_take_out(stores: &[Candidate]) -> Vec<usize> {
    let in_use = || stores.iter().enumerate().filter(|(_, store)| !store.is_out);
    if in_use().all(|(_, store)| store.worn.is_some()) {
        return Vec::new();
    }
    let worn = in_use().filter(|(_, store)| store.worn.is_some()).map(|(number, _)| number);
    worn.take(in_use().count() / 2).collect()
}

pub struct OutOfUse {
    is_out: Vec<AtomicBool>,
    secret: u64,
}

impl OutOfUse {
    /// Starts with all stores in use. `secret` must be a random number that no other process has.
    pub fn none(stores: usize, mut secret: u64) -> Self {
        let is_out = (0..stores).map(|_| AtomicBool::new(false)).collect();
        Self { is_out, secret: split_mix(&mut secret) }
    }

    pub fn take_out(&self, store: usize) {
        self.is_out[store].store(true, Ordering::SeqCst);
    }

    pub fn is_out(&self, store: usize) -> bool {
        self.is_out[store].load(Ordering::SeqCst)
    }

    /// Returns the numbers of the stores in use.
    pub fn in_use(&self) -> Vec<usize> {
        (0..self.is_out.len()).filter(|store| !self.is_out(*store)).collect()
    }

    /// Returns the store for `key`, and the key under which that store has the record. `home` is
    /// the store to which the key belongs. If `home` is out of use, another store has the record
    /// under a changed key. The changed key depends on the process's secret and the number of
    /// stores in use. So only this process can have written the record.
    pub fn place(&self, key: Key, home: usize) -> (usize, Key) {
        if !self.is_out(home) {
            return (home, key);
        }
        let in_use = self.in_use();
        let mut state = self.secret.wrapping_add(in_use.len() as u64);
        let [low, high] = [split_mix(&mut state), split_mix(&mut state)];
        let mask = u128::from(low) | u128::from(high) << 64;
        let name = u128::from_le_bytes(key.0) ^ mask;
        let turn = usize::try_from(name % in_use.len().max(1) as u128)
            .expect("less than the number of stores");
        (in_use.get(turn).copied().unwrap_or(home), Key(name.to_le_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;
    use std::collections::HashSet;

    const FAILING: Option<WornReason> = Some(WornReason::Failing);

    /// Runs a check for each pair of time in seconds and total number of failures. Returns the
    /// result of the last check.
    fn looked(looks: impl IntoIterator<Item = (u64, u64)>) -> Option<WornReason> {
        let mut wear = Wear::new(3);
        let look = |(at, failures)| {
            let sight = Sight { failures, ..Sight::default() };
            wear.look(sight, Instant::ZERO + Duration::from_secs(at))
        };
        looks.into_iter().map(look).last().flatten()
    }

    #[test]
    fn a_store_is_worn_out_when_its_disk_failed_in_ten_different_seconds() {
        assert_eq!(
            looked((0..60).map(|at| (at, 3))),
            None,
            "what failed while it was opened does not count"
        );
        assert_eq!(looked((1..=9).map(|at| (at, 3 + at))), None);
        assert_eq!(looked((1..=10).map(|at| (at, 3 + at))), FAILING);
        assert_eq!(
            looked((1..=10).map(|at| (at * 59, 3 + at))),
            FAILING,
            "less than a minute between"
        );
        assert_eq!(looked((1..=30).map(|at| (at * 60, 3 + at))), None, "a minute between");
    }

    #[test]
    fn many_failures_in_one_second_are_one() {
        assert_eq!(looked((1..=100).map(|failures| (5, 3 + failures))), None);
        assert_eq!(looked((1..=60).map(|at| (at, 1000))), None, "all failed before the first look");
    }

    #[test]
    fn a_store_that_is_worn_out_stays_so() {
        assert_eq!(looked((1..=10).chain([999]).map(|at| (at, 3 + at.min(10)))), FAILING);
    }

    #[test]
    fn a_read_only_file_system_wears_out_late_and_an_ended_store_at_once() {
        let mut wear = Wear::new(0);
        let mut look = |at, sight| wear.look(sight, Instant::ZERO + Duration::from_secs(at));
        let read_only = Sight { is_read_only: true, ..Sight::default() };
        for at in 0..9 {
            assert_eq!(look(at, read_only), None);
        }
        assert_eq!(look(9, read_only), Some(WornReason::ReadOnly));
        let ended = Sight { has_ended: true, ..Sight::default() };
        assert_eq!(Wear::new(0).look(ended, Instant::ZERO), Some(WornReason::Ended));
    }

    #[test]
    fn stores_are_taken_out_once_and_a_sound_one_stays() {
        let sound = Candidate { worn: None, is_out: false };
        let worn = Candidate { worn: FAILING, is_out: false };
        let out = Candidate { worn: FAILING, is_out: true };
        assert_eq!(to_take_out(&[sound, worn, sound, worn]), [1, 3]);
        assert_eq!(to_take_out(&[worn, sound, worn]), [0], "no more at a time than remain");
        assert_eq!(to_take_out(&[out, sound, worn]), [2]);
        for all in [&[worn][..], &[worn, worn], &[out, worn], &[out, sound], &[]] {
            assert!(to_take_out(all).is_empty(), "{all:?}");
        }
    }

    fn keys() -> Vec<Key> {
        let mut random = Random::new(7);
        let key = || {
            Key((u128::from(random.next_u64()) | u128::from(random.next_u64()) << 64).to_le_bytes())
        };
        std::iter::repeat_with(key).take(300).collect()
    }

    #[test]
    fn only_keys_of_a_store_that_is_out_move() {
        let out = OutOfUse::none(4, 5);
        out.take_out(2);
        let (mut names, mut taken) = (HashSet::new(), [0; 4]);
        for key in keys() {
            assert_eq!(out.place(key, 1), (1, key));
            let (store, name) = out.place(key, 2);
            assert_eq!(out.place(key, 2), (store, name));
            assert!(name != key && names.insert(name.0));
            taken[store] += 1;
        }
        assert_eq!(taken[2], 0);
        assert!([0, 1, 3].iter().all(|&store: &usize| taken[store] > 60), "{taken:?}");
    }

    #[test]
    fn a_moved_key_differs_for_each_process_and_number_of_stores() {
        for key in keys() {
            let (one, other) = (OutOfUse::none(3, 5), OutOfUse::none(3, 6));
            one.take_out(0);
            other.take_out(0);
            let before = one.place(key, 0);
            assert_ne!(before.1, other.place(key, 0).1);
            one.take_out(1);
            let after = one.place(key, 0);
            assert!(after.0 == 2 && after.1 != before.1);
        }
    }
}
