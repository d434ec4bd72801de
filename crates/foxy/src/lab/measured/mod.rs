//! The figures that are measured on real file systems, beside those on the model: the table of them, and what they share.

mod d1;
mod figure_2;
mod run;
mod table_2;

use foxy_lab::figures::{Extent, Figure, Lab};
use foxy_lab::sim::runs::Watch;
use foxy_report::figure::{FigureRow, Place};
use std::path::PathBuf;

/// By what factor a measured run is smaller than a modelled one: its time is not virtual.
const SHARE: f64 = 0.05;
/// The largest scale of a measured run.
const LARGEST: f64 = 0.05;

/// What a measured figure is made with.
pub struct Context<'a> {
    /// The model, at the scale that was asked for.
    pub lab: &'a Lab<'a>,
    /// Where folders and images go.
    pub folder: PathBuf,
    /// Stops it.
    pub watch: &'a Watch,
}

impl Context<'_> {
    /// What measured runs of a whole trace extend to.
    fn extent(&self) -> Extent {
        let extent = self.lab.extent();
        Extent { scale: (extent.scale * SHARE).min(LARGEST), ..extent.clone() }
    }
}

/// A figure that is measured.
#[derive(Debug)]
pub struct MeasuredEntry {
    /// Its name: the seed's number and its own.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    make: fn(&Context) -> Figure,
}

impl MeasuredEntry {
    /// Runs what it takes.
    pub fn make(&self, context: &Context) -> Figure {
        (self.make)(context)
    }
}

/// All of them, in their order.
pub const MEASURED: &[MeasuredEntry] = &[
    MeasuredEntry {
        name: "000-d1",
        title: "schemes on real file systems in loop devices",
        make: d1::table_d1,
    },
    MeasuredEntry {
        name: "001-fig2-disk",
        title: "creating and deleting files on real file systems",
        make: figure_2::figure_2,
    },
    MeasuredEntry {
        name: "001-table2-disk",
        title: "URL-get operations a second on this machine's disk",
        make: table_2::table_2,
    },
];

/// A row of measured values.
fn row(figure: &str, name: &str, unit: &str, values: &[f64], scale: f64) -> FigureRow {
    FigureRow::of(figure, name, unit, values).from_place(Place::Measured).at_scale(scale)
}
