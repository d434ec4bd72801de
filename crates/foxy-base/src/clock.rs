//! The one place that reads the machine's clocks. Everything that decides takes `now` instead.
#![expect(clippy::disallowed_methods, reason = "this file is what the ban points to")]

use crate::steady::Steady;
use crate::time::{Instant, WallTime};
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;
use std::time::Duration;

static STEADY: Steady = Steady::new();
static START: OnceLock<std::time::Instant> = OnceLock::new();

/// The monotonic clock, counted from the first call in this process.
#[must_use]
pub fn monotonic() -> Instant {
    let start = *START.get_or_init(std::time::Instant::now);
    Instant(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// The civil clock, which may be set back: for dates that others read. A machine set before 1970
/// reads as 1970.
#[must_use]
pub fn wall() -> WallTime {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    WallTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// The civil clock without its steps back: what ages are counted by. It may be ahead of the civil
/// clock.
#[must_use]
pub fn steady() -> WallTime {
    let (monotonic, civil) = (monotonic(), wall());
    STEADY.without_step(civil, monotonic).unwrap_or_else(step)
}

/// Reads both clocks until the thread was not held up between the readings, which would look like a
/// step.
fn step() -> WallTime {
    /// Longest time that two readings of one moment take.
    const TOGETHER: Duration = Duration::from_millis(50);
    loop {
        let (before, civil) = (monotonic(), wall());
        if monotonic().since(before) <= TOGETHER {
            return STEADY.at(civil, before);
        }
    }
}

/// Has the steady clock show at least that time from now on.
pub fn resume(steady: WallTime) {
    STEADY.resume(steady, wall(), monotonic());
}

/// What the civil clock showed at a time of the steady clock, if they were as far apart as they are
/// now.
#[must_use]
pub fn civil(steady: WallTime) -> WallTime {
    let (civil, now) = (wall(), self::steady());
    WallTime(steady.0.saturating_sub(now.0.saturating_sub(civil.0)))
}

/// How long the calling thread was running on a processor so far.
#[must_use]
pub fn thread_processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}
