//! Parses and prints durations such as `500ms`, `30s`, `5m`, `2h` or `1d`.

use std::time::Duration;

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Parses a whole number followed by a unit (`ms`, `s`, `m`, `h` or `d`).
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit()).unwrap_or(trimmed.len());
    let unit = trimmed[digits..].trim();
    let known = UNITS.iter().find(|(name, _)| *name == unit);
    let (Ok(number), Some((_, factor))) = (trimmed[..digits].parse::<u64>(), known) else {
        return Err(format!(
            "duration {text:?} is not a whole number with a unit; write a duration such as 500ms, \
             30s, 5m, 2h or 1d"
        ));
    };
    number
        .checked_mul(*factor)
        .map(Duration::from_millis)
        .ok_or_else(|| format!("duration {text:?} is too long"))
}

/// Parses a duration that must be longer than zero.
pub fn parse_positive_duration(text: &str) -> Result<Duration, String> {
    let refuse = || {
        format!(
            "duration {text:?} is not longer than zero; write a duration such as 500ms, 30s, 5m, \
             2h or 1d"
        )
    };
    parse_duration(text).and_then(|time| if time.is_zero() { Err(refuse()) } else { Ok(time) })
}

/// Returns the text of a duration, in the largest unit that divides the duration exactly.
pub fn show_duration(duration: Duration) -> String {
    let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let fits = UNITS
        .iter()
        .rev()
        .find(|(_, factor)| milliseconds >= *factor && milliseconds % factor == 0);
    let (unit, factor) = fits.unwrap_or(&("s", 1_000));
    format!("{}{unit}", milliseconds / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_shown_as_people_write_them() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5 m", 300_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
        ] {
            let duration = parse_duration(text).expect(text);
            assert_eq!(duration, Duration::from_millis(milliseconds));
            assert_eq!(show_duration(duration), text.replace(' ', ""));
        }
        assert_eq!(show_duration(Duration::ZERO), "0s");
        assert_eq!(show_duration(Duration::from_secs(90)), "90s");
    }

    #[test]
    fn a_duration_without_a_unit_is_refused() {
        for text in ["30", "s", "", "-5s", "1.5h", "5 parsecs"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        assert!(parse_duration("999999999999999999d").is_err());
    }

    #[test]
    fn no_time_at_all_is_refused_where_there_must_be_some() {
        for text in ["0s", "0ms", "00d", "30"] {
            assert!(
                parse_positive_duration(text).is_err_and(|error| error.contains("such as 500ms")),
                "{text}"
            );
        }
        assert_eq!(parse_positive_duration("1ms"), Ok(Duration::from_millis(1)));
    }
}
