//! Compares proxies by the records of one run of `foxy compare`: summaries, sentences, tables, a
//! page and a JUnit report.
//!
//! The run puts each proxy (the subject) under each workload several times (the repeats). A measure
//! is a named value of one repeat, such as `requests_per_second`. The first proxy of a workload is
//! the baseline, and its values are divided by each other proxy's.

mod junit;
mod matrix;
mod page;
mod summary;
mod words;

pub use junit::{Check, junit};
pub use matrix::overview;
pub use page::{add, page};
pub use summary::{WITH_RATIOS, summarise, with_results};
use words::table;
pub use words::{markdown, tables, verdicts};

use crate::number::significant;
use crate::record::{Measure, Record};

/// Separates the name of a workload from the requests per second that the load generator sends:
/// `zipf@5000`.
pub const AT_RATE: char = '@';

/// The sentence that begins a report if the run ended early.
pub const INCOMPLETE: &str = "Incomplete: the run ended before everything was measured.";

/// Returns the distinct names, in order of first occurrence.
fn in_order<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

fn measures(records: &[Record]) -> impl Iterator<Item = &Measure> {
    records.iter().filter_map(|record| match record {
        Record::Measure(measure) => Some(measure),
        _ => None,
    })
}

fn workloads(records: &[Record]) -> Vec<&str> {
    in_order(measures(records).filter_map(|measure| measure.workload.as_deref()))
}

/// Returns the proxies under a workload, in the order of their measurement. The first is the
/// baseline.
fn subjects<'a>(records: &'a [Record], workload: &str) -> Vec<&'a str> {
    let of_it = measures(records).filter(|measure| measure.workload.as_deref() == Some(workload));
    in_order(of_it.map(|measure| measure.subject.as_str()))
}

/// Returns the summary of all repeats of a measure. [`summarise`] has made this summary.
fn result<'a>(
    records: &'a [Record],
    workload: &str,
    subject: &str,
    name: &str,
) -> Option<&'a Measure> {
    measures(records).find(|measure| {
        measure.repeat.is_none()
            && measure.workload.as_deref() == Some(workload)
            && measure.subject == subject
            && measure.name == name
    })
}

/// Returns the faults of a proxy's answers under a workload: errors and wrong bytes. If the
/// workload injects a fault, requests may fail while it lasts. Then only errors outside that time
/// count.
fn wrong_answers(records: &[Record], workload: &str, subject: &str) -> Vec<String> {
    let outside = "errors_outside_fault";
    let errors = result(records, workload, subject, outside).map_or("errors", |_| outside);
    let wrong = ["wrong_bytes", errors].into_iter().filter_map(|name| {
        let measure = result(records, workload, subject, name)?;
        (measure.value > 0.0).then(|| format!("{name} is {}", significant(measure.value, 3)))
    });
    wrong.collect()
}

/// Returns whether the run ended early: its last record is not [`Record::End`].
pub fn is_incomplete(records: &[Record]) -> bool {
    !matches!(records.last(), Some(Record::End { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Subject;

    /// Returns records of two proxies with three repeats each. foxy takes half of nginx's CPU time
    /// per request.
    pub(super) fn records() -> Vec<Record> {
        let mut records = Vec::new();
        for (subject, scale) in [("foxy", 1.0), ("nginx", 2.0)] {
            records.push(Record::Subject(Subject {
                subject: subject.into(),
                version: "1.2".into(),
                workload: "memory-hit".into(),
                command: format!("{subject} -c <file>"),
                files: vec![("a.conf".into(), "listen & serve".into())],
                notes: vec!["as it comes".into()],
            }));
            for repeat in 1..=3 {
                let noise = f64::from(repeat);
                for (name, value, unit) in [
                    ("cpu_us_per_request", (10.0 + noise) * scale, "us"),
                    ("requests_per_second", 60_000.0 / scale, "1/s"),
                    ("wrong_bytes", 0.0, "B"),
                    ("errors", 0.0, "requests"),
                ] {
                    records.push(Record::Measure(Measure {
                        workload: Some("memory-hit".into()),
                        repeat: Some(repeat),
                        ..Measure::once(name, subject, value, unit)
                    }));
                }
                records.push(Record::Histogram {
                    name: "latency".into(),
                    subject: subject.into(),
                    quantiles: vec![(0.5, 100), (0.99, 200)],
                    workload: Some("memory-hit".into()),
                });
            }
        }
        records
    }

    #[test]
    fn a_run_without_an_end_is_incomplete() {
        let mut records = records();
        assert!(is_incomplete(&records));
        records.push(Record::End { held: false });
        assert!(!is_incomplete(&records));
    }

    #[test]
    fn the_first_subject_is_the_first_measured() {
        assert_eq!(workloads(&records()), ["memory-hit"]);
        assert_eq!(subjects(&records(), "memory-hit"), ["foxy", "nginx"]);
        assert_eq!(subjects(&records(), "other"), Vec::<&str>::new());
    }
}
