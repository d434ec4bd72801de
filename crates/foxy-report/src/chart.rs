//! Charts as self-contained SVG: what to draw. How it is drawn stands in the files under `chart/`.
//! Nothing here reads a file or a clock; the same chart gives the same text, byte for byte.

mod axis;
mod distribution;
mod draw;
pub mod map;
mod marks;
mod sheet;
mod style;
mod svg;
pub mod ticks;
mod usable;

use crate::Summary;
use crate::figure::{Place, extent_text};
use crate::record::Setup;
pub use axis::{Axis, Spacing};
pub use distribution::shares_over_times;
pub(crate) use svg::escape;

/// Where the values of a chart come from (R5); it stands under the title.
#[derive(Clone, Debug, PartialEq)]
pub struct Provenance {
    /// The table or figure of a seed that it repeats, such as `001 Fig 10`; empty when there is
    /// none.
    pub source: String,
    /// Where the values come from.
    pub place: Place,
    /// By what factor sizes and durations were scaled; 1 is full scale.
    pub scale: f64,
    /// Whether `--quick` made the run do less than the full work.
    pub quick: bool,
    /// How many seeds each value is the mean of.
    pub seeds: u32,
}

impl Provenance {
    /// Values that a run of this setup measured, after the table or figure `source`.
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

/// A value with its 95 % interval; the ends are the value itself when there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The value.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of it.
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

/// How a line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Found here.
    Solid,
    /// Quoted from a seed, or a bound.
    Dashed,
}

/// A line with points and, where values have intervals, a band.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Solid for what was found, dashed for what is quoted.
    pub look: Look,
    /// x and value; drawn in order of x.
    pub points: Vec<(f64, Value)>,
}

/// One series of bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// Its name in the legend.
    pub name: String,
    /// One a group; `None` leaves the place empty.
    pub values: Vec<Option<Value>>,
}

/// A cloud of dots.
#[derive(Clone, Debug, PartialEq)]
pub struct Dots {
    /// Its name in the legend.
    pub name: String,
    /// x and y.
    pub points: Vec<(f64, f64)>,
}

/// One bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// Its left edge.
    pub from: f64,
    /// Its right edge.
    pub to: f64,
    /// How many, or which share, lie in it.
    pub count: f64,
}

/// One series of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Bins {
    /// Its name in the legend.
    pub name: String,
    /// From left to right.
    pub bins: Vec<Bin>,
}

/// What is drawn, and how.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Lines with points and bands.
    Lines(Vec<Line>),
    /// Lying bars: the groups stand down the left side, the values run along x.
    Bars {
        /// The groups' names, from the top.
        groups: Vec<String>,
        /// Beside each other within each group.
        series: Vec<Bars>,
    },
    /// Clouds of dots, such as a disk head's place over time (R33).
    Dots(Vec<Dots>),
    /// Standing bars on a continuous x (R30); several series share each bin.
    Histogram(Vec<Bins>),
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows, in one line.
    pub title: String,
    /// Where its values come from.
    pub provenance: Provenance,
    /// Left to right.
    pub x: Axis,
    /// Bottom to top. Of lying bars only its title is used.
    pub y: Axis,
    /// The data.
    pub plot: Plot,
}

impl Chart {
    /// The chart as SVG. Points that are not finite, or not positive on a logarithmic axis, are
    /// left out; the subtitle says how many.
    pub fn svg(&self) -> String {
        draw::chart(self)
    }
}
