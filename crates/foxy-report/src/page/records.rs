//! Makes pages from run records: facts, rows of figures, measures, and a chart for each kind of
//! timeline or distribution.

use super::Page;
use crate::chart::{Axis, Chart, Line, Look, Plot, Provenance, Value, shares_over_times};
use crate::figure::{FigureRow, Place, figure_table};
use crate::number::readable;
use crate::record::{Measure, Record, RequestClass, Subject, Timeline};
use crate::table::Table;
use foxy_base::ByteSize;

impl Page {
    /// Makes a page of all records of a run.
    pub fn of_records(title: &str, records: &[Record], place: Place) -> Self {
        let mut page = Self::new(title);
        page.records(
            records,
            Provenance { source: String::new(), place, scale: 1.0, quick: false, seeds: 1 },
        );
        page
    }

    /// Adds all records of a run. A setup record replaces the scale of `provenance`.
    pub fn records(&mut self, records: &[Record], mut provenance: Provenance) {
        let (mut rows, mut measures, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        let (mut timelines, mut distributions) = (Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Setup(setup) => {
                    self.setup(setup);
                    (provenance.scale, provenance.quick) = (setup.scale, setup.quick);
                }
                Record::FigureRow(row) => rows.push(row.clone()),
                Record::Measure(measure) => measures.push(measure),
                Record::RequestClass(class) => classes.push(class),
                Record::Timeline(timeline) => timelines.push(timeline),
                Record::Histogram { name, subject, quantiles, .. } => {
                    distributions.push((name.as_str(), distribution(subject, quantiles)));
                }
                Record::FailedRun { subject, reason } | Record::LeftOut { subject, reason } => {
                    self.paragraph(&format!("{subject}: {reason}"));
                }
                Record::NoVerdict { subject, conditions, .. } => {
                    let words: Vec<String> = conditions.iter().map(ToString::to_string).collect();
                    self.paragraph(&format!("{subject}: no verdict: {}", words.join("; ")));
                }
                Record::Subject(_) | Record::End { held: true } => {}
                Record::End { held: false } => self.paragraph("A bar that was given was missed."),
            }
        }
        self.figure_rows(&rows);
        self.measures(&measures);
        self.classes(&classes);
        self.timelines(&timelines, &provenance);
        self.distributions(distributions, &provenance);
    }

    /// Adds the setup of each measured proxy.
    pub fn set_ups(&mut self, records: &[Record]) {
        let found = records.iter().filter_map(|record| match record {
            Record::Subject(subject) => Some(subject),
            _ => None,
        });
        for (place, set_up) in found.enumerate() {
            if place == 0 {
                self.heading("Set up as");
            }
            let Subject { subject, version, workload, command, files, notes } = set_up;
            let notes: String = notes.iter().map(|note| format!("# {note}\n")).collect();
            let files: String =
                files.iter().map(|(name, text)| format!("\n# {name}\n{text}")).collect();
            self.details(
                &format!("{subject} {version}, {workload}"),
                &format!("{notes}{command}\n{files}"),
            );
        }
    }

    fn figure_rows(&mut self, rows: &[FigureRow]) {
        if !rows.is_empty() {
            self.heading("Figures of the seeds");
            self.table("quoted, ours, and what that amounts to", &figure_table(rows));
        }
    }

    fn measures(&mut self, measures: &[&Measure]) {
        if measures.is_empty() {
            return;
        }
        let mut table =
            Table::new(&["measure", "subject", "value", "low", "high", "unit", "repeats"]);
        for measure in measures {
            let [value, low, high] = [measure.value, measure.low, measure.high].map(readable);
            let (name, subject, unit) =
                (measure.name.clone(), measure.subject.clone(), measure.unit.clone());
            table.row(&[name, subject, value, low, high, unit, measure.repeats.to_string()]);
        }
        self.heading("Measures");
        self.table("low and high are the ends of the 95 % interval", &table);
    }

    fn classes(&mut self, classes: &[&RequestClass]) {
        if classes.is_empty() {
            return;
        }
        let mut table = Table::new(&[
            "class",
            "subject",
            "requests",
            "bytes",
            "mean µs",
            "median µs",
            "99 % under µs",
        ]);
        for class in classes {
            let count = |count: u64| readable(count as f64);
            table.row(&[
                class.class.clone(),
                class.subject.clone(),
                count(class.requests),
                ByteSize(class.bytes).to_string(),
                readable(class.latency_mean_us),
                count(class.latency_p50_us),
                count(class.latency_p99_us),
            ]);
        }
        self.heading("Classes of requests");
        self.table("", &table);
    }

    fn timelines(&mut self, timelines: &[&Timeline], provenance: &Provenance) {
        let named: Vec<_> =
            timelines.iter().map(|timeline| (timeline.name.as_str(), *timeline)).collect();
        for (name, group) in grouped(named) {
            let line = |timeline: &&Timeline| Line {
                name: timeline.subject.clone(),
                look: Look::Solid,
                points: timeline
                    .points
                    .iter()
                    .map(|&(time, value)| (time, Value::exact(value)))
                    .collect(),
            };
            let unit = group.first().map_or("", |timeline| timeline.unit.as_str());
            self.chart(&Chart {
                title: format!("{} over time", spoken(name)),
                provenance: provenance.clone(),
                x: Axis::linear("time", "s"),
                y: Axis::linear(&spoken(name), unit),
                plot: Plot::Lines(group.iter().map(line).collect()),
            });
        }
    }

    fn distributions(&mut self, distributions: Vec<(&str, Line)>, provenance: &Provenance) {
        for (name, lines) in grouped(distributions) {
            let title = format!("Distribution of {}", spoken(name));
            self.chart(&Chart::distribution(title, &spoken(name), provenance.clone(), lines));
        }
    }
}

fn distribution(subject: &str, quantiles: &[(f64, u64)]) -> Line {
    let points =
        shares_over_times(quantiles.iter().map(|&(share, latency)| (share, latency as f64)));
    Line { name: subject.into(), look: Look::Solid, points }
}

/// Groups values by name, in order of first occurrence.
fn grouped<T>(named: Vec<(&str, T)>) -> Vec<(&str, Vec<T>)> {
    let mut groups: Vec<(&str, Vec<T>)> = Vec::new();
    for (name, value) in named {
        match groups.iter_mut().find(|group| group.0 == name) {
            Some(group) => group.1.push(value),
            None => groups.push((name, vec![value])),
        }
    }
    groups
}

fn spoken(name: &str) -> String {
    name.replace('_', " ")
}
