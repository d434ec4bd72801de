//! A point of the benchmark as run records.

use super::cause::Cause;
use super::{Part, PointReport};
use foxy_report::{Measurable, Measure, Record};

impl PointReport {
    /// Measures of both phases under the workload `wpb-CLIENTS`, and of each part under
    /// `wpb-CLIENTS-PART`.
    pub fn records(&self, subject: &str) -> Vec<Record> {
        let point = format!("wpb-{}", self.clients);
        let measure = |workload: &str, name: &str, value, unit: &str| {
            let workload = Some(workload.to_owned());
            Measure { workload, ..Measure::once(name, subject, value, unit) }
        };
        let shares = [
            ("hit_ratio", self.hit_ratio()),
            ("byte_hit_ratio", self.byte_hit_ratio()),
            ("offered_hit_ratio", self.offered()),
        ];
        let shares = shares
            .into_iter()
            .filter_map(|(name, value)| Some(measure(&point, name, value?, "share")));
        let mut measures: Vec<Measure> = shares.collect();
        measures.push(measure(&point, "fetched_bytes", number(self.fetched()), "B"));
        if let Some(mean) = self.mean() {
            measures.push(measure(&point, "latency_mean_us", mean * 1000.0, "us"));
        }
        for part in Part::ALL {
            let (workload, report) = (format!("{point}-{}", part.name()), self.part(part));
            let mut add = |name: &str, value: f64, unit: &str| {
                measures.push(measure(&workload, name, value, unit));
            };
            add("requests", number(report.answers + report.failed()), "requests");
            add("errors", number(report.failed()), "requests");
            for (cause, count) in report.causes() {
                add(&format!("errors_{}", cause.name()), number(count), "requests");
            }
            add("generator_busy", report.busy(), "share");
            add("elapsed_s", report.elapsed.as_secs_f64(), "s");
            if let Some(mean) = report.mean() {
                add("latency_mean_us", mean * 1000.0, "us");
                for (quantile, name) in [(0.5, "latency_p50_us"), (0.99, "latency_p99_us")] {
                    add(name, number(report.latencies.at(quantile)), "us");
                }
            }
        }
        measures.into_iter().map(Record::Measure).collect()
    }
}

/// Names of all measures of a point.
pub fn measurable(subject: &str, clients: u32) -> Vec<Measurable> {
    let whole =
        ["hit_ratio", "byte_hit_ratio", "offered_hit_ratio", "fetched_bytes", "latency_mean_us"];
    let of_part =
        ["requests", "errors", "errors_{cause}", "generator_busy", "elapsed_s", "latency_{of}_us"];
    let point = format!("wpb-{clients}");
    let parts = Part::ALL.map(|part| {
        Measurable::of(subject, &of_part)
            .choosing("cause", Cause::ALL.map(Cause::name))
            .choosing("of", ["mean", "p50", "p99"])
            .under(&format!("{point}-{}", part.name()))
    });
    std::iter::once(Measurable::of(subject, &whole).under(&point)).chain(parts).collect()
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
const fn number(count: u64) -> f64 {
    count as f64
}
