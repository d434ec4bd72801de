//! The data of charts. The modules in `chart/` draw a chart as self-contained SVG. Equal data give
//! byte for byte equal SVG.

mod axis;
mod bars;
mod certainty;
mod draw;
mod finding;
mod labels;
pub mod map;
mod marks;
mod names;
mod sheet;
mod svg;
mod ticks;

use crate::Summary;
pub use crate::direction::Better;
use crate::figure::{Place, extent_text};
use crate::record::Setup;
pub use axis::{Axis, Spacing};
use serde::{Deserialize, Serialize};
pub(crate) use svg::escape;

/// The origin of a chart's values, which the chart shows under its title.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// Paper and its table or figure that the run reproduces, such as `001 Fig 10`. For other runs,
    /// the name of the file with the records, or empty.
    pub source: String,
    /// Whether the values are measured, simulated, quoted or derived.
    pub place: Place,
    /// Scale of sizes and durations; 1 is full scale.
    pub scale: f64,
    /// Whether `--quick` made the run do less than the full work.
    pub quick: bool,
    /// Number of runs, or of seeds of a simulation, behind each value.
    pub seeds: u32,
}

impl Provenance {
    /// Returns the provenance of values that a run measured. `source` names the paper's table
    /// or figure that the run reproduces.
    pub fn of_run(source: &str, setup: &Setup) -> Self {
        let Setup { scale, quick, .. } = *setup;
        Self { source: source.into(), place: Place::Measured, scale, quick, seeds: 1 }
    }

    /// Returns the word for a single run: `seed` for a simulation, which a seed of random numbers
    /// determines, and else `run`.
    fn run(&self) -> &'static str {
        if self.place == Place::Measured { "run" } else { "seed" }
    }

    fn text(&self) -> String {
        let scale = match (self.scale == 1.0, self.quick) {
            (true, false) => "full scale".into(),
            (true, true) => "quick run".into(),
            (false, _) => format!("scale {}", extent_text(self.scale, self.quick)),
        };
        let mut text = format!("{} · {scale}", self.place);
        if !self.source.is_empty() {
            let is_paper = self.source.starts_with(|first: char| first.is_ascii_digit());
            let word = if is_paper { "after" } else { "records" };
            text.push_str(&format!(" · {word} {}", self.source));
        }
        text
    }
}

/// A value with an interval around it, such as a confidence interval. For a value without an
/// interval, `low` and `high` equal `value`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The measured value, such as a mean.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Values of the single runs, which `value` summarises. The chart shows them as small dots.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<f64>,
}

impl Value {
    /// Makes a value without an interval.
    pub const fn exact(value: f64) -> Self {
        Self::between(value, value, value)
    }

    /// Makes a value with the ends of its interval.
    pub const fn between(value: f64, low: f64, high: f64) -> Self {
        Self { value, low, high, runs: Vec::new() }
    }

    /// Makes a value from the values of several runs: their median, with the lowest and the highest
    /// value as interval. Ignores values that are not finite. Returns `None` if no value remains.
    pub fn of_runs(runs: &[f64]) -> Option<Self> {
        let runs: Vec<f64> = runs.iter().copied().filter(|value| value.is_finite()).collect();
        let median = Summary::of(&runs)?.median;
        let low = runs.iter().copied().fold(f64::INFINITY, f64::min);
        let high = runs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let runs = if runs.len() > 1 { runs } else { Vec::new() };
        Some(Self { value: median, low, high, runs })
    }

    fn has_interval(&self) -> bool {
        self.low < self.high
    }

    /// Returns whether the interval goes from the lowest to the highest run.
    fn is_range_of_runs(&self) -> bool {
        Self::of_runs(&self.runs).is_some_and(|of| (of.low, of.high) == (self.low, self.high))
    }
}

/// The meaning of the values and intervals in a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// A mean with its 95 % interval.
    #[default]
    Confidence,
    /// The mean of all runs, with the lowest and the highest run.
    Range,
    /// The median of all runs. A dot shows the value of each run.
    Runs,
}

/// The style in which a chart draws a series (a named line or row of bars).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Look {
    /// A line of measured values.
    Solid,
    /// A line of a control run, or a theoretical bound.
    Dashed,
    /// A staircase: each value continues horizontally to the next point.
    Steps,
    /// Values from a paper. All series of such values have one colour, which no other series has.
    Quoted,
}

