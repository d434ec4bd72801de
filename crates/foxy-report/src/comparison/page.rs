//! Writes the HTML page of a comparison: the overview, charts, a table and sentences per workload,
//! latency over load, and the setups of the proxies.

use super::matrix::{self, MARKS, Matrix, faults, matrices};
use super::summary::in_order_of_repeats;
use super::words::verdicts_under;
use super::{AT_RATE, INCOMPLETE, in_order, is_incomplete, result, subjects, table, workloads};
use crate::chart::{
    Axis, Bars, Better, Chart, Line, Look, Plot, Provenance, Spread, Value, shares_over_times,
};
use crate::figure::Place;
use crate::page::Page;
use crate::record::{Measure, Record};
use crate::statistics::mean;

/// Returns the comparison as HTML.
pub fn page(records: &[Record]) -> String {
    let mut page = Page::new("Proxies compared");
    add(&mut page, records);
    page.html()
}

/// Adds a comparison to a page: the overview first, then each workload.
pub fn add(page: &mut Page, records: &[Record]) {
    let provenance = provenance(records);
    if is_incomplete(records) {
        page.paragraph(INCOMPLETE);
    }
    let overview = matrices(records);
    for Matrix { caption, table } in &overview {
        page.table(caption, table);
    }
    if !overview.is_empty() {
        page.paragraph(MARKS);
    }
    for fault in faults(records) {
        page.paragraph(&fault);
    }
    for chart in matrix::charts(records, &provenance) {
        page.chart(&chart);
    }
    for record in records {
        match record {
            Record::Setup(setup) => page.setup(setup),
            Record::FailedRun { subject, reason } | Record::LeftOut { subject, reason } => {
                page.paragraph(&format!("{subject}: {reason}"));
            }
            _ => {}
        }
    }
    for workload in workloads(records) {
        page.heading(workload);
        charts(page, records, workload, &repeated(records, workload, &provenance));
        page.table("means over the repeats, with 95 % intervals", &table(records, workload));
        for sentence in verdicts_under(records, workload) {
            page.paragraph(&sentence);
        }
    }
    latency_over_load(page, records, &provenance);
    page.set_ups(records);
}

/// Returns the provenance of all charts of the page. It gives the number of repeats as the number
/// of seeds.
fn provenance(records: &[Record]) -> Provenance {
    let setup = records.iter().find_map(|record| match record {
        Record::Setup(setup) => Some(setup),
        _ => None,
    });
    let (scale, quick) = setup.map_or((1.0, false), |setup| (setup.scale, setup.quick));
    let seeds = super::measures(records).filter_map(|measure| measure.repeat).max().unwrap_or(1);
    Provenance { source: String::new(), place: Place::Measured, scale, quick, seeds }
}

/// Sets the number of seeds to the number of repeats of one workload.
fn repeated(records: &[Record], workload: &str, provenance: &Provenance) -> Provenance {
    let of = super::measures(records).filter(|one| one.workload.as_deref() == Some(workload));
    let seeds = of.filter_map(|measure| measure.repeat).max().unwrap_or(1);
    Provenance { seeds, ..provenance.clone() }
}

/// Returns the summary of a measure, with the value of each repeat.
fn value(records: &[Record], workload: &str, subject: &str, name: &str) -> Option<Value> {
    let Measure { value, low, high, .. } = *result(records, workload, subject, name)?;
    let runs = in_order_of_repeats(records, workload, subject, name);
    let runs = if runs.len() > 1 { runs } else { Vec::new() };
    Some(Value { runs, ..Value::between(value, low, high) })
}

fn charts(page: &mut Page, records: &[Record], workload: &str, provenance: &Provenance) {
    let subjects = subjects(records, workload);
    let processor: Vec<Option<Value>> = subjects
        .iter()
        .map(|subject| value(records, workload, subject, "cpu_us_per_request"))
        .collect();
    if processor.iter().any(Option::is_some) {
        page.chart(&Chart {
            title: format!("{workload}: CPU time per request"),
            better: Better::Lower,
            provenance: provenance.clone(),
            spread: Spread::Confidence,
            x: Axis::linear("CPU time per request", "µs"),
            y: Axis::linear("proxy", ""),
            plot: Plot::Bars {
                groups: subjects.iter().map(ToString::to_string).collect(),
                series: vec![Bars {
                    name: "CPU time".into(),
                    look: Look::Solid,
                    values: processor,
                }],
            },
        });
    }
    let distributions =
        lines(&subjects, Look::Solid, |subject| distribution(records, workload, subject));
    if !distributions.is_empty() {
        let title = format!("{workload}: distribution of latency");
        page.chart(&Chart::distribution(title, "latency", provenance.clone(), distributions));
    }
    let timelines = lines(&subjects, Look::Steps, |subject| timeline(records, workload, subject));
    if !timelines.is_empty() {
        page.chart(&Chart {
            title: format!("{workload}: requests a second over the run"),
            better: Better::Higher,
            provenance: Provenance { seeds: 1, ..provenance.clone() },
            spread: Spread::Confidence,
            x: Axis::linear("share of the run's requests", "").showing(0.0).showing(1.0),
            y: Axis::linear("requests a second", "1/s").showing(0.0),
            plot: Plot::Lines(timelines),
        });
    }
}

