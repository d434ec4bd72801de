//! HTTP dates in their three formats (RFC 9110 §5.6.7). The preferred one and asctime are httpdate's work; RFC 850's
//! two-digit year is read here, since it depends on the present.

use foxy_base::WallTime;
use std::time::UNIX_EPOCH;

/// Fifty years, in seconds.
const FIFTY_YEARS: u64 = 50 * 31_556_952;

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Reads an HTTP date. `None` when it is none, or lies before 1970.
#[must_use]
pub fn parse(text: &[u8], now: WallTime) -> Option<WallTime> {
    let text = std::str::from_utf8(text).ok()?.trim_ascii();
    match text.split_once(", ") {
        Some((day, rest)) if day.len() > 3 => rfc850(day, rest, now),
        _ => seconds(text),
    }
}

fn seconds(text: &str) -> Option<WallTime> {
    let time = httpdate::parse_http_date(text).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| WallTime::from_seconds(since.as_secs()))
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`. A year more than 50 years in the future means the last century's.
fn rfc850(day: &str, rest: &str, now: WallTime) -> Option<WallTime> {
    let known = DAYS.contains(&day);
    let (date, time) = rest.split_once(' ')?;
    let mut parts = date.split('-');
    let (number, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    if !known || parts.next().is_some() || number.len() != 2 || year.len() != 2 {
        return None;
    }
    let in_century = |century: &str| {
        // httpdate wants the weekday that belongs to the date, which a two-digit year leaves open.
        DAYS.iter()
            .find_map(|day| seconds(&format!("{}, {number} {month} {century}{year} {time}", &day[..3])))
    };
    match in_century("20") {
        Some(date) if date.seconds() <= now.seconds() + FIFTY_YEARS => Some(date),
        Some(_) => in_century("19"),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime::from_seconds(1_795_219_200);
    const EXAMPLE: u64 = 784_111_777;

    #[test]
    fn the_three_formats_of_rfc_9110_are_one_time() {
        for text in
            ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"]
        {
            assert_eq!(parse(text.as_bytes(), NOW), Some(WallTime::from_seconds(EXAMPLE)), "{text}");
        }
    }

    #[test]
    fn a_two_digit_year_is_at_most_fifty_years_ahead() {
        let year = |text: &str| parse(text.as_bytes(), NOW).map(|time| 1970 + time.seconds() / 31_556_952);
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
        ] {
            assert_eq!(parse(text.as_bytes(), NOW), None, "{text:?}");
        }
    }
}
