//! Describes a comparison in text: a table per workload, and sentences about the first proxy.

use super::matrix::{MARKS, Matrix, faults, matrices};
use super::summary::ratio;
use super::{INCOMPLETE, is_incomplete, result, subjects, workloads};
use crate::Summary;
use crate::number::significant;
use crate::record::{Measure, Record};
use crate::table::Table;

/// Possible columns of a table, each with the name of its measure, its heading, and the factor that
/// converts the value to the heading's unit.
const COLUMNS: [(&str, &str, f64); 18] = [
    ("cpu_us_per_request", "CPU µs/request", 1.0),
    ("requests_per_second", "requests/s", 1.0),
    ("latency_p50_us", "p50 µs", 1.0),
    ("latency_p99_us", "p99 µs", 1.0),
    ("latency_p999_us", "p99.9 µs", 1.0),
    ("hit_ratio", "hit ratio", 1.0),
    ("byte_hit_ratio", "byte hit ratio", 1.0),
    ("resident_after_fill", "newest that are hits", 1.0),
    ("device_reads_per_hit", "device reads/hit", 1.0),
    ("disk_bytes_per_cached_byte", "written/cached", 1.0),
    ("size_on_disk_bytes", "on disk MB", 1e-6),
    ("resident_bytes", "memory MB", 1e-6),
    ("origin_requests_per_request", "origin requests/request", 1.0),
    ("system_calls_per_request", "system calls/request", 1.0),
    ("wrong_bytes", "wrong bytes", 1.0),
    ("errors", "errors", 1.0),
    ("answered_during_fault", "answered during fault", 1.0),
    ("errors_outside_fault", "errors outside it", 1.0),
];

/// Formats a value and the ends of its interval with three digits: `14 (12.9–15.1)`. Leaves out
/// an interval without width.
pub(super) fn between(value: f64, low: f64, high: f64) -> String {
    let [value, low, high] = [value, low, high].map(|value| significant(value, 3));
    if low == high { value } else { format!("{value} ({low}–{high})") }
}

/// Formats a mean and its interval, multiplied by `factor`.
pub(super) fn with_interval(measure: &Measure, factor: f64) -> String {
    let Measure { value, low, high, .. } = measure;
    between(value * factor, low * factor, high * factor)
}

/// Returns the table of a workload, with a row per proxy.
pub fn table(records: &[Record], workload: &str) -> Table {
    let subjects = subjects(records, workload);
    let found = |subject: &str, name: &str| result(records, workload, subject, name);
    let is_there = |name: &str| subjects.iter().any(|subject| found(subject, name).is_some());
    let columns: Vec<_> = COLUMNS.iter().filter(|(name, _, _)| is_there(name)).collect();
    let heads = ["proxy"].into_iter().chain(columns.iter().map(|(_, head, _)| *head));
    let mut table = Table::new(&heads.collect::<Vec<_>>());
    for subject in &subjects {
        let cell = |(name, _, factor): &&(&str, &str, f64)| {
            found(subject, name).map_or("–".to_owned(), |measure| with_interval(measure, *factor))
        };
        let cells = columns.iter().map(cell);
        table.row(&[(*subject).to_owned()].into_iter().chain(cells).collect::<Vec<_>>());
    }
    table
}

/// Returns the tables of all workloads as text.
pub fn tables(records: &[Record]) -> String {
    let text = |workload: &&str| format!("\n{workload}\n{}", table(records, workload).render());
    workloads(records).iter().map(text).collect()
}

/// Returns sentences on the CPU time and request rate of the first proxy relative to each other
/// proxy, under each workload.
pub fn verdicts(records: &[Record]) -> Vec<String> {
    let sentences = |workload: &str| {
        let sentences = verdicts_under(records, workload);
        sentences.into_iter().map(|sentence| format!("{workload}: {sentence}")).collect::<Vec<_>>()
    };
    workloads(records).into_iter().flat_map(sentences).collect()
}

