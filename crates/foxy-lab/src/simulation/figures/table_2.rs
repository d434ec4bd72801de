//! Table 2 of seed 001: the best of each technique, and what R3, R34 and R35 ask of the table as a
//! whole.

use super::Figure;
use super::lab::Lab;
use super::picture::{Picture, Series, Style};
use super::trial::{Trial, TrialResult};
use super::webcosm::{RATE, rates, ratios, sweep};
use foxy_report::figure::{FigureRow, judge_order, within};
use foxy_report::statistics::mean;
use foxy_schemes::UfsMapping;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The ceiling of the paper's disk in URL-gets a second (R3).
const CEILING: f64 = 695.0;

/// Name, quoted value, the range it may lie in, and the runs.
type Techniques = Vec<(&'static str, f64, RangeInclusive<f64>, Vec<Arc<TrialResult>>)>;

/// The best runs of each technique, with what is quoted of it.
fn best_of_all(lab: &Lab) -> Techniques {
    let best = |scheme| {
        let sweep = sweep(lab, Trial::of(scheme, 1)).into_iter().map(|(_, results)| results);
        sweep.max_by(|a, b| mean(&rates(a)).total_cmp(&mean(&rates(b)))).unwrap_or_default()
    };
    let one = |scheme| lab.over_seeds(Trial::of(scheme, 1));
    vec![
        ("SINGLE-DIRECTORY", 14.5, 12.0..=17.0, one("single-directory")),
        ("SQUID", 27.0, within(27.0), one("ufs")),
        ("MULTIPLE-DIRS", 20.0, 12.0..=28.0, one("multiple-dirs")),
        ("BUDDY", 133.0, within(133.0), one("buddy")),
        ("STREAM", 308.0, 266.0..=350.0, best("stream")),
        ("STREAM-PACKETIZER", 350.0, within(350.0), best("packetizer")),
        ("LAZY-READS", 385.0, within(385.0), best("lazy-reads")),
        ("LAZY-READS-LOC", 510.0, within(510.0), best("lazy-reads-loc")),
    ]
}

/// Table 2: the best of each technique, and the account of it.
pub fn table_2(lab: &Lab) -> Figure {
    let results = best_of_all(lab);
    let mut rows: Vec<FigureRow> = results
        .iter()
        .map(|(name, quoted, range, results)| {
            let row = FigureRow::of("001-table2", name, RATE, &rates(results));
            row.against(*quoted, range.clone()).with_note(match *name {
                "SINGLE-DIRECTORY" => "quoted: the middle of 12 to 17, which other editions give",
                "MULTIPLE-DIRS" => "quoted: the middle of 12 to 28, which other editions give",
                "STREAM" => "quoted: the middle of 266 to 350, which other editions give",
                "SQUID" => "round-robin over 4,096 folders, as the paper says",
                "LAZY-READS-LOC" => "495 to 524 stated or implied",
                _ => "",
            })
        })
        .collect();
    judge_order(&mut rows);
    let bars = rows.iter().zip(0..).map(|(row, place)| Series {
        name: row.row.clone(),
        points: vec![(f64::from(place), row.ours.unwrap_or(0.0))],
    });
    let pictures = vec![Picture::Plot {
        title: "Table 2: URL-get operations a second".into(),
        x: "technique".into(),
        y: RATE.into(),
        style: Style::Bars,
        series: bars.collect(),
    }];
    rows.push(consecutive(lab));
    rows.extend(account(&results));
    rows.push(cited(lab, &results));
    Figure { rows, pictures }
}

/// SQUID with the mapping that Squid has had since 1998, which the paper does not run (R18).
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

/// The runs of a technique of the table.
fn runs_of(results: &Techniques, name: &str) -> Vec<Arc<TrialResult>> {
    let found = results.iter().find(|(other, ..)| *other == name);
    found.map(|(.., results)| results.clone()).unwrap_or_default()
}

/// The best of the work cited (R37), on another machine in the seed, so only its gain is to be
/// compared.
fn cited(lab: &Lab, results: &Techniques) -> FigureRow {
    let squidmla = rates(&lab.over_seeds(Trial::of("squidmla", 1)));
    let gains = ratios(&squidmla, &rates(&runs_of(results, "SQUID")));
    FigureRow::of("001-table2", "SQUIDMLA over SQUID", "times", &gains)
        .against(3.0, within(3.0))
        .gain()
        .with_note("section 5: 150 against 50 on three disks")
}

/// What R3, R34 and R35 ask of the table as a whole.
fn account(results: &Techniques) -> [FigureRow; 4] {
    let of = |name: &str| runs_of(results, name);
    let (squid, loc) = (of("SQUID"), of("LAZY-READS-LOC"));
    let efficiency: Vec<f64> = loc
        .iter()
        .map(|result| result.url_bytes as f64 / result.outcome.took.as_secs_f64() / 4.7e6 * 100.0)
        .collect();
    let highest = results.iter().flat_map(|(.., results)| rates(results)).fold(0.0, f64::max);
    [
        FigureRow::of(
            "001-table2",
            "best over SQUID",
            "times",
            &ratios(&rates(&loc), &rates(&squid)),
        )
        .against(18.0, 12.0..=25.0)
        .gain(),
        FigureRow::of(
            "001-table2",
            "BUDDY over SQUID",
            "times",
            &ratios(&rates(&of("BUDDY")), &rates(&squid)),
        )
        .against(4.9, 3.5..=7.0)
        .gain(),
        FigureRow::of("001-table2", "best run, of the disk's 4.7 MB/s", "%", &efficiency)
            .against(78.0, 68.0..=88.0),
        FigureRow::of("001-table2", "highest of all runs", RATE, &[highest])
            .against(CEILING, 0.0..=CEILING)
            .with_note("the disk's ceiling: nothing may be above it"),
    ]
}
