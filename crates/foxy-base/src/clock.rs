//! The one place that reads the machine's clocks. Everything that decides takes `now` instead.
#![expect(clippy::disallowed_methods, reason = "this file is what the ban points to")]

use crate::time::{Instant, WallTime};
use std::sync::OnceLock;

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
