//! Throughput over the fill, as seed 000's appendix D plots it for each scheme (R78): schemes of a
//! file each start high and fall, those that append to one file stay as they began. On the model,
//! so that the disk is the limit, and with misses alone, so that what is asked does not change over
//! the fill. Each store evicts by itself. The seed gives no numbers.

use super::Figure;
use super::lab::Lab;
use super::observe::Progress;
use super::picture::{Picture, Series, Style};
use super::trial::{Eviction, Mix, Trial, TrialResult};
use foxy_report::figure::FigureRow;
use foxy_report::statistics::mean;
use std::sync::Arc;

const NAME: &str = "000-fill";
const RATE: &str = "URL-writes/s";

/// How a scheme's throughput goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Falls,
    Flat,
}

impl Course {
    /// Whether that is what the rate late in a run over that at its beginning shows.
    fn is_shown_by(self, late_over_early: f64) -> bool {
        match self {
            Self::Falls => late_over_early < 0.9,
            Self::Flat => (0.9..=1.1).contains(&late_over_early),
        }
    }
}

/// A scheme, how many URL-writes it has under way, and what is expected of it.
const SCHEMES: [(&str, usize, Course); 5] = [
    ("ufs", 1, Course::Falls),
    ("aufs", 16, Course::Falls),
    ("coss", 1, Course::Flat),
    ("stream-packetizer", 1, Course::Flat),
    ("webcosm", 1, Course::Flat),
];

/// The windows that are compared, in fills of the cache: while nothing is evicted yet, and where
/// the seed takes its figures (R77).
const EARLY: (f64, f64) = (0.25, 0.75);
const LATE: (f64, f64) = (1.5, 2.0);

/// The course of every scheme, as rows and as one picture.
pub fn over_the_fill(lab: &Lab) -> Figure {
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    let (mix, eviction) = (Mix { repeats: 0.0, ..Mix::PAPER }, Eviction::ByItself);
    for (scheme, writes_at_once, course) in SCHEMES {
        let results =
            lab.over_seeds(Trial { writes_at_once, mix, eviction, ..Trial::of(scheme, 1) });
        let within =
            |window| -> Vec<f64> { results.iter().map(|result| rate(result, window)).collect() };
        let (early, late) = (within(EARLY), within(LATE));
        let ratios: Vec<f64> = late.iter().zip(&early).map(|(late, early)| late / early).collect();
        let shown = ratios.iter().all(|&ratio| course.is_shown_by(ratio));
        let word = match course {
            Course::Falls => "falls: below 0.9",
            Course::Flat => "flat: 0.9 to 1.1",
        };
        rows.push(FigureRow::of(NAME, &format!("{scheme}, 0.25 to 0.75 fills"), RATE, &early));
        rows.push(FigureRow::of(NAME, &format!("{scheme}, 1.5 to 2 fills"), RATE, &late));
        rows.push(
            FigureRow::of(NAME, &format!("{scheme}, late over early"), "times", &ratios)
                .shape(shown)
                .with_note(format!("{word}; no number is quoted{}", refused(&results))),
        );
        series.extend(results.first().map(|result| course_of(scheme, result)));
    }
    let pictures = vec![Picture::Plot {
        title: "Throughput over the fill, on the model".into(),
        x: "bytes written over the size of the cache".into(),
        y: RATE.into(),
        style: Style::Lines,
        series,
    }];
    Figure { rows, pictures }
}

/// What a scheme did not take: objects that are larger than its stripes.
fn refused(results: &[Arc<TrialResult>]) -> String {
    let (refused, asked) = results.iter().fold((0, 0), |(refused, asked), result| {
        (refused + result.outcome.refused, asked + result.outcome.operations)
    });
    if refused == 0 {
        String::new()
    } else {
        format!("; {refused} of {asked} writes were refused, as too large")
    }
}

/// URL-writes a second between two fills; not a number where the run does not go so far.
fn rate(result: &TrialResult, (from, to): (f64, f64)) -> f64 {
    let at = |fill: f64| result.observed.progress.iter().find(|seen| seen.fills >= fill);
    match (at(from), at(to)) {
        (Some(first), Some(last)) => between(first, last),
        _ => f64::NAN,
    }
}

fn between(first: &Progress, last: &Progress) -> f64 {
    (last.asked - first.asked) as f64 / (last.seconds - first.seconds)
}

/// A tenth of a fill a point, so that what is waiting to be written does not show as noise.
fn course_of(scheme: &str, result: &TrialResult) -> Series {
    let tenths = (0..).map(|tenth| f64::from(tenth) / 10.0);
    let last = result.observed.progress.last().map_or(0.0, |seen| seen.fills);
    let points = tenths
        .take_while(|from| from + 0.1 <= last)
        .map(|from| (mean(&[from, from + 0.1]), rate(result, (from, from + 0.1))))
        .filter(|(_, rate)| rate.is_finite());
    Series { name: scheme.into(), points: points.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_course_is_told_by_the_rate_late_over_that_at_the_beginning() {
        assert!(Course::Falls.is_shown_by(0.5) && !Course::Falls.is_shown_by(0.95));
        assert!(Course::Flat.is_shown_by(0.95) && !Course::Flat.is_shown_by(0.85));
        assert!(!Course::Flat.is_shown_by(1.2) && !Course::Flat.is_shown_by(f64::NAN));
    }
}
