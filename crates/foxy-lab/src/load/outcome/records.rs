//! Converts the report of a load run into run records (the lines of `--json`).

use super::{ErrorCause, LoadReport, Tally, share};
use crate::load::fault::AroundFault;
use foxy_report::{Measurable, Measure, Record};
use std::time::Duration;

/// The names of the hit ratios that the clients measure. The records lack them if most answers
/// contain no request number.
pub const HIT_RATIOS: [&str; 2] = ["hit_ratio", "byte_hit_ratio"];

impl LoadReport {
    /// Returns the names of all measures that the records can contain.
    pub fn measurable(subject: &str) -> Measurable {
        let plain = [
            "requests_per_second",
            "hit_ratio",
            "byte_hit_ratio",
            "offered_hit_ratio",
            "offered_byte_hit_ratio",
            "wrong_bytes",
            "errors",
            "errors_{cause}",
            "requests",
            "broken_off",
            "origin_requests",
            "origin_bytes",
            "two_sided_hit_ratio",
            "two_sided_byte_hit_ratio",
            "answered_during_fault",
            "errors_outside_fault",
            "latency_{of}_us",
            "cpu_us_per_request",
            "generator_busiest_thread",
            "generator_cpu_us_per_request",
            "generator_late_p99_us",
        ];
        Measurable::of(subject, &plain)
            .choosing("cause", ErrorCause::ALL.map(ErrorCause::name))
            .choosing("of", ["mean", "p50", "p90", "p99", "p999"])
    }

