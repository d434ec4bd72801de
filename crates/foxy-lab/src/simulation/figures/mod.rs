//! The seeds' tables and figures, reproduced: each as rows against what was quoted, and as pictures
//! of the data. Adding one touches its function and the table here.

pub mod disk;
mod fill;
pub mod lab;
pub mod observe;
pub mod picture;
mod reads;
mod recovery;
pub mod spindles;
mod table_2;
pub mod trial;
mod webcosm;

pub use lab::{Extent, Lab};
pub use picture::Picture;

use foxy_report::figure::{FigureRow, Place, Verdict};
use std::fmt;

/// What a figure came to.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// Against what was quoted.
    pub rows: Vec<FigureRow>,
    /// To be drawn.
    pub pictures: Vec<Picture>,
}

/// One of the seeds' tables or figures.
#[derive(Debug)]
pub struct FigureEntry {
    /// Its name: the seed's number and its own.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    make: fn(&Lab) -> Figure,
}

impl FigureEntry {
    /// Runs what it takes.
    pub fn make(&self, lab: &Lab) -> Figure {
        let _of_others = lab.take_shortfalls();
        let mut figure = (self.make)(lab);
        for row in &mut figure.rows {
            row.scale = lab.extent().scale;
        }
        if let Some(first) = lab.take_shortfalls().first() {
            disown(&mut figure.rows, first);
        }
        figure
    }
}

/// Where stores did not do equal work, no row of a figure has a verdict; each says why.
fn disown(rows: &mut [FigureRow], why: &str) {
    for row in rows.iter_mut().filter(|row| row.place == Place::Simulated) {
        row.verdict = Verdict::UnequalWork;
        let rest = if row.note.is_empty() { String::new() } else { format!("; {}", row.note) };
        row.note = format!("{why}{rest}");
    }
}

/// Those on the model of the paper's disk, in their order.
pub const FIGURES: &[FigureEntry] = &[
    FigureEntry {
        name: "001-table1",
        title: "what two cache levels make of the trace",
        make: webcosm::table_1,
    },
    FigureEntry {
        name: "001-fig2",
        title: "creating and deleting files of 0 to 10 KB",
        make: disk::figure_2,
    },
    FigureEntry { name: "001-fig6", title: "file management overhead", make: webcosm::figure_6 },
    FigureEntry { name: "001-fig7", title: "BUDDY over its threshold", make: webcosm::figure_7 },
    FigureEntry {
        name: "001-fig8",
        title: "the disk head's way under BUDDY",
        make: disk::figure_8,
    },
    FigureEntry {
        name: "001-fig9",
        title: "the disk head's way under STREAM",
        make: disk::figure_9,
    },
    FigureEntry {
        name: "001-fig10",
        title: "BUDDY and STREAM over utilization",
        make: webcosm::figure_10,
    },
    FigureEntry {
        name: "001-fig11",
        title: "STREAM and PACKETIZER over utilization",
        make: webcosm::figure_11,
    },
    FigureEntry {
        name: "001-fig12",
        title: "LAZY-READS over utilization",
        make: webcosm::figure_12,
    },
    FigureEntry { name: "001-fig13", title: "the map of free space", make: disk::figure_13 },
    FigureEntry {
        name: "001-fig14",
        title: "the mean free chunk over time",
        make: disk::figure_14,
    },
    FigureEntry { name: "001-fig15", title: "distances between reads", make: disk::figure_15 },
    FigureEntry {
        name: "001-fig16",
        title: "LAZY-READS-LOC over utilization",
        make: webcosm::figure_16,
    },
    FigureEntry {
        name: "001-table2",
        title: "URL-get operations a second",
        make: table_2::table_2,
    },
    FigureEntry {
        name: "001-r44",
        title: "LAZY-READS as reads become more",
        make: reads::gain_over_reads,
    },
    FigureEntry {
        name: "001-recovery",
        title: "opening after a stop and after a crash",
        make: recovery::recovery,
    },
    FigureEntry { name: "000-fill", title: "throughput over the fill", make: fill::over_the_fill },
    FigureEntry {
        name: "000-d6",
        title: "one, two and three disks under aufs",
        make: spindles::table_d6,
    },
];

/// The figure of that name.
///
/// # Errors
/// When there is none: the message lists those there are.
pub fn find(name: &str) -> Result<&'static FigureEntry, UnknownFigure> {
    FIGURES.iter().find(|figure| figure.name == name).ok_or_else(|| UnknownFigure(name.into()))
}

/// A name that no figure has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFigure(pub String);

impl fmt::Display for UnknownFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = FIGURES.iter().map(|figure| figure.name).collect();
        write!(f, "there is no figure {:?}; use all or one of: {}", self.0, names.join(", "))
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
        disown(&mut rows, "stream: reads that found nothing: 3 of 4");
        assert_eq!(rows[0].verdict, Verdict::UnequalWork);
        assert_eq!(rows[0].note, "stream: reads that found nothing: 3 of 4; n");
        assert_eq!(rows[1].verdict, Verdict::NoQuote);
    }
}
