//! What a load run saw: counts, causes of errors, latencies; and the run records they become.

use crate::client::Answered;
use foxy_report::{Latencies, Measure, Record};
use std::time::Duration;

/// Why a request did not end in a whole, right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCause {
    /// No connection to the proxy.
    Connect,
    /// No answer, or not all of it, within the time limit.
    Timeout,
    /// The connection broke before the answer was complete.
    Incomplete,
    /// The answer is not HTTP.
    Protocol,
    /// A status other than 200.
    Status,
    /// A complete answer of the wrong length.
    Length,
}

impl ErrorCause {
    /// Every cause, in the order of [`LoadReport::errors`].
    pub const ALL: [Self; 6] =
        [Self::Connect, Self::Timeout, Self::Incomplete, Self::Protocol, Self::Status, Self::Length];

    /// Its name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Incomplete => "incomplete",
            Self::Protocol => "protocol",
            Self::Status => "status",
            Self::Length => "length",
        }
    }
}

/// Everything a load run counted.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Complete answers of status 200 and the right length.
    pub answers: u64,
    /// Answers that carried another request's number: they were stored before.
    pub hits: u64,
    /// Body bytes of all answers.
    pub bytes: u64,
    /// Body bytes of hits.
    pub hit_bytes: u64,
    /// Body bytes that were not the right ones.
    pub wrong_bytes: u64,
    /// Failed requests, by [`ErrorCause::ALL`].
    pub errors: [u64; ErrorCause::ALL.len()],
    /// From the intended start of each answered request to the end of its answer.
    pub latencies: Latencies,
    /// From the first request's start to the last one's end.
    pub elapsed: Duration,
}

impl LoadReport {
    /// Counts the answer to request `number`, `latency` after its intended start.
    pub(crate) fn succeed(&mut self, number: u64, answer: &Answered, latency: Duration) {
        let hit = answer.reply_to.is_some_and(|id| id != number);
        self.answers += 1;
        self.bytes += answer.length;
        self.wrong_bytes += answer.wrong_bytes;
        self.hits += u64::from(hit);
        self.hit_bytes += if hit { answer.length } else { 0 };
        self.latencies.add(latency);
    }

    /// Counts a failed request.
    pub fn fail(&mut self, cause: ErrorCause) {
        self.errors[cause as usize] += 1;
    }

    /// All failed requests.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// Adds what another client counted.
    pub fn merge(&mut self, other: &Self) {
        self.answers += other.answers;
        self.hits += other.hits;
        self.bytes += other.bytes;
        self.hit_bytes += other.hit_bytes;
        self.wrong_bytes += other.wrong_bytes;
        for (sum, count) in self.errors.iter_mut().zip(other.errors) {
            *sum += count;
        }
        self.latencies.merge(&other.latencies);
        self.elapsed = self.elapsed.max(other.elapsed);
    }

    /// Answers a second.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn rate(&self) -> f64 {
        self.answers as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Share of answers that were hits; 0 without answers.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        share(self.hits, self.answers)
    }

    /// The run as records about `subject`; `processor_time` is what the proxy used meanwhile, where that is known.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn records(&self, subject: &str, processor_time: Option<Duration>) -> Vec<Record> {
        let mut values = vec![
            ("requests_per_second", self.rate(), "1/s"),
            ("hit_ratio", self.hit_ratio(), "share"),
            ("byte_hit_ratio", share(self.hit_bytes, self.bytes), "share"),
            ("wrong_bytes", self.wrong_bytes as f64, "B"),
            ("errors", self.failed() as f64, "requests"),
            ("requests", self.answers as f64, "requests"),
        ];
        for (name, quantile) in [
            ("latency_p50_us", 0.5),
            ("latency_p90_us", 0.9),
            ("latency_p99_us", 0.99),
            ("latency_p999_us", 0.999),
        ] {
            values.push((name, self.latencies.at(quantile) as f64, "us"));
        }
        if let Some(time) = processor_time.filter(|_| self.answers > 0) {
            values.push(("cpu_us_per_request", time.as_secs_f64() * 1e6 / self.answers as f64, "us"));
        }
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
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_stand_in_the_order_of_their_counts() {
        for (index, cause) in ErrorCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index, "{}", cause.name());
        }
    }

    #[test]
    fn processor_time_is_given_a_request() {
        let report =
            LoadReport { answers: 1000, hits: 250, elapsed: Duration::from_secs(2), ..LoadReport::default() };
        let records = report.records("foxy", Some(Duration::from_millis(8)));
        let value = |wanted: &str| {
            records.iter().find_map(|record| match record {
                Record::Measure(measure) if measure.name == wanted => Some(measure.value),
                _ => None,
            })
        };
        assert_eq!(value("cpu_us_per_request"), Some(8.0));
        assert_eq!(value("requests_per_second"), Some(500.0));
        assert_eq!(value("hit_ratio"), Some(0.25));
    }
}