/// A line through points. The intervals of the points form a shaded band.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Style of the line.
    pub look: Look,
    /// Pairs of x and value. The chart draws them in order of x.
    pub points: Vec<(f64, Value)>,
}

/// One series of bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Name in the legend.
    pub name: String,
    /// `Look::Quoted` for values from a paper, otherwise `Look::Solid`.
    pub look: Look,
    /// One value per group; `None` leaves a gap.
    pub values: Vec<Option<Value>>,
}

/// A cloud of dots.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dots {
    /// Name in the legend.
    pub name: String,
    /// Pairs of x and y.
    pub points: Vec<(f64, f64)>,
}

/// The data of a chart, by kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plot {
    /// Lines with points and bands.
    Lines(Vec<Line>),
    /// Horizontal bars. If the x axis is logarithmic, dots take the place of the bars.
    Bars {
        /// Names of the groups, from top to bottom. A second line is a remark.
        groups: Vec<String>,
        /// The series. In each group, their bars are next to each other.
        series: Vec<Bars>,
    },
    /// Clouds of dots, such as the positions of a disk head over time.
    Dots(Vec<Dots>),
}

/// A chart of measured values, which pages and terminals can draw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chart {
    /// Title of the chart, in one line.
    pub title: String,
    /// Whether higher or lower values are better.
    #[serde(default, skip_serializing_if = "Better::is_unstated")]
    pub better: Better,
    /// Source of the values.
    pub provenance: Provenance,
    /// Meaning of the values and their intervals.
    #[serde(default)]
    pub spread: Spread,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis. Charts of horizontal bars use only its title.
    pub y: Axis,
    /// Data of the chart.
    pub plot: Plot,
}

impl Chart {
    /// Title of the vertical axis of a distribution.
    const SHARE: &'static str = "share at most that";

    /// Returns the chart as SVG. Leaves out points with infinite or undefined values, and on a
    /// logarithmic axis points at or below 0. The subtitle gives the number of these points.
    pub fn svg(&self) -> String {
        draw::chart(self)
    }

    /// Makes a chart of distributions of times. A line shows, for each time, the share of the
    /// values up to this time. `times` is the title of the x axis. [`shares_over_times`] makes the
    /// points of a line.
    pub fn distribution(
        title: String,
        times: &str,
        provenance: Provenance,
        lines: Vec<Line>,
    ) -> Self {
        let (unit, factor) = unit_of(&lines);
        let scaled = lines.into_iter().map(|line| Line {
            points: line.points.into_iter().map(|(time, share)| (time / factor, share)).collect(),
            ..line
        });
        let lines = scaled.collect();
        Self {
            title,
            better: Better::FurtherLeft,
            provenance,
            spread: Spread::default(),
            x: Axis::logarithmic(times, unit),
            y: Axis::linear(Self::SHARE, "").showing(0.0).showing(1.0),
            plot: Plot::Lines(lines),
        }
    }
}

/// Chooses a unit of time for distributions in which most lines have medians of few digits. Returns
/// the name of the unit, and its length in microseconds.
fn unit_of(lines: &[Line]) -> (&'static str, f64) {
    let median = |line: &Line| {
        let found = line.points.iter().find(|(_, share)| share.value >= 0.5);
        found.map(|(time, _)| *time)
    };
    let mut medians: Vec<f64> = lines.iter().filter_map(median).collect();
    medians.sort_by(f64::total_cmp);
    match medians.get(medians.len() / 2) {
        Some(&time) if time >= 1e6 => ("s", 1e6),
        Some(&time) if time >= 1e4 => ("ms", 1e3),
        _ => ("µs", 1.0),
    }
}

/// Returns the points of a distribution. `quantiles` contains pairs: a share of the values, and
/// the time in microseconds that this share does not exceed. A time of 0 becomes one
/// microsecond, because the logarithmic axis cannot show 0.
pub fn shares_over_times(quantiles: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, Value)> {
    quantiles.into_iter().map(|(share, time)| (time.max(1.0), Value::exact(share))).collect()
}
