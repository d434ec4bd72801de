//! Chooses the positions and labels of the ticks of an axis: steps of 1, 2 or 5, powers of ten, or
//! powers of two.

use super::Spacing;
use crate::number::{readable, trimmed, with_decimals};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) value: f64,
    pub(super) label: String,
}

/// Whether an axis ends exactly at its lowest and highest value, or at the next ticks outside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    Exact,
    Nice,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ticks {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) ticks: Vec<Tick>,
}

impl Ticks {
    /// Makes about `wanted` ticks in a finite range. For logarithmic spacing, the range must be
    /// positive.
    pub(super) fn new(spacing: Spacing, range: (f64, f64), wanted: usize, ends: Ends) -> Self {
        match spacing {
            Spacing::Linear => linear(widened(range), wanted, ends),
            Spacing::Logarithmic => powers_of_ten(stretched(range), wanted, ends),
        }
    }
}

/// Widens the range of an axis if it is a single value. The single value 0 gets the range 0 to 1.
fn widened((low, high): (f64, f64)) -> (f64, f64) {
    let room = low.abs() / 2.0;
    match (low < high, low == 0.0) {
        (true, _) => (low, high),
        (false, true) => (0.0, 1.0),
        (false, false) => (low - room, low + room),
    }
}

fn stretched((low, high): (f64, f64)) -> (f64, f64) {
    if low < high { (low, high) } else { (low / 2.0, low * 2.0) }
}

/// Returns the distance between neighbouring ticks, as a digit (1, 2 or 5) and the exponent of a
/// power of ten. The axis then has about `wanted` ticks.
fn nice_step(span: f64, wanted: usize) -> (f64, i32) {
    let rough = span / wanted.max(1) as f64;
    let power = rough.log10().floor() as i32;
    let lead = rough / 10f64.powi(power);
    match lead {
        lead if lead <= 1.0 + 1e-9 => (1.0, power),
        lead if lead <= 2.0 + 1e-9 => (2.0, power),
        lead if lead <= 5.0 + 1e-9 => (5.0, power),
        _ => (1.0, power + 1),
    }
}

fn linear((low, high): (f64, f64), wanted: usize, ends: Ends) -> Ticks {
    let (digit, power) = nice_step(high - low, wanted);
    let step = digit * 10f64.powi(power);
    let (first, last) = match ends {
        Ends::Nice => ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil()),
        Ends::Exact => ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor()),
    };
    let value = |number: f64| {
        if power < 0 {
            number * digit / 10f64.powi(-power)
        } else {
            number * digit * 10f64.powi(power)
        }
    };
    let count = (last - first).max(0.0) as usize;
    let values: Vec<f64> = (0..=count).map(|index| value(first + index as f64)).collect();
    let ticks = labelled(&values, usize::try_from(-power).unwrap_or(0));
    match ends {
        Ends::Nice => Ticks { low: value(first), high: value(last), ticks },
        Ends::Exact => Ticks { low, high, ticks },
    }
}

fn labelled(values: &[f64], decimals: usize) -> Vec<Tick> {
    let largest = values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let shortened =
        [(1e12, " T"), (1e9, " G"), (1e6, " M")].into_iter().find(|(unit, _)| largest >= *unit);
    let label = |value: f64| match shortened {
        _ if value == 0.0 => "0".into(),
        Some((unit, letter)) => trimmed(value / unit, 6) + letter,
        None if decimals > 6 => readable(value),
        None => with_decimals(value, decimals),
    };
    values.iter().map(|&value| Tick { value, label: label(value) }).collect()
}

