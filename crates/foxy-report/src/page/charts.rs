//! Makes charts from run records. They show pictures and rows of figures, the Wisconsin Proxy
//! Benchmark, and values over the fill of a cache or over time. They also show distributions, and
//! measures of several subjects (proxies, schemes or engines).

use super::grouping::grouped;
use super::words::spoken;
use super::{leap, measures, wpb};
use crate::chart::{
    Axis, Better, Chart, Line, Look, Plot, Provenance, Spread, Value, shares_over_times,
};
use crate::figure;
use crate::record::{Record, Timeline};
use crate::statistics::mean;

/// Returns the charts of a run, in the order of a page.
pub fn charts(records: &[Record], provenance: &Provenance) -> Vec<Chart> {
    let (mut rows, mut all, mut timelines) = (Vec::new(), Vec::new(), Vec::new());
    let (mut charts, mut distributions) = (Vec::new(), Vec::new());
    for record in records {
        match record {
            Record::Picture { chart, .. } => charts.push(chart.clone()),
            Record::FigureRow(row) => rows.push(row.clone()),
            Record::Measure(measure) => all.push(measure),
            Record::Timeline(timeline) => timelines.push(timeline),
            Record::Histogram { name, subject, quantiles, .. } => {
                distributions.push((name.as_str(), (subject.as_str(), quantiles.as_slice())));
            }
            _ => {}
        }
    }
    charts.extend(figure::charts(&rows, provenance.quick));
    charts.extend(leap::charts(&all, provenance));
    charts.extend(wpb::charts(&all, provenance));
    charts.extend(over_fill(&timelines, provenance));
    if !timelines.iter().any(|timeline| timeline.name == FILL) {
        charts.extend(over_time(&timelines, provenance));
    }
    for (name, group) in grouped(distributions) {
        let title = format!("Distribution of {}", spoken(name));
        let lines = grouped(group).into_iter().map(|(subject, runs)| distribution(subject, &runs));
        let lines = lines.collect();
        charts.push(Chart::distribution(title, &spoken(name), provenance.clone(), lines));
    }
    if charts.is_empty() {
        charts.extend(measures::charts(&all, provenance));
    }
    charts
}

/// Makes the line of a subject (a measured proxy, scheme or engine). The line shows which share of
/// the requests ended within each time. Each time is the median over the runs.
fn distribution(subject: &str, runs: &[&[(f64, u64)]]) -> Line {
    let shares = runs.first().copied().unwrap_or_default().iter().map(|(share, _)| *share);
    let median = |share: f64| {
        let mut times = Vec::new();
        for run in runs {
            times.extend(run.iter().find(|point| point.0 == share).map(|point| point.1 as f64));
        }
        Some((share, Value::of_runs(&times)?.value))
    };
    let points = shares_over_times(shares.filter_map(median));
    Line { name: subject.into(), look: Look::Solid, points }
}

/// The mean of a measure for each step of the fill. A step ends when another tenth of the cache
/// size was written. Each pair has the start of the step, in cache sizes, and the mean.
type Steps = Vec<(f64, f64)>;

/// Name of the timeline that tells how far the cache is filled: the bytes written so far, divided
/// by the size of the cache.
const FILL: &str = "fill";
/// Width of a step of a chart over the fill, in cache sizes. A step shows a mean, because single
/// samples would hide the lines in noise.
const STEP: f64 = 0.1;

