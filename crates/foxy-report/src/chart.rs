//! The data of charts. The modules in `chart/` draw a chart as self-contained SVG. Equal charts
//! give equal text.

mod axis;
mod draw;
pub mod map;
mod marks;
mod sheet;
mod svg;
mod ticks;

use crate::Summary;
use crate::figure::{Place, extent_text};
use crate::record::Setup;
pub use axis::{Axis, Spacing};
pub(crate) use svg::escape;

/// The origin of a chart's values, which the chart shows under its title.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// Paper and its table or figure that the run reproduces, such as `001 Fig 10`. Empty for other
    /// runs.
    pub source: String,
    /// Whether the values are measured, simulated, quoted or derived.
    pub place: Place,
    /// Scale of sizes and durations; 1 is full scale.
    pub scale: f64,
    /// Whether `--quick` made the run do less than the full work.
    pub quick: bool,
    /// Number of random seeds in each mean.
    pub seeds: u32,
}

impl Provenance {
    /// Returns the provenance of values that a run measured. `source` names the paper's table
    /// or figure that the run reproduces.
    pub fn of_run(source: &str, setup: &Setup) -> Self {
        let Setup { scale, quick, .. } = *setup;
        Self { source: source.into(), place: Place::Measured, scale, quick, seeds: 1 }
    }

    fn text(&self) -> String {
        let scale = match (self.scale == 1.0, self.quick) {
            (true, false) => "full scale".into(),
            (true, true) => "quick run".into(),
            (false, _) => format!("scale {}", extent_text(self.scale, self.quick)),
        };
        let seeds = if self.seeds == 1 { "1 seed".into() } else { format!("{} seeds", self.seeds) };
        let mut text = format!("{} · {scale} · {seeds}", self.place);
        if !self.source.is_empty() {
            text.push_str(&format!(" · after {}", self.source));
        }
        text
    }
}

/// A value with its 95 % interval. Without an interval, `low` and `high` equal the value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Value {
    /// Makes a value without an interval.
    pub const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Makes a value from a mean with its interval.
    pub const fn of(summary: &Summary) -> Self {
        Self { value: summary.mean, low: summary.low, high: summary.high }
    }

    fn has_interval(self) -> bool {
        self.low < self.high
    }
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A line of measured values.
    Solid,
    /// A line of values from a paper, or a theoretical bound.
    Dashed,
}

/// A line with points. Intervals of its values form a band.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Solid for measured lines, dashed for lines from a paper.
    pub look: Look,
    /// Pairs of x and value. The chart draws them in order of x.
    pub points: Vec<(f64, Value)>,
}

/// One series of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Name in the legend.
    pub name: String,
    /// One value per group; `None` leaves a gap.
    pub values: Vec<Option<Value>>,
}

/// A cloud of dots.
#[derive(Clone, Debug, PartialEq)]
pub struct Dots {
    /// Name in the legend.
    pub name: String,
    /// Pairs of x and y.
    pub points: Vec<(f64, f64)>,
}

/// One bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Left edge of the bin, in the unit of the x axis.
    pub from: f64,
    /// Right edge of the bin, in the unit of the x axis.
    pub to: f64,
    /// Number or share of the values in the bin.
    pub count: f64,
}

/// One series of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    /// Name in the legend.
    pub name: String,
    /// Bins from left to right.
    pub bins: Vec<Bin>,
}

/// The data of a chart, by kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Lines with points and bands.
    Lines(Vec<Line>),
    /// Horizontal bars. The names of the groups are at the left.
    Bars {
        /// Names of the groups, from top to bottom.
        groups: Vec<String>,
        /// Series, which lie next to each other in each group.
        series: Vec<Bars>,
    },
    /// Clouds of dots, such as the positions of a disk head over time.
    Dots(Vec<Dots>),
    /// Vertical bars on a continuous x axis. Several series share each bin.
    Histogram(Vec<Bins>),
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Title in one line.
    pub title: String,
    /// Source of the values.
    pub provenance: Provenance,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis. Charts of horizontal bars use only its title.
    pub y: Axis,
    /// Data of the chart.
    pub plot: Plot,
}

impl Chart {
    /// Returns the chart as SVG. Drops points with infinite or undefined values, and points at or
    /// below 0 on a logarithmic axis. The subtitle gives the number of dropped points.
    pub fn svg(&self) -> String {
        draw::chart(self)
    }

    /// Makes a chart of a distribution of times. `times` is the title of the x axis. Use
    /// [`shares_over_times`] for the points of `lines`.
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

/// Returns the points of a distribution. `quantiles` contains pairs: a share of the values, and
/// the time in microseconds that this share does not exceed. A time of 0 becomes one
/// microsecond, because the logarithmic axis cannot show 0.
pub fn shares_over_times(quantiles: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, Value)> {
    quantiles.into_iter().map(|(share, time)| (time.max(1.0), Value::exact(share))).collect()
}
