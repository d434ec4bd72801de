//! Gives the overview of a comparison: for each measure a matrix of workloads and proxies.
//!
//! A cell of the first proxy has its value. A cell of another proxy has its value divided by the
//! first proxy's value, with the 95 % interval of this ratio.

use super::summary::ratio;
use super::words::{between, with_interval};
use super::{in_order, result, subjects, workloads, wrong_answers};
use crate::chart::{Axis, Bars, Better, Chart, Look, Plot, Provenance, Spread, Value};
use crate::record::Record;
use crate::table::Table;

/// A measure that has a matrix.
struct Row {
    name: &'static str,
    words: &'static str,
    unit: &'static str,
    /// The meaning of a ratio above 1.
    above: &'static str,
}

const ROWS: [Row; 4] = [
    Row {
        name: "cpu_us_per_request",
        words: "CPU time per request",
        unit: "µs",
        above: "takes more CPU time than",
    },
    Row {
        name: "requests_per_second",
        words: "requests a second",
        unit: "1/s",
        above: "answers more requests than",
    },
    Row {
        name: "latency_p99_us",
        words: "99th percentile of latency",
        unit: "µs",
        above: "answers later than",
    },
    Row {
        name: "disk_bytes_per_cached_byte",
        words: "bytes written per cached byte",
        unit: "",
        above: "writes more than",
    },
];

/// The meaning of the marks in cells.
pub const MARKS: &str = "≈ no difference shown: the 95 % interval contains 1. (one repeat) no \
                         interval. ✗ errors or wrong bytes. – no value.";

/// Workloads by proxies, for one measure.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The measure, and the meaning of its ratios.
    pub caption: String,
    /// A row for each workload, a column for each proxy.
    pub table: Table,
}

/// Returns the matrices of the measures in `ROWS` that the first proxy and another proxy have.
pub fn matrices(records: &[Record]) -> Vec<Matrix> {
    ROWS.iter().filter_map(|row| matrix(records, row)).collect()
}

/// Returns the overview as text: the matrices, the meaning of their marks, and the wrong answers.
pub fn overview(records: &[Record]) -> String {
    let text = |Matrix { caption, table }| format!("{caption}\n{}\n", table.render());
    let text: String = matrices(records).into_iter().map(text).collect();
    let faults: String = faults(records).iter().map(|fault| format!("{fault}\n")).collect();
    if text.is_empty() { faults } else { format!("{text}{MARKS}\n{faults}") }
}

/// Returns a sentence for each proxy and workload with errors or wrong bytes.
pub fn faults(records: &[Record]) -> Vec<String> {
    let under = |workload: &'_ str| {
        let of = |subject: &'_ str| {
            let wrong = wrong_answers(records, workload, subject).join(", ");
            (!wrong.is_empty()).then(|| format!("✗ {workload}, {subject}: {wrong}"))
        };
        subjects(records, workload).into_iter().filter_map(of).collect::<Vec<_>>()
    };
    workloads(records).into_iter().flat_map(under).collect()
}

fn proxies(records: &[Record]) -> Vec<&str> {
    in_order(workloads(records).into_iter().flat_map(|workload| subjects(records, workload)))
}

fn matrix(records: &[Record], row: &Row) -> Option<Matrix> {
    let proxies = proxies(records);
    let (first, others) = proxies.split_first()?;
    let has =
        |workload: &str, proxy: &str| ratio(records, workload, row.name, proxy, first).is_some();
    let found: Vec<&str> = workloads(records)
        .into_iter()
        .filter(|workload| others.iter().any(|other| has(workload, other)))
        .collect();
    let mut table = Table::new(&[&["workload"], &proxies[..]].concat());
    for workload in &found {
        let cells = proxies.iter().map(|proxy| cell(records, workload, row, first, proxy));
        table.row(&[(*workload).to_owned()].into_iter().chain(cells).collect::<Vec<_>>());
    }
    let Row { words, unit, above, .. } = row;
    let unit = if unit.is_empty() { String::new() } else { format!(" in {unit}") };
    let caption = format!(
        "{words}: of {first}{unit}; of each other proxy as a multiple of {first}'s. Above 1: the \
         proxy {above} {first}."
    );
    (!found.is_empty()).then_some(Matrix { caption, table })
}

