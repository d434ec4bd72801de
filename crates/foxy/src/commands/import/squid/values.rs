//! Parses the numbers, sizes and times of Squid directives.

use foxy_cli::units::show_duration;
use std::time::Duration;

/// Parses an integer with a unit of time, for example `1 minute`. Returns the time in foxy's form.
/// Without a unit in the text, `default` is the unit.
pub fn time(words: &[String], default: &str) -> Option<String> {
    let (number, unit) = split(words, default)?;
    let seconds = match unit.trim_end_matches('s') {
        "second" => 1,
        "minute" => 60,
        "hour" => 3600,
        "day" => 86_400,
        "week" => 7 * 86_400,
        "fortnight" => 14 * 86_400,
        "millisecond" => {
            return Some(show_duration(Duration::from_millis(number)));
        }
        _ => return None,
    };
    Some(show_duration(Duration::from_secs(number.checked_mul(seconds)?)))
}

/// Parses an integer with a unit of size, for example `4 MB`. Returns the size in foxy's form.
/// Without a unit in the text, `default` is the unit.
pub fn size(words: &[String], default: &str) -> Option<String> {
    let (number, unit) = split(words, default)?;
    let shift = match unit.to_ascii_lowercase().as_str() {
        "b" | "bytes" => 0,
        "kb" => 10,
        "mb" => 20,
        "gb" => 30,
        "tb" => 40,
        _ => return None,
    };
    Some(bytes(number.checked_mul(1 << shift)?))
}

/// Returns a number of bytes in the largest unit that divides it, such as `4M`.
pub fn bytes(count: u64) -> String {
    let units = [(40, "T"), (30, "G"), (20, "M"), (10, "K")];
    let fits = units.iter().find(|(shift, _)| count > 0 && count.trailing_zeros() >= *shift);
    fits.map_or_else(|| count.to_string(), |(shift, unit)| format!("{}{unit}", count >> shift))
}

fn split<'a>(words: &'a [String], default: &'a str) -> Option<(u64, &'a str)> {
    let first = words.first()?;
    let end = first.find(|c: char| !c.is_ascii_digit()).unwrap_or(first.len());
    let number = first[..end].parse().ok()?;
    let unit = match (&first[end..], words.get(1)) {
        ("", Some(unit)) => unit.as_str(),
        ("", None) => default,
        (unit, _) => unit,
    };
    Some((number, unit))
}

/// Returns a number of minutes in foxy's form of times.
pub fn minutes(count: u64) -> String {
    show_duration(Duration::from_secs(count.saturating_mul(60)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(ToOwned::to_owned).collect()
    }

    #[test]
    fn sizes_and_times_are_rewritten() {
        assert_eq!(time(&words("90 seconds"), "second").as_deref(), Some("90s"));
        assert_eq!(time(&words("2 hours"), "second").as_deref(), Some("2h"));
        assert_eq!(time(&words("5"), "minute").as_deref(), Some("5m"));
        assert_eq!(time(&words("1 year"), "second"), None);
        assert_eq!(size(&words("256 MB"), "MB").as_deref(), Some("256M"));
        assert_eq!(size(&words("4096 KB"), "KB").as_deref(), Some("4M"));
        assert_eq!(size(&words("100"), "bytes").as_deref(), Some("100"));
        assert_eq!(size(&words("0 KB"), "KB").as_deref(), Some("0"));
        assert_eq!(size(&words("none"), "KB"), None);
    }
}
