//! Writes a comparison as a JUnit report for continuous integration. The report has a test case for
//! each proxy under each workload, and for each limit of `--fail-if`.

use super::{INCOMPLETE, is_incomplete, subjects, workloads, wrong_answers};
use crate::chart::escape;
use crate::record::Record;

/// A limit that the user set with `--fail-if`, such as `hit_ratio<1`. The run fails if the measured
/// value is in this range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The limit as the user wrote it.
    pub name: String,
    /// If the measured value is in the range, a text with this value; otherwise `None`.
    pub missed: Option<String>,
}

/// Returns the JUnit report. A run that ended early adds a failed test case.
pub fn junit(records: &[Record], checks: &[Check]) -> String {
    let under = |workload: &str| {
        let cases = subjects(records, workload)
            .iter()
            .map(|subject| answers(records, workload, subject))
            .collect();
        Suite { name: workload.to_owned(), cases }
    };
    let mut suites: Vec<Suite> = workloads(records).into_iter().map(under).collect();
    let incomplete = is_incomplete(records)
        .then(|| Case::new("run", "complete", Outcome::Failed(INCOMPLETE.into())));
    let runs = incomplete.into_iter().chain(records.iter().filter_map(|record| match record {
        Record::FailedRun { subject, reason } => {
            Some(Case::new(subject, "runs", Outcome::Failed(reason.clone())))
        }
        Record::LeftOut { subject, reason } => {
            Some(Case::new(subject, "runs", Outcome::Skipped(reason.clone())))
        }
        _ => None,
    }));
    suites.push(Suite { name: "runs".into(), cases: runs.collect() });
    let bar = |check: &Check| Case::new("bars", &check.name, Outcome::of(check.missed.clone()));
    suites.push(Suite { name: "bars".into(), cases: checks.iter().map(bar).collect() });
    let suites: String =
        suites.iter().filter(|suite| !suite.cases.is_empty()).map(Suite::text).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"foxy compare\">\n{suites}</testsuites>\n"
    )
}

/// Returns the test case that fails if a proxy's answers had errors or wrong bytes.
fn answers(records: &[Record], workload: &str, subject: &str) -> Case {
    let wrong = wrong_answers(records, workload, subject);
    let failure = (!wrong.is_empty()).then(|| wrong.join(", "));
    Case::new(subject, "gives whole and right answers", Outcome::of(failure))
}

struct Suite {
    name: String,
    cases: Vec<Case>,
}

struct Case {
    class: String,
    name: String,
    outcome: Outcome,
}

/// The result of a test case, with the reason why it failed or was skipped.
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

impl Outcome {
    fn of(failure: Option<String>) -> Self {
        failure.map_or(Self::Passed, Self::Failed)
    }
}

impl Suite {
    fn text(&self) -> String {
        let count = |wanted: fn(&Outcome) -> bool| {
            self.cases.iter().filter(|case| wanted(&case.outcome)).count()
        };
        let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
        let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        let (name, tests) = (escape(&self.name), self.cases.len());
        let cases: String = self.cases.iter().map(Case::text).collect();
        format!(
            "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\">\n{cases}  </testsuite>\n"
        )
    }
}

impl Case {
    fn new(class: &str, name: &str, outcome: Outcome) -> Self {
        Self { class: class.to_owned(), name: name.to_owned(), outcome }
    }

    fn text(&self) -> String {
        let begin = format!(
            "    <testcase classname=\"{}\" name=\"{}\"",
            escape(&self.class),
            escape(&self.name)
        );
        let because = |kind: &str, why: &str| {
            format!("{begin}><{kind} message=\"{}\"/></testcase>\n", escape(why))
        };
        match &self.outcome {
            Outcome::Passed => format!("{begin}/>\n"),
            Outcome::Failed(why) => because("failure", why),
            Outcome::Skipped(why) => because("skipped", why),
        }
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
        all.push(Record::Measure(Measure {
            workload: Some("memory-hit".into()),
            repeat: Some(4),
            ..wrong
        }));
        all.extend(summarise(&all.clone()));
        all.push(Record::FailedRun { subject: "squid".into(), reason: "\"no\" <port>".into() });
        let checks = [
            Check { name: "errors>0".into(), missed: None },
            Check { name: "hit_ratio<1".into(), missed: Some("hit_ratio is 0.5".into()) },
        ];
        let text = junit(&all, &checks);
        assert!(
            text.contains(
                "<testsuite name=\"memory-hit\" tests=\"2\" failures=\"1\" skipped=\"0\">"
            ),
            "{text}"
        );
        assert!(text.contains("wrong_bytes is 0.75"), "{text}");
        assert!(text.contains("&quot;no&quot; &lt;port&gt;"), "{text}");
        assert!(
            text.contains("<testsuite name=\"bars\" tests=\"2\" failures=\"1\" skipped=\"0\">"),
            "{text}"
        );
        assert!(text.contains("name=\"errors&gt;0\"/>"), "{text}");
    }

    #[test]
    fn a_run_that_was_ended_early_fails_though_nothing_that_it_measured_does() {
        let incomplete = "<testsuite name=\"runs\" tests=\"1\" failures=\"1\" skipped=\"0\">\n    \
            <testcase classname=\"run\" name=\"complete\"><failure message=\"Incomplete: ";
        for mut records in [Vec::new(), records()] {
            assert!(junit(&records, &[]).contains(incomplete), "{}", junit(&records, &[]));
            records.push(Record::End { held: true });
            assert!(!junit(&records, &[]).contains("complete"), "{}", junit(&records, &[]));
        }
    }

    #[test]
    fn errors_that_a_fault_explains_fail_nobody() {
        let under_fault = |outside, wrong_bytes| {
            let measures = [
                ("errors", 500.0),
                ("errors_outside_fault", outside),
                ("wrong_bytes", wrong_bytes),
            ];
            let record = |(name, value)| {
                let measure = Measure::once(name, "nginx", value, "requests");
                Record::Measure(Measure { workload: Some("origin-down".into()), ..measure })
            };
            junit(&[&measures.map(record)[..], &[Record::End { held: true }]].concat(), &[])
        };
        assert!(under_fault(0.0, 0.0).contains("failures=\"0\""), "{}", under_fault(0.0, 0.0));
        assert!(under_fault(2.0, 0.0).contains("message=\"errors_outside_fault is 2\""));
        assert!(under_fault(0.0, 1.0).contains("message=\"wrong_bytes is 1\""));
    }

    #[test]
    fn who_was_left_out_is_skipped() {
        let reason = "not installed".into();
        let text = junit(
            &[Record::LeftOut { subject: "squid".into(), reason }, Record::End { held: true }],
            &[],
        );
        assert!(
            text.contains("<testsuite name=\"runs\" tests=\"1\" failures=\"0\" skipped=\"1\">"),
            "{text}"
        );
        let expected = "<testcase classname=\"squid\" name=\"runs\"><skipped message=\"not installed\"/></testcase>";
        assert!(text.contains(expected), "{text}");
    }
}
