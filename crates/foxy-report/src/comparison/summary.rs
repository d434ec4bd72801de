//! Summarises the repeats of a comparison: the mean of each measure with its interval, and ratios
//! of the first proxy to each other proxy.
//!
//! A ratio divides two values of the same repeat. A disturbance of the machine during this repeat
//! affects both values, and so the ratio less than either value.

use super::{in_order, measures, subjects, workloads};
use crate::Summary;
use crate::record::{Measure, Record};

/// Measures for which the summary adds the first proxy's ratio to each other proxy, named
/// `NAME_ratio_to_PROXY`.
pub const WITH_RATIOS: [&str; 5] = [
    "cpu_us_per_request",
    "requests_per_second",
    "latency_p50_us",
    "latency_p99_us",
    "disk_bytes_per_cached_byte",
];

/// Returns the summaries of all repeats in `records`. Does not count summaries that `records`
/// already contain.
pub fn summarise(records: &[Record]) -> Vec<Record> {
    let mut results = Vec::new();
    for workload in workloads(records) {
        let subjects = subjects(records, workload);
        for subject in &subjects {
            results.extend(means(records, workload, subject));
        }
        if let Some((first, others)) = subjects.split_first() {
            results.extend(others.iter().flat_map(|other| ratios(records, workload, first, other)));
        }
    }
    results.into_iter().map(Record::Measure).collect()
}

/// Appends the summary of all repeats, unless the records already have a summary. The records of an
/// interrupted run have no summary.
pub fn with_results(mut records: Vec<Record>) -> Vec<Record> {
    let has_results =
        measures(&records).any(|measure| measure.repeat.is_none() && measure.workload.is_some());
    if !has_results {
        let end = records.pop_if(|record| matches!(record, Record::End { .. }));
        let results = summarise(&records);
        records.extend(results);
        records.extend(end);
    }
    records
}

fn repeats<'a>(
    records: &'a [Record],
    workload: &'a str,
    subject: &'a str,
) -> impl Iterator<Item = &'a Measure> {
    measures(records).filter(move |measure| {
        measure.repeat.is_some()
            && measure.workload.as_deref() == Some(workload)
            && measure.subject == subject
    })
}

/// Name of the measure that counts failed requests. Every repeat records it, even if it is 0.
const ERRORS: &str = "errors";

/// Returns whether a repeat leaves out the count `name` if it is 0. This holds for errors by cause
/// and for requests that the load generator aborts on purpose. A missing count then means 0.
fn is_recorded_where_it_happened(name: &str) -> bool {
    name == "broken_off" || (name.starts_with("errors_") && name != "errors_outside_fault")
}

fn means(records: &[Record], workload: &str, subject: &str) -> Vec<Measure> {
    let names = in_order(repeats(records, workload, subject).map(|measure| measure.name.as_str()));
    let mean = |name: &str| {
        let of_it = repeats(records, workload, subject).filter(|measure| measure.name == name);
        let (mut values, units): (Vec<f64>, Vec<&str>) =
            of_it.map(|measure| (measure.value, measure.unit.as_str())).unzip();
        if is_recorded_where_it_happened(name) {
            let all = repeats(records, workload, subject)
                .filter(|measure| measure.name == ERRORS)
                .count();
            values.resize(values.len().max(all), 0.0);
        }
        let measure =
            Measure::of(name, subject, &values, units.first().copied().unwrap_or_default());
        Measure { workload: Some(workload.into()), ..measure }
    };
    names.into_iter().map(mean).collect()
}

fn ratios(records: &[Record], workload: &str, first: &str, other: &str) -> Vec<Measure> {
    let measure = |name: &&str| {
        let Summary { mean, low, high, count, .. } = ratio(records, workload, name, first, other)?;
        let repeats = u32::try_from(count).unwrap_or(u32::MAX);
        let name = format!("{name}_ratio_to_{other}");
        let workload = Some(workload.into());
        let measure = Measure::once(&name, first, mean, "ratio");
        Some(Measure { low, high, repeats, workload, ..measure })
    };
    WITH_RATIOS.iter().filter_map(measure).collect()
}

