//! Makes pages from run records: facts and charts first, then rows of figures and measures.

use super::charts::charts;
use super::{Headline, Page, headline};
use crate::chart::Provenance;
use crate::figure::{FigureRow, Place, figure_table};
use crate::number::readable;
use crate::record::{Measure, Record, RequestClass, Subject};
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

    /// Adds all records of a run: facts, charts, then tables. The scale of a setup record replaces
    /// the scale of `provenance`.
    pub fn records(&mut self, records: &[Record], mut provenance: Provenance) {
        if let Some(headline) = headline(records) {
            self.headline(&headline);
        }
        let (mut rows, mut measures, mut classes) = (Vec::new(), Vec::new(), Vec::new());
        for record in records {
            match record {
                Record::Setup(setup) => {
                    self.setup(setup);
                    (provenance.scale, provenance.quick) = (setup.scale, setup.quick);
                }
                Record::FigureRow(row) => rows.push(row.clone()),
                Record::Measure(measure) => measures.push(measure),
                Record::RequestClass(class) => classes.push(class),
                Record::FailedRun { subject, reason } | Record::LeftOut { subject, reason } => {
                    self.paragraph(&format!("{subject}: {reason}"));
                }
                Record::NoVerdict { subject, conditions, .. } => {
                    let words: Vec<String> = conditions.iter().map(ToString::to_string).collect();
                    self.paragraph(&format!("{subject}: no verdict: {}", words.join("; ")));
                }
                Record::End { held: false } => self.paragraph("A bar that was given was missed."),
                Record::Subject(_)
                | Record::End { held: true }
                | Record::Picture { .. }
                | Record::Timeline(_)
                | Record::Histogram { .. } => {}
            }
        }
        for chart in charts(records, &provenance) {
            self.chart(&chart);
        }
        self.figure_rows(&rows);
        self.measures(&measures);
        self.classes(&classes);
    }

    /// Adds the headline of a run of LEAP.
    pub fn headline(&mut self, headline: &Headline) {
        for sentence in &headline.sentences {
            self.paragraph(sentence);
        }
        let caption = "medians of the differences between answers to the same requests";
        self.table(caption, &headline.table);
    }

    /// Adds the command line and configuration of each measured proxy.
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

    /// Adds the rows of figures as a table, if there are any.
    pub(crate) fn figure_rows(&mut self, rows: &[FigureRow]) {
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
            let (low, high) = measure.interval().unzip();
            let end = |end: Option<f64>| end.map_or("–".into(), readable);
            let [value, low, high] = [readable(measure.value), end(low), end(high)];
            let (name, subject, unit) =
                (measure.name.clone(), measure.subject.clone(), measure.unit.clone());
            table.row(&[name, subject, value, low, high, unit, measure.repeats.to_string()]);
        }
        self.heading("Measures");
        self.table("low and high are the ends of the 95 % interval; – means no interval", &table);
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
}
