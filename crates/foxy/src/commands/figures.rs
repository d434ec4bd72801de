//! Formats numbers for people, such as sizes, times and shares. Many of the numbers come from JSON.

use foxy_base::ByteSize;
use serde_json::Value;

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

pub fn count(value: &Value) -> String {
    format!("{:.0}", number(value))
}

pub fn rate(value: &Value) -> String {
    let rate = number(value);
    if rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

pub fn percent(value: &Value) -> String {
    share(value.as_f64())
}

/// Writes a share from 0 to 1 in percent.
pub fn share(share: Option<f64>) -> String {
    // The sum with 0 turns a rounded -0 into 0.
    let rounded = |share: f64| (share * 1000.0).round() / 10.0 + 0.0;
    share.map_or_else(|| "–".into(), |share| format!("{:.1} %", rounded(share)))
}

/// Keeps the end of a long text, at most `longest` characters.
pub fn end_of(text: &str, longest: usize) -> String {
    let length = text.chars().count();
    if length <= longest {
        return text.to_owned();
    }
    format!("…{}", text.chars().skip(length + 1 - longest).collect::<String>())
}

pub fn bytes(value: &Value) -> String {
    ByteSize(number(value) as u64).to_string()
}

pub fn time(value: &Value) -> String {
    match value.as_f64() {
        None => "–".into(),
        Some(seconds) if seconds < 0.001 => format!("{:.0} µs", seconds * 1e6),
        Some(seconds) if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.1} s"),
    }
}

pub fn uptime(seconds: f64) -> String {
    let minutes = seconds as u64 / 60;
    match (minutes / 1440, minutes / 60 % 24) {
        (0, 0) if minutes == 0 => format!("{seconds:.0} s"),
        (0, 0) => format!("{minutes} min"),
        (0, hours) => format!("{hours} h {} min", minutes % 60),
        (days, hours) => format!("{days} d {hours} h"),
    }
}

/// Writes a time in milliseconds with one unit, such as `5 min`.
pub fn span(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_end() {
        let ends = ["abcd", "abcde", "ab…"].map(|text| end_of(text, 4));
        assert_eq!(ends, ["abcd", "…cde", "ab…"]);
    }

    #[test]
    fn a_share_near_zero_has_no_sign() {
        let shares = [-0.0004, 0.0004, -0.25, 0.9999].map(|value| share(Some(value)));
        assert_eq!(shares, ["0.0 %", "0.0 %", "-25.0 %", "100.0 %"]);
    }

    #[test]
    fn a_span_has_one_unit() {
        for (seconds, text) in
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 d")]
        {
            assert_eq!(span(seconds * 1000 + 999), text);
        }
    }
}
