//! The one place that reads the machine's clocks. Everything that decides takes `now` instead.
#![expect(clippy::disallowed_methods, reason = "this file is what the ban points to")]

use crate::time::{Instant, WallTime};
use rustix::time::{ClockId, clock_gettime};
use std::sync::OnceLock;
use std::time::Duration;

static START: OnceLock<std::time::Instant> = OnceLock::new();

/// The monotonic clock, counted from the first call in this process.
#[must_use]
pub fn monotonic() -> Instant {
    let start = *START.get_or_init(std::time::Instant::now);
    Instant(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// The civil clock. A machine set before 1970 reads as 1970.
#[must_use]
pub fn wall() -> WallTime {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    WallTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// How long the calling thread was running on a processor so far.
#[must_use]
pub fn thread_processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}
