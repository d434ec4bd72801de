//! When a store is taken out of use: its disk fails again and again, so that what belongs there is
//! never stored. It decides and does nothing: the routing is in `out_of_use`, what is written of it
//! in `purge_journal`, and both are done by `facts`.

use foxy_base::Instant;
use std::fmt;
use std::time::Duration;

/// Between looks that count: a disk that fails often in one second fails once.
const APART: Duration = Duration::from_secs(1);
/// With so long between two bad looks the first is forgotten.
const REMEMBERED: Duration = Duration::from_secs(60);
/// Bad looks that are enough. A bad sector, or a cable that is plugged in again, makes a few.
const ENOUGH: u32 = 10;

/// Why a store is out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WornReason {
    /// Operations on its disk failed in ten different seconds, with no minute between.
    Failing,
    /// Its file system has been read-only as long.
    ReadOnly,
    /// It answers nothing any more.
    Ended,
}

impl fmt::Display for WornReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Failing => "reads and writes fail again and again",
            Self::ReadOnly => "its file system stays read-only",
            Self::Ended => "it answers nothing any more",
        })
    }
}

/// What is seen of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    /// Operations that have failed so far, other than for lack of room.
    pub failures: u64,
    /// Whether its file system is read-only.
    pub read_only: bool,
    /// Whether it answers nothing any more.
    pub ended: bool,
}

/// What is known of one store.
#[derive(Clone, Copy, Debug)]
pub struct Wear {
    failures: u64,
    bad: u32,
    last: Option<Instant>,
    reason: Option<WornReason>,
}

impl Wear {
    /// A sound store, of which that many operations have failed while it was opened.
    pub const fn after(failures: u64) -> Self {
        Self { failures, bad: 0, last: None, reason: None }
    }

    /// Why it is worn out, if it was when it was last looked at.
    pub const fn reason(&self) -> Option<WornReason> {
        self.reason
    }

    /// Looks at it; says why it is worn out, if it is. It is for good.
    pub fn look(&mut self, sight: Sight, now: Instant) -> Option<WornReason> {
        let seen = match sight {
            Sight { ended: true, .. } => Some(WornReason::Ended),
            Sight { read_only: true, .. } => Some(WornReason::ReadOnly),
            Sight { failures, .. } if failures > self.failures => Some(WornReason::Failing),
            Sight { .. } => None,
        };
        if self.reason.is_some() || self.last.is_some_and(|last| now < last + APART) {
            return self.reason;
        }
        self.failures = sight.failures;
        if let Some(seen) = seen {
            let remembered = self.last.is_some_and(|last| now < last + REMEMBERED);
            self.bad = if remembered { self.bad + 1 } else { 1 };
            self.last = Some(now);
            self.reason = (self.bad >= ENOUGH || seen == WornReason::Ended).then_some(seen);
        }
        self.reason
    }
}

/// Which of the stores are taken out of use together: those that are worn out and not out yet, as
/// long as one remains that is not, and half of those in use at most: the next start believes what
/// is stored where more than half of the lists are there.
pub fn to_take_out(stores: &[(Option<WornReason>, bool)]) -> Vec<usize> {
    let in_use = stores.iter().filter(|(_, out)| !out).count();
    let worn = stores.iter().enumerate().filter(|(_, (_, out))| !out);
    let worn =
        worn.filter_map(|(store, (reason, _))| reason.map(|_| store)).take(in_use / 2).collect();
    let remain = stores.iter().any(|(reason, out)| reason.is_none() && !out);
    if remain { worn } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILING: Option<WornReason> = Some(WornReason::Failing);

    /// Looks at these seconds, with so many failures by then; gives what is thought of it at the
    /// end.
    fn looked(looks: impl IntoIterator<Item = (u64, u64)>) -> Option<WornReason> {
        let mut wear = Wear::after(3);
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
    fn a_file_system_may_be_read_only_for_a_while_and_an_end_is_one_at_once() {
        let mut wear = Wear::after(0);
        let mut look = |at, sight| wear.look(sight, Instant::ZERO + Duration::from_secs(at));
        let read_only = Sight { read_only: true, ..Sight::default() };
        for at in 0..9 {
            assert_eq!(look(at, read_only), None);
        }
        assert_eq!(look(9, read_only), Some(WornReason::ReadOnly));
        let ended = Sight { ended: true, ..Sight::default() };
        assert_eq!(Wear::after(0).look(ended, Instant::ZERO), Some(WornReason::Ended));
    }

    #[test]
    fn stores_are_taken_out_once_and_one_stays_that_is_not_worn() {
        let (sound, out) = ((None, false), (FAILING, true));
        let worn = (FAILING, false);
        assert_eq!(to_take_out(&[sound, worn, sound, worn]), [1, 3]);
        assert_eq!(to_take_out(&[worn, sound, worn]), [0], "no more at a time than remain");
        assert_eq!(to_take_out(&[out, sound, worn]), [2]);
        for all in [&[worn][..], &[worn, worn], &[out, worn], &[out, sound], &[]] {
            assert!(to_take_out(all).is_empty(), "{all:?}");
        }
    }
}
