//! Points in time as plain values. Nothing here reads a clock; [`crate::clock`] does.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Nanoseconds since an arbitrary start; monotonic. Real in the proxy, virtual in simulations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// The start of the scale.
    pub const ZERO: Self = Self(0);

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, rhs: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, rhs: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Civil time: milliseconds since the Unix epoch, as logs and HTTP dates need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub u64);

impl WallTime {
    /// The time `seconds` after the Unix epoch.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Whole seconds since the Unix epoch.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// Time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_never_go_below_zero() {
        assert_eq!(Instant(5).since(Instant(9)), Duration::ZERO);
        assert_eq!(Instant(5) - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(WallTime(5).since(WallTime(9)), Duration::ZERO);
    }
}
