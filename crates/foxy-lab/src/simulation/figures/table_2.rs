//! Table 2 of the WebCoSM paper (paper 001 in docs/figures.md): the best run of each technique.
//! Also the paper's statements about the whole table.

use super::Figure;
use super::evidence::{FILES, FREE_CHUNKS, PAGES_READ_FOR_WRITES, Results, SEEKS, fills};
use super::lab::Lab;
use super::throughput::{RATE, rates, ratio_row, ratios, sweep};
use super::trial::{Trial, TrialResult};
use foxy_report::figure::{Condition, FigureRow, judge_order};
use foxy_report::statistics::mean;
use foxy_schemes::UfsMapping;
use std::sync::Arc;

struct Technique {
    name: &'static str,
    results: Vec<Arc<TrialResult>>,
    note: &'static str,
}

fn best_of_all(lab: &Lab) -> [Technique; 8] {
    let best = |scheme| {
        let sweep = sweep(lab, Trial::of(scheme, 1)).into_iter().map(|point| point.results);
        sweep.max_by(|a, b| mean(&rates(a)).total_cmp(&mean(&rates(b)))).unwrap_or_default()
    };
    let single = |scheme| lab.over_seeds(Trial::of(scheme, 1));
    let technique = |name, results| Technique { name, results, note: "" };
    let note = "round-robin over 4,096 folders, as the paper says";
    [
        technique("SINGLE-DIRECTORY", single("single-directory")),
        Technique { note, ..technique("SQUID", single("ufs")) },
        technique("MULTIPLE-DIRS", single("multiple-dirs")),
        technique("BUDDY", single("buddy")),
        technique("STREAM", best("stream")),
        technique("STREAM-PACKETIZER", best("packetizer")),
        technique("LAZY-READS", best("lazy-reads")),
        technique("LAZY-READS-LOC", best("lazy-reads-loc")),
    ]
}

/// Returns a condition of the verdict (agreement with the paper) on a technique's rate. It demands
/// that the cause that the WebCoSM paper names for the rate occurred in the run. The condition
/// compares the technique with a technique without this cause.
fn cause(of: &Technique, all: &[Technique]) -> Condition {
    let other = |name| runs_of(all, name);
    let files = "file creation and deletion";
    match of.name {
        "BUDDY" => FILES.fewer(files, &of.results, other("SQUID")),
        "STREAM" => SEEKS.fewer("long seeks between files", &of.results, other("BUDDY")),
        "STREAM-PACKETIZER" => {
            PAGES_READ_FOR_WRITES.fewer("the small-write problem", &of.results, other("STREAM"))
        }
        "LAZY-READS" => {
            let named = "fewer movements of the head";
            SEEKS.fewer(named, &of.results, other("STREAM-PACKETIZER"))
        }
        "LAZY-READS-LOC" => {
            FREE_CHUNKS.fewer("less fragmented free space", &of.results, other("LAZY-READS"))
        }
        _ => FILES.fewer(files, other("BUDDY"), &of.results),
    }
}

pub fn table_2(lab: &Lab) -> Figure {
    let results = best_of_all(lab);
    let mut rows: Vec<FigureRow> = results
        .iter()
        .map(|technique| {
            FigureRow::of("001-table2", technique.name, RATE, &rates(&technique.results))
                .judged()
                .under(fills(&[&technique.results]))
                .under(cause(technique, &results))
                .with_note(technique.note)
        })
        .collect();
    judge_order(&mut rows);
    rows.push(consecutive(lab));
    rows.extend(account(&results));
    rows.push(cited(lab, &results));
    Figure { rows, pictures: Vec::new() }
}

/// Measures the technique SQUID with the way in which Squid has distributed files over directories
/// since 1998: Squid fills one directory after the other. The WebCoSM paper does not measure this.
fn consecutive(lab: &Lab) -> FigureRow {
    let trial = Trial { ufs_mapping: UfsMapping::Consecutive, ..Trial::of("ufs", 1) };
    FigureRow::of(
        "001-table2",
        "SQUID, 256 files in a row share a folder",
        RATE,
        &rates(&lab.over_seeds(trial)),
    )
    .with_note("Squid's mapping since 1998; the paper's is round-robin")
}

fn runs_of<'a>(techniques: &'a [Technique], name: &str) -> &'a [Arc<TrialResult>] {
    let found = techniques.iter().find(|technique| technique.name == name);
    found.map_or(&[], |technique| &technique.results)
}

/// Measures SQUIDMLA, the best technique that the WebCoSM paper cites from other work. The paper's
/// rate of SQUIDMLA is from another machine. So the row compares only the gain: the rate of
/// SQUIDMLA divided by the rate of SQUID.
fn cited(lab: &Lab, results: &[Technique]) -> FigureRow {
    let (squidmla, squid) = (lab.over_seeds(Trial::of("squidmla", 1)), runs_of(results, "SQUID"));
    let gains = ratios(&rates(&squidmla), &rates(squid));
    FigureRow::of("001-table2", "SQUIDMLA over SQUID", "times", &gains)
        .judged()
        .gain()
        .under(fills(&[&squidmla, squid]))
        .under(FILES.fewer("metadata reduction", &squidmla, squid))
        .with_note("three disks in the paper")
}

/// Makes rows about the whole table. They give the gains of the best technique and of BUDDY over
/// SQUID, and the share of the disk's speed that the best run reaches.
fn account(results: &[Technique]) -> [FigureRow; 3] {
    let of = |name: &str| runs_of(results, name);
    let (squid, loc) = (of("SQUID"), of("LAZY-READS-LOC"));
    let efficiency: Vec<f64> = loc
        .iter()
        .map(|result| result.url_bytes as f64 / result.outcome.took.as_secs_f64() / 4.7e6 * 100.0)
        .collect();
    let over_squid = |name: &str, best: &Results| {
        ratio_row("001-table2", name, "times", &rates(best), &rates(squid))
            .judged()
            .gain()
            .under(fills(&[best, squid]))
            .under(FILES.fewer("file creation and deletion", best, squid))
    };
    [
        over_squid("best over SQUID", loc),
        over_squid("BUDDY over SQUID", of("BUDDY")),
        FigureRow::of("001-table2", "best run, of the disk's 4.7 MB/s", "%", &efficiency)
            .judged()
            .under(fills(&[loc])),
    ]
}
