//! Repeats a figure in appendix D of *Squid: The Definitive Guide* (paper 000 in docs/figures.md):
//! throughput while the cache fills. In the book, a storage scheme with one file per object slows
//! down, and a scheme that appends to one file keeps its speed. The book gives no numbers. Here,
//! only the modelled disk limits the speed, all requests miss, and each store evicts by itself.

use super::Figure;
use super::evidence::{disk_is_no_limit, fills};
use super::lab::Lab;
use super::picture::{Picture, steps};
use super::throughput::ratios;
use super::trial::{Eviction, Mix, Trial, TrialResult};
use foxy_report::chart::Line;
use foxy_report::figure::{Condition, FigureRow};
use std::ops::Range;
use std::sync::Arc;

const NAME: &str = "000-fill";
const RATE: &str = "URL-writes/s";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    Falls,
    Flat,
}

impl Trend {
    fn is_shown_by(self, late_over_early: f64) -> bool {
        match self {
            Self::Falls => late_over_early < 0.9,
            Self::Flat => (0.9..=1.1).contains(&late_over_early),
        }
    }
}

/// The storage schemes, and the trend that *Squid: The Definitive Guide* shows for each.
const SCHEMES: [(&str, Option<Trend>); 5] = [
    ("ufs", Some(Trend::Falls)),
    ("aufs", Some(Trend::Falls)),
    ("coss", Some(Trend::Flat)),
    ("stream-packetizer", None),
    ("webcosm", None),
];

/// The two spans of the run that the figure compares, in fills of the cache (a fill writes as many
/// bytes as the cache holds). `EARLY` lies before the first eviction. `LATE` is the span over which
/// *Squid: The Definitive Guide* takes its means.
const EARLY: Range<f64> = 0.25..0.75;
const LATE: Range<f64> = 1.5..2.0;

pub fn over_the_fill(lab: &Lab) -> Figure {
    let (mut rows, mut lines) = (Vec::new(), Vec::new());
    let (mix, eviction) = (Mix { repeats: 0.0, ..Mix::PAPER }, Eviction::ByItself);
    for (scheme, trend) in SCHEMES {
        let results = lab.over_seeds(Trial { mix, eviction, ..Trial::of(scheme, 1) });
        let within = |window: Range<f64>| -> Vec<f64> {
            results.iter().map(|result| rate(result, &window)).collect()
        };
        let (early, late) = (within(EARLY), within(LATE));
        let ratios = ratios(&late, &early);
        rows.push(FigureRow::of(NAME, &format!("{scheme}, 0.25 to 0.75 fills"), RATE, &early));
        rows.push(FigureRow::of(NAME, &format!("{scheme}, 1.5 to 2 fills"), RATE, &late));
        let row = FigureRow::of(NAME, &format!("{scheme}, late over early"), "times", &ratios);
        rows.push(match trend {
            Some(trend) => judged(row, trend, &ratios, &results),
            None => row.with_note(refused(&results)),
        });
        lines.push(relative(scheme, &results));
    }
    let titles = [
        "Throughput while the cache fills (in the paper, ufs and aufs fall and coss stays flat)",
        "bytes written over the size of the cache",
        "URL-writes/s, times those of the first quarter to three quarters",
    ];
    let pictures = vec![Picture::lines(titles, lines)];
    Figure { rows, pictures }
}

fn judged(row: FigureRow, trend: Trend, ratios: &[f64], results: &[Arc<TrialResult>]) -> FigureRow {
    let word = match trend {
        Trend::Falls => "falls: below 0.9",
        Trend::Flat => "flat: 0.9 to 1.1",
    };
    let refused = refused(results);
    let end = if refused.is_empty() { refused } else { format!("; {refused}") };
    row.judged()
        .shape(ratios.iter().all(|&ratio| trend.is_shown_by(ratio)))
        .under(fills(&[results]))
        .under(cause(trend, results))
        .with_note(format!("{word}{end}"))
}

/// Returns a condition for the verdict: the cause that *Squid: The Definitive Guide* names for this
/// trend must occur in the run.
fn cause(trend: Trend, results: &[Arc<TrialResult>]) -> Condition {
    match trend {
        Trend::Falls => {
            let least = results.iter().map(|result| result.unlinks).min().unwrap_or(0);
            Condition::Cause {
                named: "a full cache replaces old objects".into(),
                ours: format!("files deleted: {least} or more"),
                shown: least > 0,
            }
        }
        Trend::Flat => disk_is_no_limit("the disk system is not a bottleneck", results),
    }
}

/// Returns a note about writes that stores refused. For example, the scheme coss refuses
/// objects larger than its stripe, the unit that it writes at once.
fn refused(results: &[Arc<TrialResult>]) -> String {
    let (refused, asked) = results.iter().fold((0, 0), |(refused, asked), result| {
        (refused + result.outcome.refused, asked + result.outcome.operations)
    });
    if refused == 0 {
        String::new()
    } else {
        format!("{refused} of {asked} writes were refused, as too large")
    }
}

/// Returns the URL-writes (stored objects) per second between two numbers of cache fills. Returns
/// NaN if the run ends before the second number.
fn rate(result: &TrialResult, window: &Range<f64>) -> f64 {
    let at = |fill: f64| result.observed.progress.iter().find(|seen| seen.fills >= fill);
    let (Some(first), Some(last)) = (at(window.start), at(window.end)) else { return f64::NAN };
    (last.asked - first.asked) as f64 / (last.seconds - first.seconds)
}

/// The width of a step of the picture, in cache fills (a fill writes as many bytes as the cache
/// holds). Shorter steps would show pending writes as noise.
const STEP: f64 = 0.25;

/// Returns the rates while the cache fills, as multiples of the rate in the early part of the fill.
fn relative(scheme: &str, results: &[Arc<TrialResult>]) -> Line {
    let last = results
        .iter()
        .filter_map(|result| result.observed.progress.last())
        .map(|seen| seen.fills)
        .fold(f64::INFINITY, f64::min);
    let starts = (0..).map(|step| f64::from(step) * STEP).take_while(|from| from + STEP <= last);
    let at = |from: f64| -> Vec<f64> {
        let runs = results.iter();
        runs.map(|result| rate(result, &(from..from + STEP)) / rate(result, &EARLY)).collect()
    };
    steps(scheme, starts.map(|from| (from, at(from))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_late_rate_over_the_early_rate_shows_the_trend() {
        assert!(Trend::Falls.is_shown_by(0.5) && !Trend::Falls.is_shown_by(0.95));
        assert!(Trend::Flat.is_shown_by(0.95) && !Trend::Flat.is_shown_by(0.85));
        assert!(!Trend::Flat.is_shown_by(1.2) && !Trend::Flat.is_shown_by(f64::NAN));
    }
}
