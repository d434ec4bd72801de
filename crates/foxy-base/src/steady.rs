//! A civil clock that never goes back, made of the readings of two others.

use crate::time::{Instant, WallTime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Goes at the pace of the monotonic clock, and makes each step forward that the civil clock makes:
/// the machine may have slept. Steps back it leaves out.
#[derive(Debug, Default)]
pub struct Steady {
    /// Milliseconds that it is ahead of the monotonic clock.
    ahead: AtomicU64,
    /// Milliseconds that the civil clock was ahead of the monotonic clock after its last step.
    civil_ahead: AtomicU64,
    stepping: Mutex<()>,
}

/// Milliseconds by which the civil clock may differ without a step.
const SLACK: u64 = 500;

impl Steady {
    /// A clock that has seen nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { ahead: AtomicU64::new(0), civil_ahead: AtomicU64::new(0), stepping: Mutex::new(()) }
    }

    /// The time, given what the two clocks show, unless the civil clock has made a step.
    pub fn without_step(&self, civil: WallTime, monotonic: Instant) -> Option<WallTime> {
        let since = millis(monotonic);
        let seen = civil.0.saturating_sub(since);
        let is_step = self.civil_ahead.load(Ordering::Acquire).abs_diff(seen) > SLACK;
        (!is_step).then(|| WallTime(self.ahead.load(Ordering::Acquire).saturating_add(since)))
    }

    /// The time, given what the two clocks show. They must have been read together: what passes
    /// between the readings would be a step.
    pub fn at(&self, civil: WallTime, monotonic: Instant) -> WallTime {
        self.without_step(civil, monotonic).unwrap_or_else(|| {
            let since = millis(monotonic);
            self.step(civil.0.saturating_sub(since));
            WallTime(self.ahead.load(Ordering::Acquire).saturating_add(since))
        })
    }

    /// Takes in a step of the civil clock.
    fn step(&self, seen: u64) {
        let _stepping = self.stepping.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.civil_ahead.load(Ordering::Acquire);
        if before.abs_diff(seen) > SLACK {
            self.ahead.fetch_add(seen.saturating_sub(before), Ordering::AcqRel);
            self.civil_ahead.store(seen, Ordering::Release);
        }
    }

    /// Goes on from that time, unless it is past it already.
    pub fn resume(&self, at: WallTime, civil: WallTime, monotonic: Instant) {
        self.at(civil, monotonic);
        self.ahead.fetch_max(at.0.saturating_sub(millis(monotonic)), Ordering::AcqRel);
    }
}

const fn millis(monotonic: Instant) -> u64 {
    monotonic.0 / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    const fn passed(hours: u64) -> Instant {
        Instant(hours * HOUR * 1_000_000)
    }

    /// What it shows when the civil clock shows `civil` and so many hours have passed.
    fn at(steady: &Steady, civil: u64, hours: u64) -> u64 {
        steady.at(WallTime(civil * HOUR), passed(hours)).0 / HOUR
    }

    #[test]
    fn it_follows_the_civil_clock_forward_and_not_back() {
        let steady = Steady::new();
        assert_eq!(at(&steady, 1000, 1), 1000);
        assert_eq!(at(&steady, 1001, 2), 1001);
        assert_eq!(at(&steady, 978, 3), 1002, "set back by a day");
        assert_eq!(at(&steady, 980, 5), 1004);
        assert_eq!(at(&steady, 988, 6), 1012, "the machine has slept for seven hours");
        assert_eq!(steady.without_step(WallTime(960 * HOUR), passed(7)), None);
        assert_eq!(at(&steady, 989, 7), 1013, "a step that was not taken in");
    }

    #[test]
    fn a_civil_clock_that_was_far_ahead_leaves_the_pace_as_it_is() {
        let steady = Steady::new();
        assert_eq!(at(&steady, 1000, 1), 1000);
        assert_eq!(at(&steady, 900_000, 2), 900_000);
        assert_eq!(at(&steady, 1002, 3), 900_001);
        assert_eq!(at(&steady, 1012, 13), 900_011);
    }

    #[test]
    fn readings_that_differ_a_little_add_up_to_nothing() {
        let steady = Steady::new();
        let start = steady.at(WallTime(HOUR), passed(0));
        for round in 1..1000 {
            let monotonic = Instant(round * 1_000_000);
            let shown = steady.at(WallTime(HOUR + round - round % 2 * (SLACK / 2)), monotonic);
            assert_eq!(shown.since(start).as_millis(), u128::from(round));
        }
    }

    #[test]
    fn it_goes_on_from_a_later_time_and_from_no_earlier_one() {
        let steady = Steady::new();
        steady.resume(WallTime(5000 * HOUR), WallTime(1000 * HOUR), passed(1));
        assert_eq!(at(&steady, 1000, 1), 5000);
        assert_eq!(at(&steady, 1001, 2), 5001);
        steady.resume(WallTime(4000 * HOUR), WallTime(1001 * HOUR), passed(2));
        assert_eq!(at(&steady, 1009, 3), 5009);
    }
}
