//! The only module that reads the machine's clocks. Code that makes decisions receives `now` as an
//! argument.
#![expect(clippy::disallowed_methods, reason = "this file is what the ban points to")]

use crate::time::{Instant, WallTime};
use rustix::time::{ClockId, clock_gettime};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

static STEADY: Steady = Steady::new();
static START: OnceLock<std::time::Instant> = OnceLock::new();

/// Returns the time of the monotonic clock. It counts from the first call in this process.
#[must_use]
pub fn monotonic() -> Instant {
    let start = *START.get_or_init(std::time::Instant::now);
    Instant(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Returns the time since the machine's boot. Unlike the monotonic clock, this clock also counts
/// while the machine sleeps.
#[must_use]
pub fn since_boot() -> Instant {
    let time = clock_gettime(ClockId::Boottime);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    Instant(part(time.tv_sec).saturating_mul(1_000_000_000).saturating_add(part(time.tv_nsec)))
}

/// Returns the time of the wall clock: the date and time of the machine. An operator or NTP may set
/// it back. A time before 1970 counts as 1970.
#[must_use]
pub fn wall() -> WallTime {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    WallTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Returns the time of the steady clock: the wall clock (date and time) without its backward steps.
/// It measures the age of responses. It may be ahead of the wall clock.
#[must_use]
pub fn steady() -> WallTime {
    let (monotonic, civil) = (monotonic(), wall());
    STEADY.without_step(civil, monotonic).unwrap_or_else(step)
}

/// Returns the time of the steady clock after a step of the wall clock. Reads the monotonic and the
/// wall clock. Repeats both readings if the thread was preempted between the readings, because such
/// a pause would look like another step.
fn step() -> WallTime {
    /// If the monotonic clock advances by more than this while both clocks are read, the thread was
    /// interrupted.
    const TOGETHER: Duration = Duration::from_millis(50);
    loop {
        let (before, civil) = (monotonic(), wall());
        if monotonic().since(before) <= TOGETHER {
            return STEADY.at(civil, before);
        }
    }
}

/// Moves the steady clock (the wall clock without backward steps) forward to at least `steady`.
pub fn resume(steady: WallTime) {
    STEADY.resume(steady, wall(), monotonic());
}

/// Converts a time of the steady clock to wall-clock time. Subtracts the time by which the steady
/// clock is ahead of the wall clock now.
#[must_use]
pub fn civil(steady: WallTime) -> WallTime {
    let (civil, now) = (wall(), self::steady());
    WallTime(steady.0.saturating_sub(now.0.saturating_sub(civil.0)))
}

/// Returns the processor time that the calling thread has used so far.
#[must_use]
pub fn thread_processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}

/// The clock behind [`steady`]. It advances at the pace of the monotonic clock. If the wall clock
/// steps forward, the steady clock follows, because the machine may have slept. The steady clock
/// ignores backward steps of the wall clock.
#[derive(Debug)]
struct Steady {
    /// Milliseconds by which the steady clock is ahead of the monotonic clock.
    ahead: AtomicU64,
    /// Milliseconds by which the wall clock was ahead of the monotonic clock after the wall clock's
    /// last step.
    civil_ahead: AtomicU64,
    stepping: Mutex<()>,
}

/// Tolerance in milliseconds for a change of the difference between wall and monotonic clock. A
/// larger change counts as a step of the wall clock.
const STEP_TOLERANCE_MS: u64 = 500;

impl Steady {
    const fn new() -> Self {
        Self { ahead: AtomicU64::new(0), civil_ahead: AtomicU64::new(0), stepping: Mutex::new(()) }
    }

    /// Returns the steady time for readings of the wall and the monotonic clock. Returns `None` if
    /// the wall clock has stepped.
    fn without_step(&self, civil: WallTime, monotonic: Instant) -> Option<WallTime> {
        let since = millis(monotonic);
        let seen = civil.0.saturating_sub(since);
        let is_step = self.civil_ahead.load(Ordering::Acquire).abs_diff(seen) > STEP_TOLERANCE_MS;
        (!is_step).then(|| WallTime(self.ahead.load(Ordering::Acquire).saturating_add(since)))
    }

    /// Returns the steady time for readings of the wall and the monotonic clock. The caller must
    /// read both clocks together: a delay between the readings counts as a step.
    fn at(&self, civil: WallTime, monotonic: Instant) -> WallTime {
        self.without_step(civil, monotonic).unwrap_or_else(|| {
            let since = millis(monotonic);
            self.step(civil.0.saturating_sub(since));
            WallTime(self.ahead.load(Ordering::Acquire).saturating_add(since))
        })
    }

    fn step(&self, seen: u64) {
        let _stepping = self.stepping.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.civil_ahead.load(Ordering::Acquire);
        if before.abs_diff(seen) > STEP_TOLERANCE_MS {
            self.ahead.fetch_add(seen.saturating_sub(before), Ordering::AcqRel);
            self.civil_ahead.store(seen, Ordering::Release);
        }
    }

    /// Moves the steady clock forward to `at`, never back. `civil` and `monotonic` are the current
    /// readings of the wall clock and the monotonic clock.
    fn resume(&self, at: WallTime, civil: WallTime, monotonic: Instant) {
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

    /// Returns the hour of the steady clock. The wall clock shows hour `civil`, and `hours` hours
    /// have passed on the monotonic clock.
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
            let shown =
                steady.at(WallTime(HOUR + round - round % 2 * (STEP_TOLERANCE_MS / 2)), monotonic);
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
