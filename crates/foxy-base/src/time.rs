//! Points in time as plain values, and dates of the Gregorian calendar. The module [`crate::clock`]
//! reads the clocks.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Nanoseconds since an arbitrary start. In the proxy, this is the monotonic clock. In simulations,
/// this is simulated time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// Time zero: the arbitrary start from which instants are counted.
    pub const ZERO: Self = Self(0);

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later.
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

/// Wall-clock time in milliseconds since the Unix epoch, for logs and HTTP dates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub u64);

impl WallTime {
    /// Returns the time `seconds` after the Unix epoch.
    #[must_use]
    pub const fn from_seconds(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1000))
    }

    /// Returns the whole seconds since the Unix epoch.
    #[must_use]
    pub const fn seconds(self) -> u64 {
        self.0 / 1000
    }

    /// Returns the time from `earlier` to `self`, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}

/// A time of day and date, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilTime {
    /// The year.
    pub year: u64,
    /// The month, from 1.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
    /// The hour, up to 23.
    pub hour: u64,
    /// The minute.
    pub minute: u64,
    /// The second.
    pub second: u64,
}

impl CivilTime {
    /// Converts a time to a date of the Gregorian calendar and a time of day (Hinnant,
    /// "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
    #[must_use]
    pub fn of(time: WallTime) -> Self {
        let seconds = time.seconds();
        let days = seconds / 86_400 + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        Self {
            year: era * 400 + year_of_era + u64::from(month <= 2),
            month: u8::try_from(month).expect("1 to 12"),
            day: u8::try_from(day).expect("1 to 31"),
            hour: seconds / 3_600 % 24,
            minute: seconds / 60 % 60,
            second: seconds % 60,
        }
    }
}

/// Returns the number of days from 1 January 1970 to a date of the Gregorian calendar. Returns
/// `None` if there is no such date (Hinnant, "chrono-Compatible Low-Level Date Algorithms",
/// `days_from_civil`).
#[must_use]
pub const fn days_since_epoch(year: i64, month: i64, day: i64) -> Option<i64> {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if day < 1 || day > length {
        return None;
    }
    // For this calculation, a year begins in March, so that the leap day is its last day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468)
}

impl fmt::Display for CivilTime {
    /// Writes the date as in ISO 8601, without the time of day: `2026-01-31`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_day_comes_back_and_other_dates_do_not_exist() {
        for day in 0..40_000 {
            let date = CivilTime::of(WallTime::from_seconds(day * 86_400));
            let year = i64::try_from(date.year).expect("small");
            let found = days_since_epoch(year, date.month.into(), date.day.into());
            assert_eq!(found, i64::try_from(day).ok(), "{date}");
        }
        assert_eq!(days_since_epoch(1969, 12, 31), Some(-1));
        for (year, month, day) in [(2023, 2, 29), (1900, 2, 29), (2023, 4, 31), (2023, 13, 1)] {
            assert_eq!(days_since_epoch(year, month, day), None, "{year}-{month}-{day}");
        }
        assert_eq!((days_since_epoch(2023, 0, 1), days_since_epoch(2023, 1, 0)), (None, None));
    }

    #[test]
    fn differences_never_go_below_zero() {
        assert_eq!(Instant(5).since(Instant(9)), Duration::ZERO);
        assert_eq!(Instant(5) - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(WallTime(5).since(WallTime(9)), Duration::ZERO);
    }
}