/// Makes a line for each proxy for which `points` returns any points.
fn lines(subjects: &[&str], look: Look, points: impl Fn(&str) -> Vec<(f64, Value)>) -> Vec<Line> {
    let line = |subject: &&str| {
        let points = points(subject);
        (!points.is_empty()).then(|| Line { name: (*subject).to_owned(), look, points })
    };
    subjects.iter().filter_map(line).collect()
}

/// Returns the points of a latency distribution: the share of requests that took at most each
/// latency. The latency of a share is the mean over the repeats.
fn distribution(records: &[Record], workload: &str, subject: &str) -> Vec<(f64, Value)> {
    let mut latencies: Vec<(f64, Vec<f64>)> = Vec::new();
    for record in records {
        let Record::Histogram { subject: of, quantiles, workload: under, .. } = record else {
            continue;
        };
        if of != subject || under.as_deref() != Some(workload) {
            continue;
        }
        for &(quantile, latency) in quantiles {
            match latencies.iter_mut().find(|(known, _)| *known == quantile) {
                Some((_, repeats)) => repeats.push(latency as f64),
                None => latencies.push((quantile, vec![latency as f64])),
            }
        }
    }
    shares_over_times(latencies.into_iter().map(|(quantile, repeats)| (quantile, mean(&repeats))))
}

/// Returns the request rate over time in the first repeat.
fn timeline(records: &[Record], workload: &str, subject: &str) -> Vec<(f64, Value)> {
    let found = records.iter().find_map(|record| match record {
        Record::Timeline(timeline)
            if timeline.subject == subject && timeline.workload.as_deref() == Some(workload) =>
        {
            Some(&timeline.points)
        }
        _ => None,
    });
    found.into_iter().flatten().map(|&(at, rate)| (at, Value::exact(rate))).collect()
}

/// Adds charts of latency over offered rate, for workloads with several rates.
fn latency_over_load(page: &mut Page, records: &[Record], provenance: &Provenance) {
    let all = workloads(records);
    let rates = |name: &str| -> Vec<(f64, &str)> {
        let at_rate = |workload: &&'_ str| {
            let (of, rate) = workload.split_once(AT_RATE)?;
            (of == name).then_some(())?;
            rate.parse().ok()
        };
        all.iter().filter_map(|workload| Some((at_rate(workload)?, *workload))).collect()
    };
    for name in in_order(all.iter().filter_map(|workload| Some(workload.split_once(AT_RATE)?.0))) {
        let rates = rates(name);
        let subjects = in_order(rates.iter().flat_map(|(_, workload)| subjects(records, workload)));
        for (measure, words) in
            [("latency_p50_us", "median latency"), ("latency_p99_us", "latency at 99 %")]
        {
            let at = |subject: &str| {
                let point = |(rate, workload): &(f64, &str)| {
                    Some((*rate, value(records, workload, subject, measure)?))
                };
                rates.iter().filter_map(point).collect()
            };
            page.chart(&Chart {
                title: format!("{name}: {words} over load"),
                better: Better::Lower,
                provenance: provenance.clone(),
                spread: Spread::Confidence,
                x: Axis::linear("offered", "1/s").showing(0.0),
                y: Axis::logarithmic(words, "µs"),
                plot: Plot::Lines(lines(&subjects, Look::Solid, at)),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::summarise;
    use super::super::tests::records;
    use super::*;

    #[test]
    fn a_page_holds_verdicts_tables_charts_and_set_ups_and_loads_nothing() {
        let mut all = records();
        all.extend(summarise(&records()));
        all.push(Record::LeftOut { subject: "squid".into(), reason: "not installed".into() });
        all.push(Record::End { held: true });
        let html = page(&all);
        for wanted in [
            "foxy takes 0.5 × the CPU of nginx",
            "<h2>memory-hit</h2>",
            "distribution of latency",
            "<summary>nginx 1.2, memory-hit</summary>",
            "listen &amp; serve",
            "squid: not installed",
        ] {
            assert!(html.contains(wanted), "no {wanted}");
        }
        assert!(!html.contains("Incomplete"));
        for from_outside in ["src=", "href=", "@import", "url("] {
            assert!(!html.contains(from_outside), "{from_outside}");
        }
    }

    #[test]
    fn a_workload_with_one_repeat_counts_one_run_beside_workloads_with_more() {
        let once = Measure::once("cpu_us_per_request", "foxy", 1.0, "us");
        let once = Measure { workload: Some("large".into()), repeat: Some(1), ..once };
        let mut all = records();
        all.push(Record::Measure(once));
        let (html, of_large) =
            (page(&super::super::with_results(all)), "large: CPU time per request");
        let chart = html.split(&format!(">{of_large}</text>")).nth(1).expect("a chart");
        let subtitle = chart.split("</svg>").next().expect("an end");
        assert!(subtitle.contains("single run, no interval"), "{subtitle}");
    }

    #[test]
    fn workloads_at_several_rates_make_a_curve() {
        let at = |rate: u32| {
            Record::Measure(Measure {
                workload: Some(format!("zipf@{rate}")),
                ..Measure::once("latency_p99_us", "foxy", f64::from(rate), "us")
            })
        };
        let html = page(&[at(1000), at(5000)]);
        assert!(html.contains("zipf: latency at 99 % over load"));
        assert!(!page(&records()).contains("over load"));
    }
}