/// Returns the ratio of a measure of `upper` to the measure of `lower`: the geometric mean over the
/// repeats. A repeat in which one of the two proxies has no value above 0 does not count.
pub(super) fn ratio(
    records: &[Record],
    workload: &str,
    name: &str,
    upper: &str,
    lower: &str,
) -> Option<Summary> {
    let value = |subject, repeat| {
        let mut of_it = repeats(records, workload, subject);
        of_it
            .find(|measure| measure.name == name && measure.repeat == repeat)
            .map(|measure| measure.value)
    };
    let own = repeats(records, workload, upper).filter(|measure| measure.name == name);
    Summary::of_pairs(
        own.filter_map(|measure| Some((measure.value, value(lower, measure.repeat)?))),
    )
}

/// Returns the values of the repeats 1 to n, in this order. Returns nothing if a repeat is missing
/// or occurs twice. So the values of two proxies with equally many repeats are pairs.
pub(super) fn in_order_of_repeats(
    records: &[Record],
    workload: &str,
    subject: &str,
    name: &str,
) -> Vec<f64> {
    let found = repeats(records, workload, subject).filter(|measure| measure.name == name);
    let mut found: Vec<(u32, f64)> =
        found.filter_map(|measure| Some((measure.repeat?, measure.value))).collect();
    found.sort_by_key(|(repeat, _)| *repeat);
    let is_whole = found.iter().map(|(repeat, _)| *repeat).eq(1..=found.len() as u32);
    if is_whole { found.into_iter().map(|(_, value)| value).collect() } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::result;
    use super::super::tests::records;
    use super::*;

    #[test]
    fn ratios_are_taken_within_each_repeat() {
        let results = summarise(&records());
        let ratio = result(&results, "memory-hit", "foxy", "cpu_us_per_request_ratio_to_nginx");
        let ratio = ratio.expect("made");
        assert_eq!(ratio.repeats, 3);
        for end in [ratio.value, ratio.low, ratio.high] {
            assert!((end - 0.5).abs() < 1e-9, "{ratio:?}");
        }
        let mean = result(&results, "memory-hit", "nginx", "cpu_us_per_request").expect("made");
        assert_eq!((mean.value, mean.unit.as_str()), (24.0, "us"));
        assert!(mean.low < 24.0 && mean.high > 24.0);
    }

    #[test]
    fn a_cause_of_errors_counts_as_none_in_the_repeats_without_it() {
        let mut all = records();
        for (name, workload) in
            [("errors_status", "memory-hit"), ("other", "memory-hit"), ("errors_status", "fill")]
        {
            let measure = Measure::once(name, "nginx", 3.0, "requests");
            all.push(Record::Measure(Measure {
                workload: Some(workload.into()),
                repeat: Some(2),
                ..measure
            }));
        }
        let results = summarise(&all);
        let mean = |workload, name| {
            let result = result(&results, workload, "nginx", name).expect("made");
            (result.value, result.repeats)
        };
        assert_eq!(mean("memory-hit", "errors_status"), (1.0, 3));
        assert_eq!(mean("memory-hit", "other"), (3.0, 1));
        assert_eq!(mean("fill", "errors_status"), (3.0, 1), "nobody counted errors there");
    }

    #[test]
    fn results_are_not_taken_for_repeats() {
        let mut all = records();
        all.extend(summarise(&records()));
        assert_eq!(summarise(&all), summarise(&records()));
    }

    #[test]
    fn a_proxy_without_a_value_has_no_ratio() {
        let only_foxy: Vec<Record> = records()
            .into_iter()
            .filter(|record| {
                !matches!(record, Record::Measure(measure)
                    if measure.subject == "nginx" && measure.name == "cpu_us_per_request")
            })
            .collect();
        let results = summarise(&only_foxy);
        assert!(
            result(&results, "memory-hit", "foxy", "cpu_us_per_request_ratio_to_nginx").is_none()
        );
        assert!(
            result(&results, "memory-hit", "foxy", "requests_per_second_ratio_to_nginx").is_some()
        );
    }
}
