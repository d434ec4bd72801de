//! Parses and writes HTTP dates in three formats (RFC 9110 §5.6.7). Accepts names in any case, and
//! a wrong weekday. Refuses all other deviations from the grammar.

use foxy_base::time::days_since_epoch;
use foxy_base::{CivilTime, WallTime};

const FIFTY_YEARS_SECONDS: u64 = 50 * 31_556_952;

const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Length in bytes of a date in the preferred format (IMF-fixdate).
pub const LENGTH: usize = 29;

/// Writes a time in the preferred format (IMF-fixdate). The year must not be above 9999.
pub fn preferred(time: WallTime) -> [u8; LENGTH] {
    let CivilTime { year, month, day, hour, minute, second } = CivilTime::of(time);
    let weekday = DAYS[(time.seconds() / 86_400 % 7 + 3) as usize % 7];
    let mut text = *b"Day, 00 Mon 0000 00:00:00 GMT";
    text[..3].copy_from_slice(&weekday.as_bytes()[..3]);
    text[8..11].copy_from_slice(MONTHS[usize::from(month) - 1].as_bytes());
    let pairs = [u64::from(day), year / 100, year % 100, hour, minute, second];
    for (at, pair) in [5, 12, 14, 17, 20, 23].into_iter().zip(pairs) {
        text[at] = b'0' + (pair / 10 % 10) as u8;
        text[at + 1] = b'0' + (pair % 10) as u8;
    }
    text
}

/// Parses a date that has exactly the form that [`preferred`] writes. Faster than [`parse`].
pub fn exact(text: &[u8]) -> Option<WallTime> {
    let text: &[u8; LENGTH] = text.try_into().ok()?;
    let pair = |at: usize| {
        i64::from(text[at].wrapping_sub(b'0')) * 10 + i64::from(text[at + 1].wrapping_sub(b'0'))
    };
    let month = MONTHS.iter().zip(1..).find(|(name, _)| *name.as_bytes() == text[8..11])?.1;
    let time = seconds(pair(12) * 100 + pair(14), month, pair(5), [pair(17), pair(20), pair(23)])?;
    (preferred(time) == *text).then_some(time)
}

/// Parses an HTTP date in any format. Returns `None` for an invalid date or a year before 1970. The
/// time `now` determines the century of a two-digit year.
pub fn parse(text: &[u8], now: WallTime) -> Option<WallTime> {
    if let Some(time) = exact(text) {
        return Some(time);
    }
    let text = std::str::from_utf8(text).ok()?.trim_ascii();
    match text.split_once(", ") {
        Some((day, rest)) if day.len() > 3 => rfc850(day, rest, now),
        Some((day, rest)) => fixed(day, rest),
        None => asctime(text),
    }
}

/// Parses the preferred format, for example `Sun, 06 Nov 1994 08:49:37 GMT`.
fn fixed(day: &str, rest: &str) -> Option<WallTime> {
    let mut parts = rest.split(' ');
    let (number, month, year, time) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let zone = parts.next()?;
    if parts.next().is_some() || !is_short_day(day) || !zone.eq_ignore_ascii_case("GMT") {
        return None;
    }
    seconds(digits(year, 4)?, month_number(month)?, digits(number, 2)?, time_of_day(time)?)
}

/// Parses the format of C's asctime, for example `Sun Nov  6 08:49:37 1994`.
fn asctime(text: &str) -> Option<WallTime> {
    let (day, rest) = text.split_once(' ')?;
    let (month, rest) = rest.split_once(' ')?;
    let number = match rest.strip_prefix(' ') {
        Some(padded) => digits(padded.get(..1)?, 1)?,
        None => digits(rest.get(..2)?, 2)?,
    };
    let (time, year) = rest.get(2..)?.strip_prefix(' ')?.split_once(' ')?;
    if !is_short_day(day) {
        return None;
    }
    seconds(digits(year, 4)?, month_number(month)?, number, time_of_day(time)?)
}

