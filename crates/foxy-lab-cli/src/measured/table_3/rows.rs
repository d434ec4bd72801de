//! The rows and charts of Figures 18, 19 and 20, next to the values of the WebCoSM paper (paper 001
//! in docs/figures.md).

use super::{FOXY, MeasuredRates, RatePoint, SQUID};
use foxy_lab::simulation::figures::picture::{
    Picture, bars, changed, line, paper, quoted, quoted_bars,
};
use foxy_report::chart::{Line, Value};
use foxy_report::figure::quotes::in_chart;
use foxy_report::figure::{Condition, FigureRow, Place};
use std::collections::BTreeSet;

const THROUGHPUT: &str = "001-fig18";
const RESPONSE: &str = "001-fig19";
const BANDWIDTH: &str = "001-fig20";
const HIGHEST: f64 = 340.0;
const COMPARED: f64 = 110.0;
/// The share of the WebCoSM paper's requests that miss (Table 3).
const MISSES: f64 = 0.6;
/// The cause that the WebCoSM paper names for Squid's limit.
const OVERLOAD: &str = "the overloaded disk makes Squid forward hits";

/// Returns a condition for the verdict: the run must show the cause that the WebCoSM paper names.
/// The condition is never met, because the runs do not measure the disk.
fn overload() -> Condition {
    Condition::unmeasured(OVERLOAD, "the disk's busy time is not measured")
}

pub fn rows(all: &[MeasuredRates]) -> Vec<FigureRow> {
    let mut rows: Vec<FigureRow> = all.iter().flat_map(MeasuredRates::rows).collect();
    let pair = |name: &str| {
        all.iter().find(|measured| measured.name == name).and_then(|found| found.runs.as_ref().ok())
    };
    if let (Some(squid), Some(foxy)) = (pair(SQUID), pair(FOXY)) {
        let over = |above: &[Vec<RatePoint>],
                    below: &[Vec<RatePoint>],
                    of: fn(&[RatePoint]) -> f64|
         -> Vec<f64> {
            above.iter().zip(below).map(|(above, below)| of(above) / of(below)).collect()
        };
        let fetched =
            over(squid, foxy, |run| at(run, COMPARED).map_or(f64::NAN, |point| point.fetched));
        let bandwidth =
            row(BANDWIDTH, "Squid over Foxy, bytes fetched at 110/s", "times", &fetched)
                .judged()
                .gain()
                .under(overload())
                .under(fills(squid.iter().chain(foxy)));
        rows.push(bandwidth);
        // If a proxy sustained even the highest rate, its limit is unknown and cannot be compared.
        if squid.iter().all(|run| run.iter().any(|point| !point.good)) {
            let ratio = |name: &str, of: fn(&[RatePoint]) -> f64| {
                row(THROUGHPUT, name, "times", &over(foxy, squid, of))
                    .judged()
                    .gain()
                    .under(overload())
                    .under(fills(squid.iter().chain(foxy)))
            };
            rows.push(ratio("Foxy over Squid, at their best", best));
            rows.push(ratio("Foxy over Squid, at their knees", good_to));
        }
    }
    rows
}

fn row(figure: &str, name: &str, unit: &str, values: &[f64]) -> FigureRow {
    FigureRow::of(figure, name, unit, values).from_place(Place::Measured)
}

/// Returns the condition that the origin sent at least 1.5 times the size of the cache. It must
/// hold in each run, at each request rate.
fn fills<'a>(runs: impl Iterator<Item = &'a Vec<RatePoint>>) -> Condition {
    let reached = runs.flatten().map(|point| point.fills).fold(f64::INFINITY, f64::min);
    Condition::Fills { reached }
}

fn best(run: &[RatePoint]) -> f64 {
    run.iter().map(|point| point.answered).fold(0.0, f64::max)
}

fn good_to(run: &[RatePoint]) -> f64 {
    run.iter().filter(|point| point.good).map(|point| point.rate).fold(0.0, f64::max)
}

fn at(run: &[RatePoint], rate: f64) -> Option<&RatePoint> {
    run.iter().find(|point| point.rate == rate)
}

impl MeasuredRates {
    fn rows(&self) -> Vec<FigureRow> {
        let runs = match &self.runs {
            Ok(runs) => runs,
            Err(why) => {
                let name = format!("{}, at its best", self.name);
                return vec![FigureRow::impossible(THROUGHPUT, &name, "1/s", why)];
            }
        };
        let values =
            |of: &dyn Fn(&[RatePoint]) -> f64| runs.iter().map(|run| of(run)).collect::<Vec<f64>>();
        let at_rate = |rate: f64, of: fn(&RatePoint) -> f64| {
            values(&|run| at(run, rate).map_or(f64::NAN, of))
        };
        let most = row(THROUGHPUT, &format!("{}, at its best", self.name), "1/s", &values(&best));
        let most = most.judged().under(fills(runs.iter()));
        let highest = runs.iter().flatten().map(|point| point.rate).fold(0.0, f64::max);
        vec![
            most.with_note(format!(
                "load up to {highest:.0}/s; load generator, origin and proxy share this machine"
            )),
            row(THROUGHPUT, &format!("{}, good to", self.name), "1/s", &values(&good_to)),
            self.response(&at_rate(HIGHEST, |point| point.response)),
            row(
                BANDWIDTH,
                &format!("{}, hits shed at 110/s", self.name),
                "share",
                &at_rate(COMPARED, |point| point.shed),
            ),
            row(
                BANDWIDTH,
                &format!("{}, fetched for each byte asked for at 110/s", self.name),
                "B",
                &at_rate(COMPARED, |point| point.fetched),
            ),
        ]
    }

