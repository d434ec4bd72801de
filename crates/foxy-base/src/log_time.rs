//! Parses times in logs to microseconds since the Unix epoch: seconds with a fraction, dates of the
//! Common Log Format, and RFC 3339 dates. Time zones must be numeric offsets.

use crate::time::days_since_epoch;

const MICROS: i64 = 1_000_000;

/// Parses an integer as in [`by_magnitude`], seconds with a fraction, or an RFC 3339 date. Drops
/// digits below a microsecond. Returns `None` if the text is not a time.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    seconds(text).or_else(|| rfc3339(text))
}

fn seconds(text: &str) -> Option<i64> {
    let Some((whole, fraction)) = text.split_once('.') else {
        return text.parse().ok().and_then(by_magnitude).or_else(|| real(text));
    };
    let plain = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let Some(seconds) = whole.parse::<i64>().ok().filter(|_| plain) else { return real(text) };
    let digits = &fraction[..fraction.len().min(6)];
    let micros = digits.parse::<i64>().ok()? * 10_i64.pow(6 - digits.len() as u32);
    let micros = if whole.starts_with('-') { -micros } else { micros };
    seconds.checked_mul(MICROS)?.checked_add(micros)
}

fn real(text: &str) -> Option<i64> {
    let digits =
        text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    text.parse::<f64>().ok().filter(|_| digits).and_then(from_seconds)
}

/// Converts seconds with a fraction to microseconds. Returns `None` for more than about 280,000
/// years.
#[must_use]
pub fn from_seconds(seconds: f64) -> Option<i64> {
    (seconds.abs() < 9e12).then(|| (seconds * 1e6).round() as i64)
}

/// Converts a number to microseconds, with its unit guessed from its magnitude. Numbers below 10^11
/// (the year 5138) are seconds. Numbers below 10^14 are milliseconds, numbers below 10^17 are
/// microseconds, and larger numbers are nanoseconds. Returns `None` if the time does not fit in the
/// result.
#[must_use]
pub fn by_magnitude(number: i64) -> Option<i64> {
    match number.unsigned_abs() {
        0..100_000_000_000 => number.checked_mul(MICROS),
        100_000_000_000..100_000_000_000_000 => number.checked_mul(1000),
        100_000_000_000_000..100_000_000_000_000_000 => Some(number),
        _ => Some(number / 1000),
    }
}

/// Parses a date such as `10/Oct/2000:13:55:36 -0700`. Returns `None` if the text is not such a
/// date.
#[must_use]
pub fn common_log(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(':')?;
    let mut parts = date.split('/');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let month = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(month))?;
    let (clock, offset) = rest.split_once(' ')?;
    let days = days_since_epoch(number(year)?, i64::try_from(month).ok()? + 1, number(day)?)?;
    in_zone(days, clock, offset)
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Parses an RFC 3339 §5.6 date, with `T` or a space before the time. A date without an offset is
/// in UTC.
fn rfc3339(text: &str) -> Option<i64> {
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let days = days_since_epoch(number(year)?, number(month)?, number(day)?)?;
    let end = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
    in_zone(days, rest[..end].trim_end(), &rest[end..])
}

/// Converts the date `days` (in days since the Unix epoch) and a time of day to microseconds.
/// `clock` is `hh:mm:ss[.fraction]`. `offset` is `+hhmm`, `+hh:mm`, `Z` or empty.
fn in_zone(days: i64, clock: &str, offset: &str) -> Option<i64> {
    let mut parts = clock.split(':');
    let (hour, minute, second) = (number(parts.next()?)?, number(parts.next()?)?, parts.next()?);
    let second = seconds(second).filter(|second| (0..=60 * MICROS).contains(second))?;
    if hour > 23 || minute > 59 || parts.next().is_some() {
        return None;
    }
    let offset = match offset {
        "" | "Z" | "z" => 0,
        _ => {
            let sign = if offset.starts_with('-') { -1 } else { 1 };
            let digits = offset.get(1..)?;
            let (hours, minutes) = digits.split_once(':').or_else(|| digits.split_at_checked(2))?;
            if hours.len() != 2 || minutes.len() != 2 {
                return None;
            }
            sign * (number(hours)? * 60 + number(minutes)?)
        }
    };
    Some(((days * 24 + hour) * 60 + minute - offset) * 60 * MICROS + second)
}

/// Parses a number of one to four digits.
fn number(text: &str) -> Option<i64> {
    let digits = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_seconds_unless_they_are_too_large_for_it() {
        let cases = [
            ("785433179.434793", Some(785_433_179_434_793)),
            ("785433179.5", Some(785_433_179_500_000)),
            ("0.1234567", Some(123_456)),
            ("-0.5", Some(-500_000)),
            ("12", Some(12_000_000)),
            ("1700000000123", Some(1_700_000_000_123_000)),
            ("1700000000123456", Some(1_700_000_000_123_456)),
            ("1700000000123456789", Some(1_700_000_000_123_456)),
            ("1.7e9", Some(1_700_000_000_000_000)),
            ("", None),
            ("nan", None),
            ("inf", None),
            ("1e300", None),
            ("99999999999999999999.5", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
    }

    #[test]
    fn dates_of_both_kinds_are_moments() {
        let known = 971_211_336_000_000;
        let cases = [
            ("2000-10-10T13:55:36-07:00", Some(known)),
            ("2000-10-10 20:55:36.25Z", Some(known + 250_000)),
            ("2000-10-10 20:55:36", Some(known)),
            ("1970-01-01T00:00:00Z", Some(0)),
            ("1969-12-31T23:59:59Z", Some(-1_000_000)),
            ("2000-02-30T00:00:00Z", None),
            ("2000-13-01T00:00:00Z", None),
            ("2000-10-10T24:00:00Z", None),
            ("2000-10-10", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text), expected, "{text}");
        }
        assert_eq!(common_log("10/Oct/2000:13:55:36 -0700"), Some(known));
        assert_eq!(common_log("10/Okt/2000:13:55:36 -0700"), None);
        assert_eq!(common_log("10/Oct/2000:13:55:36 ++"), None);
    }
}
