//! Reproduces the tables and figures of the papers in docs/figures.md by simulation. Each figure
//! has rows that compare results with the paper's values, and pictures of the data. A new figure
//! needs its function and an entry in [`FIGURES`].

pub mod disk;
mod evidence;
mod fill;
pub mod lab;
pub mod picture;
mod recovery;
pub mod spindles;
mod table_2;
mod throughput;
pub mod trial;

pub use lab::{Extent, Lab, RecordedTrace};
pub use picture::Picture;

use foxy_report::figure::{Condition, FigureRow, Place, Verdict};
use serde::{Deserialize, Serialize};
use std::fmt;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub rows: Vec<FigureRow>,
    pub pictures: Vec<Picture>,
}

#[derive(Debug)]
pub struct FigureEntry {
    /// The number of the paper and the name of the figure, as in `001-fig6`.
    pub name: &'static str,
    pub title: &'static str,
    make: fn(&Lab) -> Figure,
}

impl FigureEntry {
    /// Whether a recorded trace of real requests can replace the synthetic trace.
    pub fn takes_trace(&self) -> bool {
        self.name.starts_with("001-")
            && !["001-fig2", "001-r44", "001-recovery"].contains(&self.name)
    }

    pub fn make(&self, lab: &Lab) -> Figure {
        let _of_earlier_figures = lab.take_shortfalls();
        let mut figure = (self.make)(lab);
        for row in &mut figure.rows {
            row.scale = lab.extent().scale;
            if let Some(recorded) = lab.recorded() {
                row.trace.clone_from(&recorded.name);
                row.conditions.retain(|condition| *condition != Condition::Fitted);
            }
            if evidence::is_ratio(row) {
                row.conditions.push(Condition::TwoScales { other: None });
            }
        }
        if let Some(first) = lab.take_shortfalls().first() {
            withhold_verdicts(&mut figure.rows, first);
        }
        figure
    }
}

/// Removes the verdicts (agreement with the paper) from all simulated rows, because the stores did
/// unequal work. `why` is the reason that each row shows.
fn withhold_verdicts(rows: &mut [FigureRow], why: &str) {
    for row in rows.iter_mut().filter(|row| row.place == Place::Simulated) {
        row.verdict = Verdict::UnequalWork;
        let rest = if row.note.is_empty() { String::new() } else { format!("; {}", row.note) };
        row.note = format!("{why}{rest}");
    }
}

/// The simulated figures, in the order of the papers. They use the model of the paper's disk.
pub const FIGURES: &[FigureEntry] = &[
    entry("001-table1", "URL operations of the trace after two cache levels", throughput::table_1),
    entry("001-fig2", "creating and deleting files of 0 to 10 KB", disk::figure_2),
    entry("001-fig6", "file management overhead", throughput::figure_6),
    entry("001-fig7", "BUDDY over its threshold", throughput::figure_7),
    entry("001-fig8", "movements of the disk head under BUDDY", disk::figure_8),
    entry("001-fig9", "movements of the disk head under STREAM", disk::figure_9),
    entry("001-fig10", "BUDDY and STREAM over utilization", throughput::figure_10),
    entry("001-fig11", "STREAM and PACKETIZER over utilization", throughput::figure_11),
    entry("001-fig12", "LAZY-READS over utilization", throughput::figure_12),
    entry("001-fig13", "the map of free space", disk::figure_13),
    entry("001-fig14", "the mean free chunk over time", disk::figure_14),
    entry("001-fig15", "distances between reads", disk::figure_15),
    entry("001-fig16", "LAZY-READS-LOC over utilization", throughput::figure_16),
    entry("001-table2", "URL-get operations a second", table_2::table_2),
    entry("001-r44", "LAZY-READS as reads become more", throughput::gain_over_reads),
    entry("001-recovery", "opening after a stop and after a crash", recovery::recovery),
    entry("000-fill", "throughput over the fill", fill::over_the_fill),
    entry("000-d6", "schemes and disks of tables D-1 and D-6", spindles::table_d6),
];

const fn entry(name: &'static str, title: &'static str, make: fn(&Lab) -> Figure) -> FigureEntry {
    FigureEntry { name, title, make }
}

pub fn find(name: &str) -> Result<&'static FigureEntry, UnknownFigure> {
    FIGURES.iter().find(|figure| figure.name == name).ok_or_else(|| UnknownFigure(name.into()))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFigure(pub String);

impl fmt::Display for UnknownFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
        write!(f, "no figure has the name {:?}; use all or one of: {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownFigure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_unequal_work_have_no_verdict_and_say_why() {
        let row = |place| {
            FigureRow::of("001-table2", "BUDDY", "URL-get/s", &[133.0])
                .from_place(place)
                .with_note("n")
        };
        let mut rows = [row(Place::Simulated).against(133.0, 100.0..=150.0), row(Place::Derived)];
        withhold_verdicts(&mut rows, "stream: reads that found nothing: 3 of 4");
        assert_eq!(rows[0].verdict, Verdict::UnequalWork);
        assert_eq!(rows[0].note, "stream: reads that found nothing: 3 of 4; n");
        assert_eq!(rows[1].verdict, Verdict::NoQuote);
    }
}