fn cell(records: &[Record], workload: &str, row: &Row, first: &str, proxy: &str) -> String {
    let text = if proxy == first {
        result(records, workload, proxy, row.name).map(|measure| with_interval(measure, 1.0))
    } else {
        ratio(records, workload, row.name, proxy, first).map(|ratio| {
            let times = between(ratio.mean, ratio.low, ratio.high);
            match ratio.count {
                1 => format!("{times} (one repeat)"),
                _ if ratio.low <= 1.0 && ratio.high >= 1.0 => format!("≈ {times}"),
                _ => times,
            }
        })
    };
    let is_wrong = !wrong_answers(records, workload, proxy).is_empty();
    format!("{}{}", text.unwrap_or_else(|| "–".into()), if is_wrong { " ✗" } else { "" })
}

/// Draws the matrices of CPU time and of requests a second: a mark for each ratio, with its
/// interval.
pub(super) fn charts(records: &[Record], provenance: &Provenance) -> Vec<Chart> {
    let proxies = proxies(records);
    let Some((first, others)) = proxies.split_first() else { return Vec::new() };
    let chart = |row: &Row| {
        let value = |workload: &str, other: &str| {
            let ratio = ratio(records, workload, row.name, other, first)?;
            Some(Value::between(ratio.mean, ratio.low, ratio.high))
        };
        let all = workloads(records);
        let groups: Vec<&str> = all
            .into_iter()
            .filter(|workload| others.iter().any(|other| value(workload, other).is_some()))
            .collect();
        let bars = |other: &&str| Bars {
            name: (*other).to_owned(),
            look: Look::Solid,
            values: groups.iter().map(|workload| value(workload, other)).collect(),
        };
        let times = format!("times that of {first} (1: the same)");
        (!groups.is_empty()).then(|| Chart {
            title: format!("{} of each proxy, compared with {first}", row.words),
            better: Better::of_measure(row.name),
            provenance: provenance.clone(),
            spread: Spread::Confidence,
            x: Axis::logarithmic(&times, "").showing(1.0),
            y: Axis::linear("", ""),
            plot: Plot::Bars {
                groups: groups.iter().map(ToString::to_string).collect(),
                series: others.iter().map(bars).collect(),
            },
        })
    };
    ROWS[..2].iter().filter_map(chart).collect()
}

#[cfg(test)]
mod tests {
    use super::super::summarise;
    use super::super::tests::records;
    use super::*;
    use crate::record::Measure;

    fn with(more: Vec<(&str, &str, f64)>) -> Vec<Record> {
        let mut all = records();
        for (name, subject, value) in more {
            let measure = Measure::once(name, subject, value, "");
            let (workload, repeat) = (Some("memory-hit".into()), Some(4));
            all.push(Record::Measure(Measure { workload, repeat, ..measure }));
        }
        all.extend(summarise(&all.clone()));
        all
    }

    const EXPECTED: [&str; 3] = ["memory-hit", "12 (9.52–14.5)", "2"];

    #[test]
    fn a_matrix_has_the_first_proxys_value_and_the_others_ratios() {
        let text = overview(&with(Vec::new()));
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("memory-hit")).collect();
        let cells: Vec<&str> = rows[0].split("  ").filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells.iter().map(|cell| cell.trim()).collect::<Vec<_>>(), EXPECTED);
        assert!(text.starts_with("CPU time per request: of foxy in µs;"), "{text}");
    }

    #[test]
    fn a_ratio_that_may_be_one_and_a_wrong_answer_are_marked() {
        let all = with(vec![
            ("cpu_us_per_request", "foxy", 900.0),
            ("cpu_us_per_request", "nginx", 1.0),
            ("wrong_bytes", "nginx", 4.0),
        ]);
        let text = overview(&all);
        let row = text.lines().find(|line| line.starts_with("memory-hit")).expect("a row");
        assert!(row.contains("≈ 0.") && row.ends_with(") ✗"), "{row}");
        assert!(text.contains("✗ memory-hit, nginx: wrong_bytes is 1\n"), "{text}");
    }
}