/// Draws measures over the fill of the cache, as in Appendix D of *Squid: The Definitive Guide*
/// (paper 000 in docs/figures.md). Each step of a line is the median over the runs of a subject.
fn over_fill(timelines: &[&Timeline], provenance: &Provenance) -> Vec<Chart> {
    let fills = timelines.iter().filter(|timeline| timeline.name == FILL);
    let fills: Vec<&Timeline> = fills.copied().collect();
    let mut named: Vec<(&str, (&str, Steps))> = Vec::new();
    for timeline in timelines.iter().filter(|timeline| timeline.name != FILL) {
        let is_earlier_run = |(name, (subject, _)): &&(&str, (&str, Steps))| {
            *name == timeline.name && *subject == timeline.subject
        };
        // The timelines of a measure and the timelines of the fill come in the same order of runs.
        let earlier = named.iter().filter(is_earlier_run).count();
        let mut runs = fills.iter().filter(|fill| fill.subject == timeline.subject);
        if let Some(fill) = runs.nth(earlier) {
            let steps = steps(fill, timeline);
            named.push((timeline.name.as_str(), (timeline.subject.as_str(), steps)));
        }
    }
    let unit = |name: &str| {
        let found = timelines.iter().find(|timeline| timeline.name == name);
        found.map_or("", |timeline| timeline.unit.as_str())
    };
    let chart = |(name, group): (&str, Vec<(&str, Steps)>)| Chart {
        title: format!("{}{} while the cache fills", spoken(name), limit(name)),
        better: Better::of_measure(name),
        provenance: provenance.clone(),
        spread: Spread::Runs,
        x: Axis::linear("cachable misses / cache size", ""),
        y: Axis::linear(&spoken(name), unit(name)).showing(0.0),
        plot: Plot::Lines(
            grouped(group).into_iter().map(|(subject, runs)| median_line(subject, &runs)).collect(),
        ),
    };
    grouped(named).into_iter().map(chart).collect()
}

/// Returns the mean of a measure in each step. A step ends when another tenth of the cache size was
/// written.
fn steps(fill: &Timeline, timeline: &Timeline) -> Steps {
    let mut samples: Vec<(f64, Vec<f64>)> = Vec::new();
    for &(time, value) in &timeline.points {
        let Some((_, fill)) = fill.points.iter().find(|(seconds, _)| *seconds >= time) else {
            continue;
        };
        let start = (fill / STEP).floor() * STEP;
        match samples.last_mut() {
            Some((last, values)) if *last == start => values.push(value),
            _ => samples.push((start, vec![value])),
        }
    }
    samples.into_iter().map(|(start, values)| (start, mean(&values))).collect()
}

fn median_line(subject: &str, runs: &[Steps]) -> Line {
    let starts = runs.first().map_or(&[][..], Vec::as_slice).iter().map(|step| step.0);
    let at = |start: f64| {
        let values = runs.iter().filter_map(|run| {
            run.iter().find(|step| (step.0 - start).abs() < STEP / 2.0).map(|step| step.1)
        });
        Some((start, Value::of_runs(&values.collect::<Vec<_>>())?))
    };
    Line { name: subject.into(), look: Look::Steps, points: starts.filter_map(at).collect() }
}

/// Returns an addition to a chart's title that names 1 as the limit. It is empty unless the chart
/// shows the share of the time in which a disk is busy.
fn limit(name: &str) -> &'static str {
    if name.contains("busy") { " (1: the limit)" } else { "" }
}

fn over_time(timelines: &[&Timeline], provenance: &Provenance) -> Vec<Chart> {
    let named = timelines.iter().map(|timeline| (timeline.name.as_str(), *timeline)).collect();
    let line = |timeline: &&Timeline| Line {
        name: timeline.subject.clone(),
        look: Look::Steps,
        points: timeline.points.iter().map(|&(time, y)| (time, Value::exact(y))).collect(),
    };
    let chart = |(name, group): (&str, Vec<&Timeline>)| Chart {
        title: format!("{}{} over time", spoken(name), limit(name)),
        better: Better::of_measure(name),
        provenance: provenance.clone(),
        spread: Spread::default(),
        x: Axis::linear("time", "s"),
        y: Axis::linear(&spoken(name), &group[0].unit),
        plot: Plot::Lines(group.iter().map(line).collect()),
    };
    grouped(named).into_iter().map(chart).collect()
}