    /// Returns the row of response times. The WebCoSM paper reports a mean of 0.7 s at its highest
    /// rate, although the origin delays each miss by one second.
    fn response(&self, values: &[f64]) -> FigureRow {
        row(RESPONSE, &format!("{}, mean response at 340/s", self.name), "ms", values)
            .judged()
            .under(fills(self.runs.iter().flatten()))
            .with_note("hits that wait for a miss in progress take up to a second")
    }

    fn line(&self, of: fn(&RatePoint) -> f64) -> Option<Line> {
        let runs = self.runs.as_ref().ok()?;
        let rates: BTreeSet<u64> = runs.iter().flatten().map(|point| point.rate as u64).collect();
        let at_rate = |rate: u64| {
            let rate = rate as f64;
            (rate, runs.iter().filter_map(|run| at(run, rate).map(of)).collect())
        };
        Some(line(self.name, rates.into_iter().map(at_rate)))
    }
}

/// Draws the highest throughput of each proxy beside the WebCoSM paper's. Lines over the offered
/// rates would lie on each other, because each proxy answers all requests up to its limit.
fn best_rates(all: &[MeasuredRates]) -> Picture {
    let measured: Vec<(&str, Vec<f64>)> = all
        .iter()
        .filter_map(|proxy| {
            let runs = proxy.runs.as_ref().ok()?;
            Some((proxy.name, runs.iter().map(|run| best(run)).collect()))
        })
        .collect();
    let of_paper =
        |(name, _): &(&str, Vec<f64>)| in_chart(THROUGHPUT, &format!("{name}, at its best"));
    let series = vec![
        quoted_bars(measured.iter().map(of_paper)),
        bars("this machine", measured.iter().map(|(_, values)| values.clone())),
    ];
    let titles = [
        "Fig 18: highest throughput under Table 3's load (higher is better)",
        "requests answered a second, at the offered rate with the most answers",
        "",
    ];
    let groups = measured.iter().map(|(name, _)| (*name).to_owned()).collect();
    Picture::bars(titles, groups, series)
}

pub fn pictures(all: &[MeasuredRates]) -> Vec<Picture> {
    let rates = "requests offered a second";
    let picture = |title: &str, y: &str, of: fn(&RatePoint) -> f64, papers: Vec<Line>| {
        let lines = all.iter().filter_map(|measured| measured.line(of)).chain(papers);
        Picture::lines([title, rates, y], lines.collect())
    };
    // By the WebCoSM paper, Squid fetches `more` times the bytes that Foxy fetches. Foxy fetches
    // only requests that are not hits, 60 % of all (Table 3).
    let more = in_chart(BANDWIDTH, "Squid over Foxy, bytes fetched at 110/s");
    let fetched = [(COMPARED, changed(more, |times| times * MISSES))];
    vec![
        best_rates(all),
        picture(
            "Fig 18: answers under Table 3's load (higher is better)",
            "answers, share of the requests offered",
            |point| point.answered / point.rate,
            Vec::new(),
        ),
        picture(
            "Fig 19: mean response time under Table 3's load (lower is better)",
            "mean response time, ms",
            |point| point.response,
            vec![quoted(
                "Foxy",
                HIGHEST,
                RESPONSE,
                "foxy, STREAM-PACKETIZER, mean response at 340/s",
            )],
        ),
        picture(
            "Fig 20: bytes fetched from the origin under Table 3's load (lower is better)",
            "fetched bytes, share of the requested bytes",
            |point| point.fetched,
            vec![paper("Foxy", [(COMPARED, Some(Value::exact(MISSES)))]), paper("Squid", fetched)],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_report::figure::Verdict;

    fn run(points: &[(f64, f64, bool)]) -> Vec<RatePoint> {
        let point = |&(rate, answered, good)| RatePoint {
            rate,
            answered,
            good,
            response: 800.0,
            fetched: rate / 100.0,
            shed: 0.5,
            fills: 2.0,
        };
        points.iter().map(point).collect()
    }

    #[test]
    fn a_proxy_is_good_to_the_highest_rate_that_it_kept_up_with() {
        let measured = MeasuredRates {
            name: SQUID,
            runs: Ok(vec![run(&[
                (110.0, 110.0, true),
                (340.0, 200.0, false),
                (700.0, 150.0, false),
            ])]),
        };
        let rows = rows(&[measured]);
        let of = |name: &str| rows.iter().find(|row| row.row == name).and_then(|row| row.ours);
        assert_eq!((of("Squid, at its best"), of("Squid, good to")), (Some(200.0), Some(110.0)));
        assert_eq!(of("Squid, fetched for each byte asked for at 110/s"), Some(1.1));
    }

    #[test]
    fn one_that_is_not_there_leaves_the_others_rows_standing() {
        let missing = MeasuredRates { name: SQUID, runs: Err("not installed".into()) };
        let rows = rows(&[
            missing,
            MeasuredRates { name: FOXY, runs: Ok(vec![run(&[(340.0, 340.0, true)])]) },
        ]);
        assert_eq!(rows[0].verdict, Verdict::NotPossibleHere);
        assert!(
            rows.iter().any(|row| row.row == format!("{FOXY}, good to") && row.ours == Some(340.0))
        );
        assert!(!rows.iter().any(|row| row.row.contains("over")), "{rows:?}");
    }
}