    /// Returns the report as run records. `processor_time` is the CPU time of the proxy, if known.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn records(&self, subject: &str, processor_time: Option<Duration>) -> Vec<Record> {
        let mut values = vec![
            ("requests_per_second", self.rate(), "1/s"),
            ("wrong_bytes", self.wrong_bytes as f64, "B"),
            ("errors", self.failed() as f64, "requests"),
            ("requests", self.answers as f64, "requests"),
        ];
        let shares = [
            ("offered_hit_ratio", self.offered_hit_ratio()),
            ("offered_byte_hit_ratio", share(self.offered.bytes, self.plain.bytes)),
            (HIT_RATIOS[0], self.hit_ratio()),
            (HIT_RATIOS[1], self.byte_hit_ratio()),
        ];
        values.extend(shares.into_iter().filter_map(|(name, value)| Some((name, value?, "share"))));
        values.extend(self.origin.map(|origin| self.two_sided(origin)).into_iter().flatten());
        if let Some(AroundFault { begun, answered, unexcused }) = self.around_fault {
            let answered =
                share(answered, begun).map(|value| ("answered_during_fault", value, "share"));
            values.extend(answered);
            values.push(("errors_outside_fault", unexcused as f64, "requests"));
        }
        for (name, quantile) in [
            ("latency_p50_us", 0.5),
            ("latency_p90_us", 0.9),
            ("latency_p99_us", 0.99),
            ("latency_p999_us", 0.999),
        ] {
            values.push((name, self.latencies.at(quantile) as f64, "us"));
        }
        values.push(("latency_mean_us", self.latencies.mean(), "us"));
        if let Some(time) = processor_time.filter(|_| self.answers > 0) {
            values.push((
                "cpu_us_per_request",
                time.as_secs_f64() * 1e6 / self.answers as f64,
                "us",
            ));
        }
        values.extend(self.of_generator());
        let measures =
            values.into_iter().map(|(name, value, unit)| Measure::once(name, subject, value, unit));
        let mut records: Vec<Record> = measures.map(Record::Measure).collect();
        for cause in ErrorCause::ALL.into_iter().filter(|&cause| self.errors[cause as usize] > 0) {
            let name = format!("errors_{}", cause.name());
            let count = self.errors[cause as usize] as f64;
            records.push(Record::Measure(Measure::once(&name, subject, count, "requests")));
        }
        let quantiles = self.latencies.quantiles();
        let (name, subject) = ("latency".into(), subject.into());
        records.push(Record::Histogram { name, subject, quantiles, workload: None });
        records
    }

    /// Returns the share of plain GETs (without no-cache or a condition) that a cache answered.
    /// Returns `None` without plain GETs, or if most answers contain no request number.
    pub fn hit_ratio(&self) -> Option<f64> {
        share(self.hits, self.plain.requests).filter(|_| self.knows_hits())
    }

    /// Returns the share of the bytes of plain GETs that a cache answered. Returns `None` without
    /// such bytes, or if most answers contain no request number.
    fn byte_hit_ratio(&self) -> Option<f64> {
        share(self.hit_bytes, self.plain.bytes).filter(|_| self.knows_hits())
    }

    /// Returns the hit ratio of a perfect cache: the share of plain GETs (without no-cache or a
    /// condition) that repeat a request for a cacheable object. Returns `None` without plain GETs.
    pub fn offered_hit_ratio(&self) -> Option<f64> {
        share(self.offered.requests, self.plain.requests)
    }

    /// Whether most answers contain a request number, so that hits are known.
    pub const fn knows_hits(&self) -> bool {
        self.unnumbered <= self.answers / 2
    }

    /// Returns the number of all requests: answered, ended early on purpose, or failed.
    pub fn asked(&self) -> u64 {
        self.answers + self.broken_off + self.failed()
    }

    /// Returns the number of requests that clients sent or tried to send.
    pub fn begun(&self) -> u64 {
        self.asked() - self.not_sent()
    }

    /// Returns the origin's counts, and the hit ratios computed from the counts of clients and
    /// origin. If a request failed, the hit ratios are left out: the origin may or may not have
    /// counted this request.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn two_sided(&self, origin: Tally) -> Vec<(&'static str, f64, &'static str)> {
        let mut values = vec![
            ("origin_requests", origin.requests as f64, "requests"),
            ("origin_bytes", origin.bytes as f64, "B"),
        ];
        if self.failed() == 0 {
            let missed = [
                ("two_sided_hit_ratio", share(origin.requests, self.asked())),
                ("two_sided_byte_hit_ratio", share(origin.bytes, self.bytes)),
            ];
            let known = |(name, missed): (_, Option<f64>)| Some((name, 1.0 - missed?, "share"));
            values.extend(missed.into_iter().filter_map(known));
        }
        values
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn of_generator(&self) -> Vec<(&'static str, f64, &'static str)> {
        let mut values = vec![("generator_busiest_thread", self.generator.busiest, "share")];
        if self.answers > 0 {
            let each = self.generator.processor_time.as_secs_f64() * 1e6 / self.answers as f64;
            values.push(("generator_cpu_us_per_request", each, "us"));
        }
        if self.generator.late.count() > 0 {
            values.push(("generator_late_p99_us", self.generator.late.at(0.99) as f64, "us"));
        }
        if self.broken_off > 0 {
            values.push(("broken_off", self.broken_off as f64, "requests"));
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(records: &[Record], wanted: &str) -> Option<f64> {
        records.iter().find_map(|record| match record {
            Record::Measure(measure) if measure.name == wanted => Some(measure.value),
            _ => None,
        })
    }

    #[test]
    fn processor_time_is_given_a_request() {
        let plain = Tally { requests: 1000, bytes: 0 };
        let elapsed = Duration::from_secs(2);
        let report =
            LoadReport { answers: 1000, plain, hits: 250, elapsed, ..LoadReport::default() };
        let records = report.records("foxy", Some(Duration::from_millis(8)));
        assert_eq!(value(&records, "cpu_us_per_request"), Some(8.0));
        assert_eq!(value(&records, "requests_per_second"), Some(500.0));
        assert_eq!(value(&records, "hit_ratio"), Some(0.25));
        assert_eq!(value(&records, "two_sided_hit_ratio"), None);
    }

    #[test]
    fn a_ratio_of_nothing_has_no_value() {
        let report = |bytes| LoadReport {
            answers: 10,
            plain: Tally { requests: 10, bytes },
            bytes,
            origin: Some(Tally { requests: 10, bytes }),
            ..LoadReport::default()
        };
        let ratios = |report: &LoadReport, kind: &str| {
            let records = report.records("foxy", None);
            ["", "offered_", "two_sided_"].map(|of| value(&records, &format!("{of}{kind}_ratio")))
        };
        let empty = LoadReport { origin: Some(Tally::default()), ..LoadReport::default() };
        assert_eq!(ratios(&report(0), "byte_hit"), [None; 3]);
        assert_eq!(ratios(&report(70), "byte_hit"), [Some(0.0); 3]);
        assert_eq!(ratios(&report(0), "hit"), [Some(0.0); 3]);
        assert_eq!(ratios(&empty, "hit"), [None; 3]);
    }

    #[test]
    fn hit_ratios_are_not_known_where_most_answers_do_not_say_whose_they_are() {
        let known = |unnumbered| {
            let plain = Tally { requests: 10, bytes: 100 };
            let report = LoadReport { answers: 10, plain, unnumbered, ..LoadReport::default() };
            let records = report.records("foxy", None);
            HIT_RATIOS.map(|name| value(&records, name).is_some())
        };
        assert_eq!((known(0), known(5), known(6)), ([true; 2], [true; 2], [false; 2]));
    }

    #[test]
    fn hit_ratios_from_both_sides_count_all_that_was_asked() {
        let origin = Some(Tally { requests: 50, bytes: 4000 });
        let report = LoadReport {
            answers: 90,
            broken_off: 10,
            bytes: 10_000,
            origin,
            ..LoadReport::default()
        };
        let records = report.records("foxy", None);
        assert_eq!(value(&records, "two_sided_hit_ratio"), Some(0.5));
        assert_eq!(value(&records, "two_sided_byte_hit_ratio"), Some(0.6));
        let mut failing = report;
        failing.fail(ErrorCause::Timeout);
        let records = failing.records("foxy", None);
        assert_eq!(value(&records, "two_sided_hit_ratio"), None);
        assert_eq!(value(&records, "origin_requests"), Some(50.0));
    }
}
