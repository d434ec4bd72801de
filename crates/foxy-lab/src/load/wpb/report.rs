//! The counts of a point (a test with a fixed number of clients) of the Wisconsin Proxy Benchmark.
//! Also the causes of failures, and the conversion into run records.

use super::exchange::WpbAnswered;
use crate::named::named;
use foxy_report::{Latencies, Measurable, Measure, Record};
use foxy_workload::wpb::WpbRequest;
use std::io;
use std::time::Duration;

named! {
    /// A part of a point (a test with a fixed number of clients). All clients begin a part
    /// together.
    pub enum Part {
        /// The control: the files of phase 1 at URLs whose answers must not be cached.
        Control = "no-cache",
        /// Phase 1: every client requests only new files.
        First = "phase-1",
        /// Phase 2: half of the requests repeat files.
        Second = "phase-2",
    }
}

/// The counts of one [`Part`] of the test with one number of clients.
#[derive(Clone, Debug, Default)]
pub struct PartReport {
    /// The number of complete and correct answers.
    pub answers: u64,
    /// The body bytes of the correct answers.
    pub bytes: u64,
    /// The number of correct answers to requests that repeat a file.
    pub repeats: u64,
    /// The number of answers from a cache.
    pub hits: u64,
    /// The body bytes of hits.
    pub hit_bytes: u64,
    /// The number of failed requests, in the order of [`Cause::ALL`].
    pub errors: [u64; Cause::ALL.len()],
    /// The times from the start of the connection to the end of the answer.
    pub latencies: Latencies,
    /// The time from the start of the first request to the end of the last answer.
    pub elapsed: Duration,
    /// The CPU time of the thread on which the clients run.
    pub generator: Duration,
}

impl PartReport {
    pub(super) fn take(
        &mut self,
        request: &WpbRequest,
        outcome: Result<WpbAnswered, Cause>,
        latency: Duration,
    ) {
        match outcome {
            Ok(answer) => {
                self.answers += 1;
                self.bytes += answer.bytes;
                self.repeats += u64::from(request.age.is_some());
                self.hits += u64::from(answer.hit);
                self.hit_bytes += if answer.hit { answer.bytes } else { 0 };
                self.latencies.add(latency);
            }
            Err(cause) => self.errors[cause as usize] += 1,
        }
    }

    /// Returns the number of all failed requests.
    pub fn failed(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// Returns the causes with at least one failed request, and their counts.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, u64)> + use<> {
        Cause::ALL.into_iter().zip(self.errors).filter(|&(_, count)| count > 0)
    }

    /// Returns the share of the part's duration in which the clients' thread used a CPU. If it is
    /// near 1, the clients and not the proxy limited the rate.
    pub fn busy(&self) -> f64 {
        self.generator.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Returns the mean latency in milliseconds. Returns `None` without answers.
    pub fn mean(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.latencies.mean() / 1000.0)
    }
}

/// The counts of a point (a test with a fixed number of clients).
#[derive(Clone, Debug)]
pub struct PointReport {
    /// The number of clients in the test.
    pub clients: u32,
    /// The number of servers.
    pub servers: u32,
    /// The counts of the parts, in the order of [`Part::ALL`].
    pub parts: [PartReport; 3],
    /// Whether the test ran to its end. If false, sums over both phases mean nothing.
    pub whole: bool,
}

impl PointReport {
    /// Returns the counts of a part.
    pub const fn part(&self, part: Part) -> &PartReport {
        &self.parts[part as usize]
    }

    fn phases(&self) -> [&PartReport; 2] {
        [self.part(Part::First), self.part(Part::Second)]
    }

    fn sum(&self, count: impl Fn(&PartReport) -> u64) -> u64 {
        self.phases().into_iter().map(count).sum()
    }

    /// Returns the hit ratio over both phases. Returns `None` unless both phases are complete.
    pub fn hit_ratio(&self) -> Option<f64> {
        self.of_both(|part| part.hits, |part| part.answers)
    }

    /// Returns the byte hit ratio over both phases. Returns `None` unless both phases are complete.
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        self.of_both(|part| part.hit_bytes, |part| part.bytes)
    }

    /// Returns the hit ratio of a perfect cache: the share of repeated requests in both phases.
    /// Returns `None` unless both phases are complete.
    pub fn offered(&self) -> Option<f64> {
        self.of_both(|part| part.repeats, |part| part.answers)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn of_both(
        &self,
        part: impl Fn(&PartReport) -> u64,
        whole: impl Fn(&PartReport) -> u64,
    ) -> Option<f64> {
        self.has_both().then(|| self.sum(part) as f64 / self.sum(whole).max(1) as f64)
    }

    fn has_both(&self) -> bool {
        self.whole && self.phases().iter().all(|part| part.answers > 0)
    }

    /// Returns the mean latency over both phases in milliseconds. Returns `None` unless both phases
    /// are complete.
    pub fn mean(&self) -> Option<f64> {
        if !self.has_both() {
            return None;
        }
        let mut both = Latencies::default();
        for part in self.phases() {
            both.merge(&part.latencies);
        }
        (both.count() > 0).then(|| both.mean() / 1000.0)
    }

    /// Returns the body bytes of misses in both phases, which the proxy fetched from the servers.
    pub fn fetched(&self) -> u64 {
        self.sum(|part| part.bytes - part.hit_bytes)
    }

    /// Returns the first part of the benchmark in which the proxy answered no request correctly.
    pub fn silent(&self) -> Option<Part> {
        Part::ALL.into_iter().find(|&part| self.part(part).answers == 0)
    }
}

named! {
    /// The reason why a request failed.
    pub enum Cause {
        /// The connection was refused, or was reset before the first byte.
        Refused = "refused",
        /// No connection could be opened for another reason, for example because no port was free.
        NoConnection = "no_connection",
        /// The answer was not complete within the time limit.
        Timeout = "timeout",
        /// The connection closed before the first byte.
        Unanswered = "unanswered",
        /// The connection ended before the end of the answer.
        Incomplete = "incomplete",
        /// The received bytes are not HTTP.
        Protocol = "protocol",
        /// The status is not 200.
        Status = "status",
        /// The answer is complete but has the wrong length.
        Length = "length",
        /// The body contains wrong bytes.
        BodyMismatch = "body_mismatch",
        /// The answer does not come from a server of the benchmark.
        ForeignReply = "foreign_reply",
        /// A cache answered in the control part, whose answers must not be stored.
        HitOnNoStore = "hit_on_no_store",
    }
}

impl Cause {
    pub(super) fn of_connect(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Self::Refused,
            io::ErrorKind::TimedOut => Self::Timeout,
            _ => Self::NoConnection,
        }
    }

    /// Returns the cause for a connection that was lost. `error` is `None` for a normal close.
    /// `begun` tells whether a part of the answer had arrived.
    pub(super) fn of_end(error: Option<&io::Error>, begun: bool) -> Self {
        match error {
            _ if begun => Self::Incomplete,
            Some(_) => Self::Refused,
            None => Self::Unanswered,
        }
    }
}

impl PointReport {
    /// Returns run records (the lines of `--json`). The measures of both phases together have the
    /// workload name `wpb-CLIENTS`, the measures of a part `wpb-CLIENTS-PART`.
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

/// Returns the names of all measures of the test with this number of clients.
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