/// Returns the sentences that compare the proxies in one workload.
pub(super) fn verdicts_under(records: &[Record], workload: &str) -> Vec<String> {
    let subjects = subjects(records, workload);
    let Some((first, others)) = subjects.split_first() else { return Vec::new() };
    let sentence = |other: &&str| {
        let ratio = |name: &str| ratio(records, workload, name, first, other);
        let text = |it: Summary| (between(it.mean, it.low, it.high), doubt(&it));
        let parts = [
            ratio("cpu_us_per_request")
                .map(text)
                .map(|(times, doubt)| format!("takes {times} × the CPU of {other}{doubt}")),
            ratio("requests_per_second")
                .map(text)
                .map(|(times, doubt)| format!("answers {times} × as many requests{doubt}")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("{first} {}.", parts.join(" and ")))
    };
    others.iter().filter_map(sentence).collect()
}

/// Returns the caveat to print after a ratio: it has no interval, or its interval contains 1.
fn doubt(ratio: &Summary) -> &'static str {
    match ratio.count {
        0 | 1 => " (one repeat: no interval)",
        _ if ratio.low <= 1.0 && ratio.high >= 1.0 => " (no difference shown)",
        _ => "",
    }
}

/// Returns the comparison as Markdown.
pub fn markdown(records: &[Record]) -> String {
    let mut text = String::from("# Proxies compared\n\n");
    if is_incomplete(records) {
        text.push_str(&format!("**{INCOMPLETE}**\n\n"));
    }
    for Matrix { caption, table } in matrices(records) {
        text.push_str(&format!("{caption}\n\n{}\n", table.markdown()));
    }
    text.push_str(&format!("{MARKS}\n\n"));
    for fault in faults(records) {
        text.push_str(&format!("- {fault}\n"));
    }
    text.push_str("\nMeans over the repeats, with 95 % intervals; compare within a table.\n");
    for workload in workloads(records) {
        text.push_str(&format!("\n## {workload}\n\n{}", table(records, workload).markdown()));
        for (number, sentence) in verdicts_under(records, workload).iter().enumerate() {
            text.push_str(&format!("{}- {sentence}\n", if number == 0 { "\n" } else { "" }));
        }
    }
    let mut section = |head: &str, line: &dyn Fn(&Record) -> Option<String>| {
        let lines: String = records.iter().filter_map(line).collect();
        if !lines.is_empty() {
            text.push_str(&format!("\n## {head}\n\n{lines}"));
        }
    };
    section("Failed runs", &|record| match record {
        Record::FailedRun { subject, reason } => Some(format!("- {subject}: {reason}\n")),
        _ => None,
    });
    section("Left out", &|record| match record {
        Record::LeftOut { subject, reason } => Some(format!("- {subject}: {reason}\n")),
        _ => None,
    });
    text
}

#[cfg(test)]
mod tests {
    use super::super::summarise;
    use super::super::tests::records;
    use super::*;

    fn complete() -> Vec<Record> {
        let mut all = records();
        all.extend(summarise(&records()));
        all
    }

    #[test]
    fn a_verdict_says_both_ratios_with_their_intervals() {
        let all = complete();
        let expected =
            "memory-hit: foxy takes 0.5 × the CPU of nginx and answers 2 × as many requests.";
        assert_eq!(verdicts(&all), [expected]);
    }

    #[test]
    fn a_ratio_that_may_be_one_shows_no_difference() {
        let ratio = |low, high, count| Summary { mean: 0.9, median: 0.9, low, high, count };
        assert_eq!(doubt(&ratio(0.8, 1.0, 3)), " (no difference shown)");
        assert_eq!(doubt(&ratio(0.8, 0.95, 3)), "");
        assert_eq!(doubt(&ratio(0.9, 0.9, 1)), " (one repeat: no interval)");
    }

    #[test]
    fn markdown_has_a_table_a_workload_and_says_what_is_missing() {
        let mut all = complete();
        all.push(Record::FailedRun {
            subject: "squid".into(),
            reason: "it did not come up".into(),
        });
        all.push(Record::LeftOut { subject: "varnish".into(), reason: "not installed".into() });
        let text = markdown(&all);
        assert!(text.contains("**Incomplete"), "{text}");
        assert!(text.contains("## memory-hit\n\n| proxy | CPU µs/request |"), "{text}");
        assert!(text.contains("| nginx | 24 (19–29) | 30,000 |"), "{text}");
        assert!(text.contains("## Failed runs\n\n- squid: it did not come up\n"), "{text}");
        assert!(text.contains("## Left out\n\n- varnish: not installed\n"), "{text}");
    }
}