/// Makes ticks at powers of `base`, or at every n-th power if there are many. If base is ten and
/// the axis covers fewer than three powers, it also has ticks at two and five times each power.
fn powers_of_ten((low, high): (f64, f64), wanted: usize, ends: Ends) -> Ticks {
    let first = (low.log10() + 1e-9).floor() as i32;
    let last = (high.log10() - 1e-9).ceil() as i32;
    let between: &[f64] = if last - first < 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let stride = (last - first + 1).unsigned_abs() as usize / wanted.max(1) + 1;
    let exponents = (first..=last).step_by(stride);
    let all: Vec<f64> = exponents
        .flat_map(|power| between.iter().map(move |digit| digit * 10f64.powi(power)))
        .collect();
    let below = all.iter().copied().rfind(|value| *value <= low * (1.0 + 1e-9)).unwrap_or(low);
    let above = all.iter().copied().find(|value| *value >= high * (1.0 - 1e-9)).unwrap_or(high);
    let (low, high) = if ends == Ends::Nice { (below, above) } else { (low, high) };
    let inside = |value: &f64| (low * (1.0 - 1e-9)..=high * (1.0 + 1e-9)).contains(value);
    let label = |value: f64| {
        if value >= 1e6 {
            labelled(&[value], 0).swap_remove(0)
        } else {
            Tick { value, label: readable(value) }
        }
    };
    Ticks { low, high, ticks: all.into_iter().filter(inside).map(label).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spacing: Spacing, range: (f64, f64), wanted: usize, ends: Ends, expected: &[&str]) {
        let ticks = Ticks::new(spacing, range, wanted, ends);
        let labels: Vec<&str> = ticks.ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(labels, expected, "{range:?}");
        assert!(ticks.low < ticks.high, "{ticks:?}");
    }

    #[test]
    fn linear_ticks_step_by_one_two_or_five_and_end_on_a_tick() {
        let nice =
            |range, expected: &[&str]| check(Spacing::Linear, range, 5, Ends::Nice, expected);
        nice((0.0, 10.0), &["0", "2", "4", "6", "8", "10"]);
        nice((0.0, 1.0), &["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        nice((3.0, 97.0), &["0", "20", "40", "60", "80", "100"]);
        nice((-0.3, 0.3), &["-0.4", "-0.2", "0", "0.2", "0.4"]);
        nice((0.0, 5200.0), &["0", "2,000", "4,000", "6,000"]);
        nice((0.0, 4.0e9), &["0", "1 G", "2 G", "3 G", "4 G"]);
        nice((0.0, 2.1e6), &["0", "0.5 M", "1 M", "1.5 M", "2 M", "2.5 M"]);
        nice((0.0, 4e-9), &["0", "1.000e-9", "2.000e-9", "3.000e-9", "4.000e-9"]);
    }

    #[test]
    fn an_exact_axis_ends_at_its_data_and_has_its_ticks_inside() {
        check(Spacing::Linear, (52.0, 93.0), 5, Ends::Exact, &["60", "70", "80", "90"]);
        let ticks = Ticks::new(Spacing::Linear, (52.0, 93.0), 5, Ends::Exact);
        assert_eq!((ticks.low, ticks.high), (52.0, 93.0));
    }

    #[test]
    fn one_value_gets_an_axis_with_room_around_it() {
        check(Spacing::Linear, (0.0, 0.0), 4, Ends::Nice, &["0", "0.5", "1.0"]);
        check(Spacing::Linear, (10.0, 10.0), 4, Ends::Nice, &["5", "10", "15"]);
    }

    #[test]
    fn logarithmic_ticks_are_powers_with_twos_and_fives_over_a_short_range() {
        let log =
            |range, expected: &[&str]| check(Spacing::Logarithmic, range, 8, Ends::Nice, expected);
        log((3.0, 40.0), &["2", "5", "10", "20", "50"]);
        log((1.0, 1000.0), &["1", "10", "100", "1,000"]);
        log((0.002, 4e6), &["0.001", "0.1", "10", "1,000", "100,000", "10 M"]);
        let exact = &["10", "20", "50"];
        check(Spacing::Logarithmic, (8.0, 90.0), 8, Ends::Exact, exact);
        check(Spacing::Logarithmic, (8.0, 8.0), 8, Ends::Nice, &["2", "5", "10", "20"]);
    }
}
