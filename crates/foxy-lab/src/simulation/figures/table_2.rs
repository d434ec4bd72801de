//! Table 2 of seed 001: the best run of each technique, and the requirements R3, R34 and R35 on the
//! whole table.

use super::Figure;
use super::lab::Lab;
use super::picture::Picture;
use super::throughput::{RATE, rates, ratio_row, ratios, sweep};
use super::trial::{Trial, TrialResult};
use foxy_report::figure::{FigureRow, judge_order, within};
use foxy_report::statistics::mean;
use foxy_schemes::UfsMapping;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The largest rate that the paper's disk allows, in client requests (URL-gets) per second (R3).
const CEILING: f64 = 695.0;

struct Technique {
    name: &'static str,
    quoted: f64,
    range: RangeInclusive<f64>,
    results: Vec<Arc<TrialResult>>,
    note: String,
}

fn best_of_all(lab: &Lab) -> [Technique; 8] {
    let best = |scheme| {
        let sweep = sweep(lab, Trial::of(scheme, 1)).into_iter().map(|point| point.results);
        sweep.max_by(|a, b| mean(&rates(a)).total_cmp(&mean(&rates(b)))).unwrap_or_default()
    };
    let single = |scheme| lab.over_seeds(Trial::of(scheme, 1));
    let quoted = |name, quoted, results, note: &str| {
        let range = within(quoted);
        Technique { name, quoted, range, results, note: note.into() }
    };
    let middle = |name, quoted, range: RangeInclusive<f64>, results| {
        let (low, high) = (range.start(), range.end());
        let note = format!("quoted: the middle of {low} to {high}, which other editions give");
        Technique { name, quoted, range, results, note }
    };
    let round_robin = "round-robin over 4,096 folders, as the paper says";
    [
        middle("SINGLE-DIRECTORY", 14.5, 12.0..=17.0, single("single-directory")),
        quoted("SQUID", 27.0, single("ufs"), round_robin),
        middle("MULTIPLE-DIRS", 20.0, 12.0..=28.0, single("multiple-dirs")),
        quoted("BUDDY", 133.0, single("buddy"), ""),
        middle("STREAM", 308.0, 266.0..=350.0, best("stream")),
        quoted("STREAM-PACKETIZER", 350.0, best("packetizer"), ""),
        quoted("LAZY-READS", 385.0, best("lazy-reads"), ""),
        quoted("LAZY-READS-LOC", 510.0, best("lazy-reads-loc"), "495 to 524 stated or implied"),
    ]
}

pub fn table_2(lab: &Lab) -> Figure {
    let results = best_of_all(lab);
    let mut rows: Vec<FigureRow> = results
        .iter()
        .map(|technique| {
            FigureRow::of("001-table2", technique.name, RATE, &rates(&technique.results))
                .against(technique.quoted, technique.range.clone())
                .with_note(technique.note.clone())
        })
        .collect();
    judge_order(&mut rows);
    let bars = rows.iter().map(|row| (row.row.clone(), Some(row.ours.unwrap_or(0.0))));
    let titles = ["Table 2: URL-get operations a second", "technique", RATE];
    let pictures = vec![Picture::bars(titles, bars.collect())];
    rows.push(consecutive(lab));
    rows.extend(account(&results));
    rows.push(cited(lab, &results));
    Figure { rows, pictures }
}

/// Measures SQUID with the mapping that Squid has used since 1998. The paper does not run this
/// mapping (R18).
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

/// Measures the best of the cited techniques (R37). The seed measured it on another machine, so
/// only its gain is compared.
fn cited(lab: &Lab, results: &[Technique]) -> FigureRow {
    let squidmla = rates(&lab.over_seeds(Trial::of("squidmla", 1)));
    let gains = ratios(&squidmla, &rates(runs_of(results, "SQUID")));
    FigureRow::of("001-table2", "SQUIDMLA over SQUID", "times", &gains)
        .against(3.0, within(3.0))
        .gain()
        .with_note("section 5: 150 against 50 on three disks")
}

/// Checks the requirements R3, R34 and R35 on the whole table.
fn account(results: &[Technique]) -> [FigureRow; 4] {
    let of = |name: &str| runs_of(results, name);
    let (squid, loc) = (of("SQUID"), of("LAZY-READS-LOC"));
    let efficiency: Vec<f64> = loc
        .iter()
        .map(|result| result.url_bytes as f64 / result.outcome.took.as_secs_f64() / 4.7e6 * 100.0)
        .collect();
    let highest =
        results.iter().flat_map(|technique| rates(&technique.results)).fold(0.0, f64::max);
    [
        ratio_row("001-table2", "best over SQUID", "times", &rates(loc), &rates(squid))
            .against(18.0, 12.0..=25.0)
            .gain(),
        ratio_row("001-table2", "BUDDY over SQUID", "times", &rates(of("BUDDY")), &rates(squid))
            .against(4.9, 3.5..=7.0)
            .gain(),
        FigureRow::of("001-table2", "best run, of the disk's 4.7 MB/s", "%", &efficiency)
            .against(78.0, 68.0..=88.0),
        FigureRow::of("001-table2", "highest of all runs", RATE, &[highest])
            .against(CEILING, 0.0..=CEILING)
            .with_note("the disk's ceiling: nothing may be above it"),
    ]
}
