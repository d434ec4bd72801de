//! Reads the values in a query: numbers of bytes, durations and times.

use crate::lines::time;
use foxy_base::{CivilTime, WallTime};

/// Reads a number of bytes, such as `10M`. Units are powers of 1024.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len());
    let unit = text[digits..].trim_end_matches(['b', 'B']).trim_end_matches('i');
    let shift = match unit {
        "" => 0,
        "k" | "K" => 10,
        "m" | "M" => 20,
        "g" | "G" => 30,
        "t" | "T" => 40,
        _ => return None,
    };
    scaled(&text[..digits], (1_u64 << shift) as f64)
}

/// Reads a duration such as `250ms`, and returns microseconds.
pub(super) fn duration(text: &str) -> Option<u64> {
    let digits = text.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len());
    let micros = match &text[digits..] {
        "us" | "µs" | "μs" => 1_u64,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" | "min" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return None,
    };
    scaled(&text[..digits], micros as f64)
}

fn scaled(number: &str, factor: f64) -> Option<u64> {
    let number: f64 = number.parse().ok()?;
    Some((number * factor).round() as u64)
}

/// Reads a time in UTC: `2026-11-26`, `2026-11-26T23:00`, `2026-11-26T23:00:05.250Z`, or `23:00` of
/// today. `-15m` is the time 15 minutes before `now`. Returns milliseconds since the Unix epoch.
pub(super) fn time(text: &str, now: u64) -> Option<u64> {
    if let Some(before) = text.strip_prefix('-') {
        return Some(now.saturating_sub(duration(before)? / 1000));
    }
    let text = text.strip_suffix('Z').unwrap_or(text);
    let (date, clock) = match text.split_once(['T', ' ']) {
        Some((date, clock)) => (date.to_owned(), clock),
        None if text.contains(':') => (CivilTime::of(WallTime(now)).to_string(), text),
        None => (text.to_owned(), "00:00"),
    };
    let seconds = if clock.matches(':').count() == 1 { ":00" } else { "" };
    time::parse(&format!("{date}T{clock}{seconds}"))
}
