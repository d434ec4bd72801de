//! Figures that foxy measures on real file systems and real proxies. Contains the list of these
//! figures, and their shared code.

mod d1;
mod figure_2;
mod run;
mod table_2;
mod table_3;
mod wpb;

use foxy_lab::simulation::figures::{Extent, Figure, Lab};
use foxy_lab::simulation::storage::operation::{OperationKind, Operations};
use foxy_lab::simulation::storage::runs::{RunError, Watch};
use foxy_report::figure::{Condition, FigureRow, Place, Verdict};
use std::fmt;
use std::path::PathBuf;

/// The scale of measured runs divided by the scale of simulated runs. Measured runs are smaller,
/// because they take real time.
const SHARE: f64 = 0.05;
const LARGEST: f64 = 0.05;

pub struct Context<'a> {
    pub lab: &'a Lab<'a>,
    pub folder: PathBuf,
    pub watch: &'a Watch,
}

impl Context<'_> {
    fn extent(&self) -> Extent {
        let extent = self.lab.extent();
        Extent { scale: (extent.scale * SHARE).min(LARGEST), ..extent.clone() }
    }
}

#[derive(Debug)]
pub struct MeasuredEntry {
    pub name: &'static str,
    pub title: &'static str,
    /// Whether the figure loads servers for a long time. Such a figure runs only if the user gives
    /// its name.
    pub loads_servers: bool,
    make: fn(&Context) -> Figure,
}

impl MeasuredEntry {
    pub fn make(&self, context: &Context) -> Figure {
        (self.make)(context)
    }
}

pub const MEASURED: &[MeasuredEntry] = &[
    MeasuredEntry {
        name: "000-d1",
        title: "schemes on real file systems in loop devices",
        loads_servers: false,
        make: d1::table_d1,
    },
    MeasuredEntry {
        name: "001-fig2-disk",
        title: "creating and deleting files on real file systems",
        loads_servers: false,
        make: figure_2::figure_2,
    },
    MeasuredEntry {
        name: "001-table2-disk",
        title: "URL-get operations a second on this machine's disk",
        loads_servers: false,
        make: table_2::table_2,
    },
    MeasuredEntry {
        name: "001-fig18",
        title: "Figs 18, 19 and 20: Table 3's load on foxy's schemes and on Squid",
        loads_servers: true,
        make: table_3::figures,
    },
    MeasuredEntry {
        name: "003-wpb",
        title: "the Wisconsin Proxy Benchmark on reference architectures",
        loads_servers: true,
        make: wpb::figures,
    },
];

#[derive(Clone, Debug, PartialEq, Eq)]
struct Missing {
    verdict: Verdict,
    why: String,
}

impl Missing {
    fn impossible(why: impl fmt::Display) -> Self {
        Self { verdict: Verdict::NotPossibleHere, why: why.to_string() }
    }

    fn row(&self, figure: &str, name: &str, unit: &str, scale: f64) -> FigureRow {
        let row = FigureRow::impossible(figure, name, unit, &self.why).at_scale(scale);
        FigureRow { verdict: self.verdict, ..row }
    }
}

impl From<RunError> for Missing {
    fn from(error: RunError) -> Self {
        let verdict = match error {
            RunError::FellShort(_) => Verdict::UnequalWork,
            RunError::TooLarge(_)
            | RunError::NoRoom { .. }
            | RunError::Open(_)
            | RunError::Drive(_)
            | RunError::Stopped => Verdict::NotPossibleHere,
        };
        Self { verdict, why: error.to_string() }
    }
}

fn row(figure: &str, name: &str, unit: &str, values: &[f64], scale: f64) -> FigureRow {
    FigureRow::of(figure, name, unit, values).from_place(Place::Measured).at_scale(scale)
}

/// The note about rates that were measured on a file system.
const CACHED: &str =
    "short runs; reads come from the page cache, and the time includes the sync of writes";

/// Returns a condition for verdicts (agreement with the paper): these operations write at least 1.5
/// times the cache's size.
fn fills(operations: &[&Operations]) -> Condition {
    let reached = |operations: &&Operations| {
        let writes = operations.list.iter().filter(|one| one.kind == OperationKind::Write);
        writes.map(|one| one.size).sum::<u64>() as f64 / operations.disk.max(1) as f64
    };
    Condition::Fills { reached: operations.iter().map(reached).fold(f64::INFINITY, f64::min) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_lab::simulation::storage::outcome::Shortfall;

    #[test]
    fn a_store_that_did_not_do_its_work_is_told_from_what_cannot_be_run() {
        let none = Shortfall {
            lost: 3,
            reads: 4,
            refused: 0,
            operations: 9,
            first_refusal: None,
            disk_full: true,
        };
        let missing = Missing::from(RunError::FellShort(none));
        let row = missing.row("000-d1", "ext2 noatime: coss over aufs", "times", 0.1);
        assert_eq!(
            (row.verdict, row.quoted, row.ours),
            (Verdict::UnequalWork, Some(326.3 / 168.5), None)
        );
        assert_eq!(row.note, "failed: the disk was full, reads that found nothing: 3 of 4");
        assert_eq!(Missing::from(RunError::Stopped), Missing::impossible("stopped"));
    }
}
