//! Times in logs and queries, as milliseconds since the Unix epoch.

use foxy_base::{CivilTime, WallTime};

const DAY: u64 = 86_400_000;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Returns the beginning of a day. Returns `None` if there is no such day from 1970 on (Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`).
pub(crate) fn civil(year: u64, month: u64, day: u64) -> Option<u64> {
    let is_date = (1970..=9999).contains(&year) && (1..=12).contains(&month) && day >= 1;
    let shifted = if is_date { year - u64::from(month <= 2) } else { return None };
    let (era, year_of_era) = (shifted / 400, shifted % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let time = (era * 146_097 + day_of_era).checked_sub(719_468)? * DAY;
    let found = CivilTime::of(WallTime(time));
    (u64::from(found.day) == day && u64::from(found.month) == month).then_some(time)
}

/// Reads a time of day: `23:00`, `23:00:05` or `23:00:05.250`.
pub(crate) fn milliseconds(clock: &str) -> Option<u64> {
    let mut parts = clock.splitn(3, ':');
    let (hour, minute) = (number(parts.next()?)?, number(parts.next()?)?);
    let (second, fraction) = match parts.next() {
        None => (0, 0),
        Some(text) => match text.split_once('.') {
            None => (number(text)?, 0),
            Some((second, fraction)) => {
                let digits = fraction.get(..3).unwrap_or(fraction);
                (number(second)?, number(digits)? * 10_u64.pow(3 - digits.len() as u32))
            }
        },
    };
    let is_time = hour < 24 && minute < 60 && second <= 60;
    is_time.then_some(((hour * 60 + minute) * 60 + second) * 1000 + fraction)
}

fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// Reads a time such as `2026-11-26T23:00:05.250Z`.
pub(crate) fn iso(text: &str) -> Option<u64> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let part = |from: usize, to: usize| number(date.get(from..to)?);
    Some(civil(part(0, 4)?, part(5, 7)?, part(8, 10)?)? + milliseconds(clock)?)
}

/// Reads a time of the Common Log Format, such as `10/Oct/2000:13:55:36 -0700`.
pub(crate) fn common_log(text: &str) -> Option<u64> {
    let (time, zone) = text.split_once(' ')?;
    let (date, clock) = time.split_once(':')?;
    let mut parts = date.split('/');
    let (day, month, year) = (number(parts.next()?)?, parts.next()?, number(parts.next()?)?);
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let local = civil(year, month, day)? + milliseconds(clock)?;
    let (hours, minutes) = (number(zone.get(1..3)?)?, number(zone.get(3..5)?)?);
    let ahead = (hours * 60 + minutes) * 60_000;
    match zone.as_bytes().first()? {
        b'+' => local.checked_sub(ahead),
        b'-' => Some(local + ahead),
        _ => None,
    }
}

/// Writes a time such as `2026-11-26T23:00:05.250Z`.
pub fn shown(time: u64) -> String {
    let at = CivilTime::of(WallTime(time));
    let millis = time % 1000;
    format!("{at}T{:02}:{:02}:{:02}.{millis:03}Z", at.hour, at.minute, at.second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_come_back() {
        for day in (0..40_000).step_by(7) {
            let time = day * DAY + 12_345_678;
            assert_eq!(iso(&shown(time)), Some(time));
        }
        for (text, expected) in [
            ("2001-09-09T01:46:40.250Z", Some(1_000_000_000_250)),
            ("2024-02-29T00:00:00Z", Some(1_709_164_800_000)),
            ("2023-02-29T00:00:00Z", None),
            ("2023-13-01T00:00:00Z", None),
            ("2023-12-01T24:00:00Z", None),
            ("2023-12-01", None),
            ("", None),
        ] {
            assert_eq!(iso(text), expected, "{text}");
        }
    }

    #[test]
    fn the_common_format_has_a_zone() {
        for (text, expected) in [
            ("10/Oct/2000:13:55:36 -0700", Some(971_211_336_000)),
            ("10/Oct/2000:20:55:36 +0000", Some(971_211_336_000)),
            ("10/Foo/2000:20:55:36 +0000", None),
            ("noon", None),
        ] {
            assert_eq!(common_log(text), expected, "{text}");
        }
    }
}
