//! Axes, and the positions of values on them.

use super::svg::width_of;
use super::ticks::{Tick, Ticks};
use serde::{Deserialize, Serialize};

/// An axis with only positive values becomes logarithmic if its highest value is at least this many
/// times its lowest value.
const WIDE: f64 = 25.0;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Linear, with equal steps.
    Linear,
    /// Logarithmic, with ticks at powers of ten.
    Logarithmic,
}

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Title of the axis.
    pub title: String,
    /// Unit of the values, or empty.
    pub unit: String,
    /// Scale of the axis.
    pub spacing: Spacing,
    /// Values that the axis must include besides the data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<f64>,
}

impl Axis {
    /// Makes a linear axis.
    pub fn linear(title: &str, unit: &str) -> Self {
        Self { title: title.into(), unit: unit.into(), spacing: Spacing::Linear, shown: Vec::new() }
    }

    /// Makes an axis with powers of ten.
    pub fn logarithmic(title: &str, unit: &str) -> Self {
        Self { spacing: Spacing::Logarithmic, ..Self::linear(title, unit) }
    }

    /// Makes an axis for `values`. If they are positive and their highest is at least `WIDE` times
    /// their lowest, the axis is logarithmic. `text` is the title of the axis. In `text`, the unit
    /// may follow after the last comma.
    pub fn fitting(text: &str, values: impl Iterator<Item = f64>) -> Self {
        let (title, unit) = text.rsplit_once(", ").unwrap_or((text, ""));
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        let is_wide = low > 0.0 && high / low >= WIDE;
        if is_wide { Self::logarithmic(title, unit) } else { Self::linear(title, unit) }
    }

    /// Extends the axis so that it includes `value`.
    pub fn showing(mut self, value: f64) -> Self {
        self.shown.push(value);
        self
    }

    /// Returns whether the axis can show `value`.
    pub(super) fn holds(&self, value: f64) -> bool {
        value.is_finite() && (self.spacing == Spacing::Linear || value > 0.0)
    }

    pub(super) fn caption(&self) -> String {
        let unit = match self.unit.as_str() {
            "" | "1" => String::new(),
            "us" => ", µs".into(),
            unit => format!(", {unit}"),
        };
        let scale = if self.spacing == Spacing::Linear { "" } else { " (logarithmic)" };
        format!("{}{unit}{scale}", self.title)
    }

    /// Returns the lowest and the highest value that the axis can show, or `None` without values.
    pub(super) fn range(&self, values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
        let values = values.chain(self.shown.iter().copied()).filter(|&value| self.holds(value));
        values.fold(None, |range, value| match range {
            None => Some((value, value)),
            Some((low, high)) => Some((f64::min(low, value), f64::max(high, value))),
        })
    }
}

/// Maps the values of an axis to coordinates in the picture.
#[derive(Clone, Debug)]
pub(super) struct Ruler {
    spacing: Spacing,
    low: f64,
    high: f64,
    start: f64,
    end: f64,
    pub(super) ticks: Vec<Tick>,
}

impl Ruler {
    pub(super) fn new(spacing: Spacing, ticks: Ticks, start: f64, end: f64) -> Self {
        Self { spacing, low: ticks.low, high: ticks.high, start, end, ticks: ticks.ticks }
    }

    /// Returns the coordinate of a value. A value outside the axis gets the coordinate of the
    /// nearest end of the axis.
    pub(super) fn at(&self, value: f64) -> f64 {
        let inside = value.clamp(self.low, self.high);
        let share = match self.spacing {
            Spacing::Linear => (inside - self.low) / (self.high - self.low),
            Spacing::Logarithmic => (inside / self.low).ln() / (self.high / self.low).ln(),
        };
        self.start + share * (self.end - self.start)
    }

    /// Returns the smallest and the largest coordinate.
    pub(super) fn ends(&self) -> (f64, f64) {
        (self.start.min(self.end), self.start.max(self.end))
    }

    /// Returns the ticks of a horizontal axis, and whether each has a label. A label that would
    /// touch the previous label is left out.
    pub(super) fn labels(&self, size: f64) -> Vec<(&Tick, bool)> {
        let (mut end, mut labels) = (f64::NEG_INFINITY, Vec::new());
        for tick in &self.ticks {
            let (middle, half) = (self.at(tick.value), width_of(&tick.label, size) / 2.0);
            let is_labelled = middle - half > end + 10.0;
            if is_labelled {
                end = middle + half;
            }
            labels.push((tick, is_labelled));
        }
        labels
    }

    /// Returns whether a value lies below the lowest value of the axis. The chart then marks that
    /// the bar or interval continues beyond the axis.
    pub(super) fn cuts(&self, value: f64) -> bool {
        value < self.low
    }

    /// Returns the coordinate of zero, where bars start. If the axis does not include zero, returns
    /// the coordinate of its low end.
    pub(super) fn base(&self) -> f64 {
        self.at(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ticks::Ends;
    use super::*;

    #[test]
    fn a_ruler_maps_ends_to_ends_and_keeps_what_lies_outside_at_the_edge() {
        let ruler = |spacing, low, high| {
            Ruler::new(spacing, Ticks::new(spacing, (low, high), 5, Ends::Exact), 100.0, 200.0)
        };
        let linear = ruler(Spacing::Linear, 0.0, 10.0);
        assert_eq!(
            [-1.0, 0.0, 5.0, 10.0, 11.0].map(|v| linear.at(v)),
            [100.0, 100.0, 150.0, 200.0, 200.0]
        );
        let logarithmic = ruler(Spacing::Logarithmic, 1.0, 100.0);
        assert!((logarithmic.at(10.0) - 150.0).abs() < 1e-9);
        assert_eq!(logarithmic.base(), 100.0);
    }
}