/// Parses the RFC 850 format, for example `Sunday, 06-Nov-94 08:49:37 GMT`. The year is in this
/// century, unless the date would be more than 50 years after `now`; then it is in the last
/// century.
fn rfc850(day: &str, rest: &str, now: WallTime) -> Option<WallTime> {
    let (date, time) = rest.split_once(' ')?;
    let (time, zone) = time.split_once(' ')?;
    let mut parts = date.split('-');
    let (number, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    let known = DAYS.iter().any(|known| known.eq_ignore_ascii_case(day));
    if !known || parts.next().is_some() || !zone.eq_ignore_ascii_case("GMT") {
        return None;
    }
    let (number, month, year) = (digits(number, 2)?, month_number(month)?, digits(year, 2)?);
    let time = time_of_day(time)?;
    let this_century = seconds(2000 + year, month, number, time)?;
    if this_century.seconds() <= now.seconds().saturating_add(FIFTY_YEARS_SECONDS) {
        Some(this_century)
    } else {
        seconds(1900 + year, month, number, time)
    }
}

fn is_short_day(day: &str) -> bool {
    DAYS.iter().any(|known| known[..3].eq_ignore_ascii_case(day))
}

/// Returns the number of a month, from 1 to 12.
fn month_number(name: &str) -> Option<i64> {
    let at = MONTHS.iter().position(|known| known.eq_ignore_ascii_case(name))?;
    i64::try_from(at + 1).ok()
}

fn digits(text: &str, length: usize) -> Option<i64> {
    (text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

fn time_of_day(text: &str) -> Option<[i64; 3]> {
    let mut parts = text.split(':');
    let time = [digits(parts.next()?, 2)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?];
    parts.next().is_none().then_some(time)
}

/// Returns the time of a date, or `None` if the date does not exist. A leap second counts as the
/// second before it.
fn seconds(year: i64, month: i64, day: i64, [hour, minute, second]: [i64; 3]) -> Option<WallTime> {
    let days = days_since_epoch(year, month, day)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second.min(59);
    u64::try_from(seconds).ok().map(WallTime::from_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime::from_seconds(1_795_219_200);
    const EXAMPLE: u64 = 784_111_777;

    #[test]
    fn the_three_formats_of_rfc_9110_are_one_time() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(
                parse(text.as_bytes(), NOW),
                Some(WallTime::from_seconds(EXAMPLE)),
                "{text}"
            );
        }
    }

    #[test]
    fn every_day_is_written_as_it_is_read_and_only_so_is_exact() {
        const NAMES: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
        for day in 0..2_932_897 {
            let time = WallTime::from_seconds(day * 86_400 + day % 86_400);
            let text = preferred(time);
            assert_eq!(exact(&text), Some(time));
            assert_eq!(text[..3], *NAMES[(day % 7) as usize].as_bytes());
        }
        assert_eq!(preferred(WallTime::from_seconds(EXAMPLE)), *b"Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(
            preferred(WallTime::from_seconds(253_402_300_799)),
            *b"Fri, 31 Dec 9999 23:59:59 GMT"
        );
        for text in [
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 gmt",
            "Sun, 06 Nov 1994 08:49:60 GMT",
            "Sun, 06 Nov 1994 08:49:3: GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT ",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(exact(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn names_are_read_in_any_case_and_weekdays_need_not_belong_to_the_date() {
        for text in [
            "SUN, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 NOV 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 gmt",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Mon Nov  6 08:49:37 1994",
            "monday, 06-nov-94 08:49:37 GMT",
        ] {
            assert_eq!(
                parse(text.as_bytes(), NOW),
                Some(WallTime::from_seconds(EXAMPLE)),
                "{text}"
            );
        }
    }

    #[test]
    fn days_are_counted_over_leap_years_and_leap_seconds() {
        let cases = [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 31 Dec 1972 23:59:60 GMT", 94_694_399),
            ("Tue, 29 Feb 2000 12:00:00 GMT", 951_825_600),
            ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
        ];
        for (text, expected) in cases {
            assert_eq!(
                parse(text.as_bytes(), NOW).map(WallTime::seconds),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn a_two_digit_year_is_at_most_fifty_years_ahead() {
        let year =
            |text: &str| parse(text.as_bytes(), NOW).map(|time| 1970 + time.seconds() / 31_556_952);
        assert_eq!(year("Friday, 15-Jun-70 00:00:00 GMT"), Some(2070));
        assert_eq!(year("Friday, 15-Jun-79 00:00:00 GMT"), Some(1979));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "0",
            "-1",
            "",
            "soon",
            "Sun, 06 Nov 1994",
            "Someday, 06-Nov-94 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 +0000",
            "Sun, 06 Nov 1994  08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Tue, 29 Feb 1900 08:49:37 GMT",
            "Wed, 29 Feb 2023 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Wed, 31 Dec 1969 23:59:59 GMT",
            "Sun Nov 6 08:49:37 1994",
            "Sun Nov  6 08:49:37 94",
            "Sun Nov \u{e9}6 08:49:37 1994",
        ] {
            assert_eq!(parse(text.as_bytes(), NOW), None, "{text:?}");
        }
    }
}
