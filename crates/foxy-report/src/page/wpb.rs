//! Draws the measures of the Wisconsin Proxy Benchmark over the number of clients. The charts are
//! as Figs 2 to 11 of the benchmark's paper (paper 003 in docs/figures.md). A workload such as
//! `wpb-32-phase-1` names the number of clients and the part of the benchmark.

use crate::chart::{Axis, Better, Chart, Line, Look, Plot, Provenance, Spread, Value};
use crate::record::Measure;

/// The parts of the benchmark: the ending of a workload's name that stands for the part (empty for
/// both phases together), and the part's title.
const PARTS: [(&str, &str); 4] =
    [("no-cache", "no cache"), ("phase-1", "phase 1"), ("phase-2", "phase 2"), ("", "both phases")];
const HITS: [(&str, &str); 3] = [
    ("hit_ratio", "hit ratio"),
    ("byte_hit_ratio", "byte hit ratio"),
    ("offered_hit_ratio", "highest possible hit ratio"),
];

/// Returns the charts of each measured proxy: latency, hit ratios and errors.
pub(super) fn charts(measures: &[&Measure], provenance: &Provenance) -> Vec<Chart> {
    let points: Vec<Point> = measures.iter().filter_map(|measure| Point::of(measure)).collect();
    let mut subjects: Vec<&str> = Vec::new();
    for point in &points {
        if !subjects.contains(&point.measure.subject.as_str()) {
            subjects.push(&point.measure.subject);
        }
    }
    let has_clients = |subject: &&&str| {
        let of = points.iter().filter(|point| point.measure.subject == **subject);
        let clients: std::collections::BTreeSet<u32> = of.map(|point| point.clients).collect();
        clients.len() > 1
    };
    let of = subjects.iter().filter(has_clients);
    let charts = of.flat_map(|subject| of_subject(&points, subject, provenance));
    charts.filter(|chart| !is_all_zero(chart)).collect()
}

/// Returns whether every value of a chart is 0, as the errors of a proxy that never fails.
fn is_all_zero(chart: &Chart) -> bool {
    let Plot::Lines(lines) = &chart.plot else { return false };
    lines.iter().flat_map(|line| &line.points).all(|(_, value)| value.value == 0.0)
}

struct Point<'a> {
    clients: u32,
    part: &'a str,
    measure: &'a Measure,
}

impl<'a> Point<'a> {
    fn of(measure: &'a Measure) -> Option<Self> {
        let rest = measure.workload.as_deref()?.strip_prefix("wpb-")?;
        let (clients, part) = rest.split_once('-').unwrap_or((rest, ""));
        let known = PARTS.iter().any(|(name, _)| *name == part);
        known.then(|| Some(Self { clients: clients.parse().ok()?, part, measure }))?
    }
}

fn of_subject(points: &[Point], subject: &str, provenance: &Provenance) -> [Chart; 3] {
    let line = |name: &str, words: &str, part: &str, factor: f64, look: Look| {
        let of = |point: &&Point| {
            let Measure { name: of, subject: by, .. } = point.measure;
            of == name && by == subject && point.part == part
        };
        let mut runs: Vec<(u32, Vec<f64>)> = Vec::new();
        for point in points.iter().filter(of) {
            let value = point.measure.value * factor;
            match runs.iter_mut().find(|(clients, _)| *clients == point.clients) {
                Some((_, values)) => values.push(value),
                None => runs.push((point.clients, vec![value])),
            }
        }
        let points = runs
            .into_iter()
            .filter_map(|(clients, runs)| Some((f64::from(clients), Value::of_runs(&runs)?)));
        Line { name: words.into(), look, points: points.collect() }
    };
    let look = |part: &str| if part == "no-cache" { Look::Dashed } else { Look::Solid };
    let parts = |name: &str, factor: f64| -> Vec<Line> {
        let lines = PARTS.iter().map(|(part, words)| line(name, words, part, factor, look(part)));
        lines.filter(|line| !line.points.is_empty()).collect()
    };
    let hits = HITS.map(|(name, words)| {
        let look = if name.starts_with("offered") { Look::Dashed } else { Look::Solid };
        line(name, words, "", 100.0, look)
    });
    let chart = |what: &str, y: Axis, lines: Vec<Line>| Chart {
        title: format!("Wisconsin Proxy Benchmark, {subject}: {what} by number of clients"),
        better: Better::of_measure(what),
        provenance: provenance.clone(),
        spread: Spread::Runs,
        x: Axis::linear("clients", ""),
        y: y.showing(0.0),
        plot: Plot::Lines(lines),
    };
    [
        chart("mean latency", Axis::linear("mean latency", "ms"), parts("latency_mean_us", 1e-3)),
        chart("hit ratio", Axis::linear("hit ratio", "%"), hits.to_vec()),
        chart("errors", Axis::linear("failed requests", ""), parts("errors", 1.0)),
    ]
}
