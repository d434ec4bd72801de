//! A comparison as a JUnit report, which continuous integration shows: a case for each proxy under each workload, and one for
//! each bar.

use super::{result, subjects, workloads};
use crate::chart::escape;
use crate::record::Record;

/// A bar that was given, and how it was missed, if it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The bar as it was given.
    pub name: String,
    /// What was measured instead.
    pub missed: Option<String>,
}

/// The report.
#[must_use]
pub fn junit(records: &[Record], checks: &[Check]) -> String {
    let mut suites: Vec<(String, Vec<String>, usize)> = Vec::new();
    for workload in workloads(records) {
        let cases: Vec<(String, bool)> =
            subjects(records, workload).iter().map(|subject| answers(records, workload, subject)).collect();
        let failures = cases.iter().filter(|(_, failed)| *failed).count();
        suites.push((workload.to_owned(), cases.into_iter().map(|(case, _)| case).collect(), failures));
    }
    let failed_runs = records.iter().filter_map(|record| match record {
        Record::FailedRun { subject, reason } => Some(case(subject, "runs", Some(reason))),
        _ => None,
    });
    let failed_runs: Vec<String> = failed_runs.collect();
    if !failed_runs.is_empty() {
        let count = failed_runs.len();
        suites.push(("runs".into(), failed_runs, count));
    }
    if !checks.is_empty() {
        let cases = checks.iter().map(|check| case("bars", &check.name, check.missed.as_deref()));
        let missed = checks.iter().filter(|check| check.missed.is_some()).count();
        suites.push(("bars".into(), cases.collect(), missed));
    }
    let suite = |(name, cases, failures): &(String, Vec<String>, usize)| {
        let (name, tests) = (escape(name), cases.len());
        let cases = cases.concat();
        format!(
            "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\">\n{cases}  </testsuite>\n"
        )
    };
    let suites: String = suites.iter().map(suite).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"foxy compare\">\n{suites}</testsuites>\n"
    )
}

/// Whether a proxy gave whole and right answers only.
fn answers(records: &[Record], workload: &str, subject: &str) -> (String, bool) {
    let wrong = ["wrong_bytes", "errors"].into_iter().filter_map(|name| {
        let measure = result(records, workload, subject, name)?;
        (measure.value > 0.0).then(|| format!("{name} is {}", measure.value))
    });
    let wrong: Vec<String> = wrong.collect();
    let failure = (!wrong.is_empty()).then(|| wrong.join(", "));
    (case(subject, "gives whole and right answers", failure.as_deref()), failure.is_some())
}

fn case(class: &str, name: &str, failure: Option<&str>) -> String {
    let (class, name) = (escape(class), escape(name));
    match failure {
        None => format!("    <testcase classname=\"{class}\" name=\"{name}\"/>\n"),
        Some(text) => format!(
            "    <testcase classname=\"{class}\" name=\"{name}\"><failure message=\"{}\"/></testcase>\n",
            escape(text)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::summarise;
    use super::super::tests::records;
    use super::*;
    use crate::record::Measure;

    #[test]
    fn wrong_answers_failed_runs_and_missed_bars_are_failures() {
        let mut all = records();
        let wrong = Measure::once("wrong_bytes", "nginx", 3.0, "B");
        all.push(Record::Measure(Measure { workload: Some("memory-hit".into()), repeat: Some(4), ..wrong }));
        all.extend(summarise(&all.clone()));
        all.push(Record::FailedRun { subject: "squid".into(), reason: "\"no\" <port>".into() });
        let checks = [
            Check { name: "errors>0".into(), missed: None },
            Check { name: "hit_ratio<1".into(), missed: Some("hit_ratio is 0.5".into()) },
        ];
        let text = junit(&all, &checks);
        assert!(text.contains("<testsuite name=\"memory-hit\" tests=\"2\" failures=\"1\">"), "{text}");
        assert!(text.contains("wrong_bytes is 0.75"), "{text}");
        assert!(text.contains("&quot;no&quot; &lt;port&gt;"), "{text}");
        assert!(text.contains("<testsuite name=\"bars\" tests=\"2\" failures=\"1\">"), "{text}");
        assert!(text.contains("name=\"errors&gt;0\"/>"), "{text}");
    }
}
