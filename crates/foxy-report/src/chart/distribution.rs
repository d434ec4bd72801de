//! The chart of a distribution of times: which share of all took at most how long.

use super::{Axis, Chart, Line, Plot, Provenance, Value};

impl Chart {
    /// Shares over times, which `times` names; the points of the lines are made by
    /// [`shares_over_times`].
    pub fn distribution(
        title: String,
        times: &str,
        provenance: Provenance,
        lines: Vec<Line>,
    ) -> Self {
        Self {
            title,
            provenance,
            x: Axis::logarithmic(times, "µs"),
            y: Axis::linear("share at most that", "").showing(0.0).showing(1.0),
            plot: Plot::Lines(lines),
        }
    }
}

/// The points of a distribution: shares, each with the time in microseconds that so many took at
/// most. A time of zero, which no logarithmic axis has, stands at one microsecond.
pub fn shares_over_times(quantiles: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, Value)> {
    quantiles.into_iter().map(|(share, time)| (time.max(1.0), Value::exact(share))).collect()
}
