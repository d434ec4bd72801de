//! Dates as people count them.

use crate::WallTime;
use std::fmt;

/// A time of day and date, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Civil {
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

impl Civil {
    /// The proleptic Gregorian date (Hinnant, "chrono-Compatible Low-Level Date Algorithms",
    /// `civil_from_days`).
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

impl fmt::Display for Civil {
    /// The date, as ISO 8601 writes it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}
