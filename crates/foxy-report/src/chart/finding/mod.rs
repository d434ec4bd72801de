//! Computes the finding of a chart: sentences that say which series is best, by how much, and
//! whether the intervals show a difference. The chart shows the sentences under its title.

mod bars;
mod lines;
mod rank;

use super::{Chart, Dots, Line, Look, Plot, Value};
use crate::direction::Better;
use crate::number::{readable, significant, trimmed};
pub(super) use lines::{is_distribution, labels};
use rank::{Item, ranking};

/// Returns the finding of a chart, which is the sentences under its title. `plot` has the points
/// that the chart draws.
pub(super) fn finding(chart: &Chart, plot: &Plot) -> String {
    match plot {
        Plot::Bars { groups, series } => bars::finding(chart, groups, series),
        Plot::Lines(lines) => lines::finding(chart, lines),
        Plot::Dots(dots) => dots.iter().map(|cloud| steps(chart, cloud)).collect(),
    }
}

/// Returns a sentence with the number of a cloud's dots, and the mean vertical distance from each
/// dot to the next. Callers pass the dots in order of time, so the distance tells how far a disk
/// head moves.
fn steps(chart: &Chart, cloud: &Dots) -> String {
    let Dots { name, points } = cloud;
    let number = trimmed(points.len() as f64, 0);
    let steps = points.windows(2).map(|pair| (pair[1].1 - pair[0].1).abs());
    let count = steps.len().max(1) as f64;
    let mean = quantity(steps.sum::<f64>() / count, &chart.y.unit);
    format!("{name}: {number} dots. From dot to dot, {mean} on average.\n")
}

/// Returns whether higher or lower values of a chart are better. Takes this from the field `better`
/// of the chart, or else from words in the titles of chart and axis.
pub(super) fn better(chart: &Chart) -> Better {
    if chart.better != Better::Unstated {
        return chart.better;
    }
    let axis = if matches!(chart.plot, Plot::Bars { .. }) { &chart.x } else { &chart.y };
    let of_axis = || Better::of_axis(&format!("{} {}", axis.title, axis.unit));
    Better::of_title(&chart.title).unwrap_or_else(of_axis)
}

/// Formats a value with its unit for a sentence.
pub(super) fn quantity(value: f64, unit: &str) -> String {
    let number = readable(value);
    let unit = unit.split(';').next().unwrap_or_default();
    match unit {
        "" | "1" | "count" | "ratio" | "share" => number,
        "1/s" => format!("{number}/s"),
        "us" => format!("{number} µs"),
        unit if unit.starts_with("times") => format!("{number} ×"),
        unit => format!("{number} {unit}"),
    }
}

/// Formats the ends of an interval. Returns an empty text for a value without an interval.
fn interval(value: &Value) -> String {
    if value.has_interval() {
        format!(" ({} to {})", significant(value.low, 3), significant(value.high, 3))
    } else {
        String::new()
    }
}

/// Divides two values. The interval of the ratio contains each ratio of values in the two
/// intervals. Returns `None` if a ratio would say nothing, because a value is not above 0.
fn ratio(upper: &Value, lower: &Value) -> Option<Value> {
    if upper.value <= 0.0 || lower.value <= 0.0 {
        return None;
    }
    let high = if lower.low > 0.0 { upper.high / lower.low } else { f64::INFINITY };
    Some(Value::between(upper.value / lower.value, upper.low.max(0.0) / lower.high, high))
}

/// Formats a ratio with its interval: `16.8 × foxy (15.4 to 18.9)`.
fn times(ratio: &Value, base: &str) -> String {
    let text = format!("{} × {base}", significant(ratio.value, 3));
    let (low, high) = (significant(ratio.low, 3), significant(ratio.high, 3));
    match (ratio.has_interval(), ratio.high.is_finite()) {
        (false, _) => text,
        (true, true) => format!("{text} ({low} to {high})"),
        (true, false) => format!("{text} (at least {low})"),
    }
}

/// Returns whether the intervals of two values overlap, so that the chart shows no clear
/// difference.
fn overlap(one: &Value, other: &Value) -> bool {
    one.low <= other.high && other.low <= one.high
}

/// Returns the part of a group's name that is not a remark.
fn first_line(name: &str) -> &str {
    name.lines().next().unwrap_or_default()
}
