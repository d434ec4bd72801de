//! The data of charts, drawn as self-contained SVG by the modules under `chart/`. Equal charts give
//! equal text.

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

/// The source of the values of a chart (R5), shown under the title.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// The repeated table or figure of a seed, such as `001 Fig 10`, or empty.
    pub source: String,
    /// Source of the values.
    pub place: Place,
    /// Scale of sizes and durations; 1 is full scale.
    pub scale: f64,
    /// Whether `--quick` made the run do less than the full work.
    pub quick: bool,
    /// Number of seeds in each mean.
    pub seeds: u32,
}

impl Provenance {
    /// Values measured in a run, after the table or figure `source`.
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

/// A value with its 95 % interval; without an interval, both ends are the value.
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
    /// A value without an interval.
    pub const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// A mean with its interval.
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
    /// Measured here.
    Solid,
    /// Quoted from a seed, or a bound.
    Dashed,
}

/// A line with points and, where values have intervals, a band.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// Solid for measured lines, dashed for quoted ones.
    pub look: Look,
    /// x and value; drawn in order of x.
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
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

/// One bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Left edge.
    pub from: f64,
    /// Right edge.
    pub to: f64,
    /// Count or share of values in the bin.
    pub count: f64,
}

/// One series of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    /// Name in the legend.
    pub name: String,
    /// From left to right.
    pub bins: Vec<Bin>,
}

/// The data of a chart, by kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Lines with points and bands.
    Lines(Vec<Line>),
    /// Horizontal bars, with the groups down the left side.
    Bars {
        /// Names of the groups, from the top.
        groups: Vec<String>,
        /// Series, next to each other in each group.
        series: Vec<Bars>,
    },
    /// Clouds of dots, such as the positions of a disk head over time (R33).
    Dots(Vec<Dots>),
    /// Vertical bars on a continuous x (R30); several series share each bin.
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
    /// Vertical axis. Horizontal bars use only its title.
    pub y: Axis,
    /// The data.
    pub plot: Plot,
}

impl Chart {
    /// The chart as SVG. Drops points that are not finite, or not positive on a logarithmic axis;
    /// the subtitle counts them.
    pub fn svg(&self) -> String {
        draw::chart(self)
    }

    /// The chart of a distribution. `times` is the caption of the x axis, and [`shares_over_times`]
    /// makes the points.
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

/// The points of a distribution, from pairs of share and time in microseconds. Zero becomes one
/// microsecond, for the logarithmic axis.
pub fn shares_over_times(quantiles: impl IntoIterator<Item = (f64, f64)>) -> Vec<(f64, Value)> {
    quantiles.into_iter().map(|(share, time)| (time.max(1.0), Value::exact(share))).collect()
}
