//! Computes the finding of a chart: sentences that say which series is best, by how much, and
//! whether the intervals show a difference. The chart shows the sentences under its title.

mod bars;
mod lines;
mod rank;

use super::{Chart, Dots, Line, Look, Plot, Value};
use crate::Summary;
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

/// Divides two values. Prefers the ratio of their runs. Otherwise the ratio has an interval only if
/// one of the values is exact. Two intervals alone do not tell how the values vary together.
/// Returns `None` if a value is not above 0.
fn ratio(upper: &Value, lower: &Value) -> Option<Value> {
    if upper.value <= 0.0 || lower.value <= 0.0 {
        return None;
    }
    let divided = || {
        let value = upper.value / lower.value;
        match (upper.has_interval(), lower.has_interval()) {
            (true, false) => {
                let low = upper.low.max(0.0) / lower.value;
                Value::between(value, low, upper.high / lower.value)
            }
            (false, true) if lower.low > 0.0 => {
                Value::between(value, upper.value / lower.high, upper.value / lower.low)
            }
            _ => Value::exact(value),
        }
    };
    Some(ratio_of_runs(upper, lower).unwrap_or_else(divided))
}

/// Summarises the ratios of two values in each run. Runs at the same place in both values belong
/// together, such as the runs with the same seed. The ratio is a median from lowest to highest if
/// the values are, and else a mean with its 95 % interval, as in the table of a comparison. Returns
/// `None` if the values do not have equally many runs.
fn ratio_of_runs(upper: &Value, lower: &Value) -> Option<Value> {
    let pairs = || upper.runs.iter().copied().zip(lower.runs.iter().copied());
    if upper.runs.len() < 2 || upper.runs.len() != lower.runs.len() {
        return None;
    }
    if upper.is_range_of_runs() && lower.is_range_of_runs() {
        return Value::of_runs(&pairs().map(|(upper, lower)| upper / lower).collect::<Vec<_>>());
    }
    let Summary { mean, low, high, .. } = Summary::of_pairs(pairs())?;
    Some(Value::between(mean, low, high))
}

/// Formats a ratio with its interval: `16.8 × foxy (15.4 to 18.9)`.
fn times(ratio: &Value, base: &str) -> String {
    format!("{} × {base}{}", significant(ratio.value, 3), interval(ratio))
}

/// Returns whether the chart shows no clear difference between two values. If both have runs, the
/// interval of the ratio then contains 1, or a number that three digits show as 1. Otherwise the
/// intervals of the values overlap.
fn are_near(one: &Value, other: &Value) -> bool {
    let is_one = |ratio: f64| significant(ratio, 3) == "1";
    match ratio_of_runs(one, other) {
        Some(ratio) => {
            (ratio.low <= 1.0 || is_one(ratio.low)) && (ratio.high >= 1.0 || is_one(ratio.high))
        }
        None => one.low <= other.high && other.low <= one.high,
    }
}

/// Returns the part of a group's name that is not a remark.
fn first_line(name: &str) -> &str {
    name.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_decide_the_ratio_and_not_the_ends_of_the_intervals() {
        let of = |runs: &[f64]| {
            let Summary { mean, low, high, .. } = Summary::of(runs).expect("runs");
            Value { runs: runs.to_vec(), ..Value::between(mean, low, high) }
        };
        let (foxy, nginx) = (of(&[30.0, 60.0, 100.0]), of(&[10.0, 21.0, 30.0]));
        let found = ratio(&foxy, &nginx).expect("values above 0");
        let table = Summary::of_ratios(&[3.0, 60.0 / 21.0, 100.0 / 30.0]).expect("ratios");
        assert_eq!((found.value, found.low, found.high), (table.mean, table.low, table.high));
        assert!(!are_near(&foxy, &nginx), "the intervals overlap, but the ratios are clear");
        let ends = |value: Value| Value { runs: Vec::new(), ..value };
        let found = ratio(&ends(foxy.clone()), &ends(nginx)).expect("values above 0");
        assert!(!found.has_interval(), "{found:?}");
        let exact = ratio(&ends(foxy), &Value::exact(10.0)).expect("values above 0");
        assert!(exact.low < 2.0 && exact.high > 12.0, "{exact:?}");
    }

    #[test]
    fn a_range_of_runs_has_a_range_of_ratios() {
        let of = |runs: &[f64]| Value::of_runs(runs).expect("runs");
        let found = ratio(&of(&[20.0, 60.0, 40.0]), &of(&[10.0, 20.0, 8.0])).expect("above 0");
        assert_eq!((found.value, found.low, found.high), (3.0, 2.0, 5.0));
    }

    #[test]
    fn a_difference_that_three_digits_do_not_show_is_not_clear() {
        let of = |runs: &[f64]| Value::of_runs(runs).expect("runs");
        let base = of(&[583_175.0, 582_902.0, 583_584.0]);
        assert!(are_near(&base, &of(&[583_176.0, 582_906.0, 583_590.0])));
        assert!(!are_near(&base, &of(&[584_000.0, 584_100.0, 584_600.0])));
    }
}
