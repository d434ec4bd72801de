//! What a point of the benchmark counted, by its parts.

use super::Cause;
use super::exchange::WpbAnswered;
use crate::named::named;
use foxy_report::Latencies;
use foxy_workload::wpb::WpbRequest;
use std::time::Duration;

named! {
    /// A part of a point.
    pub enum Part {
        /// Phase 1 with uncachable URLs.
        Control = "no-cache",
        /// Every file is new.
        First = "phase-1",
        /// Half of the files were requested before.
        Second = "phase-2",
    }
}

/// Counts of one part.
#[derive(Clone, Debug, Default)]
pub struct PartReport {
    /// Whole, right answers.
    pub answers: u64,
    /// Their body bytes.
    pub bytes: u64,
    /// Answers to repeated requests.
    pub repeats: u64,
    /// Answers from a cache.
    pub hits: u64,
    /// Body bytes of hits.
    pub hit_bytes: u64,
    /// Failed requests, by [`Cause::ALL`].
    pub errors: [u64; Cause::ALL.len()],
    /// Time from connecting to the end of the answer.
    pub latencies: Latencies,
    /// Time from the first start to the last end.
    pub elapsed: Duration,
    /// CPU time of the clients' thread.
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

    /// All failed requests.
    pub fn failed(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// Causes with at least one failed request.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, u64)> + use<> {
        Cause::ALL.into_iter().zip(self.errors).filter(|&(_, count)| count > 0)
    }

    /// Share of time that the clients' thread ran. Near 1 the generator was the limit.
    pub fn busy(&self) -> f64 {
        self.generator.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Mean latency in milliseconds; `None` without answers.
    pub fn mean(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.latencies.mean() / 1000.0)
    }
}

/// Counts of a point.
#[derive(Clone, Debug)]
pub struct PointReport {
    /// Number of clients.
    pub clients: u32,
    /// Number of servers.
    pub servers: u32,
    /// By [`Part::ALL`].
    pub parts: [PartReport; 3],
    /// Whether the point ran to its end; otherwise sums of both phases mean nothing.
    pub whole: bool,
}

impl PointReport {
    /// Counts of a part.
    pub const fn part(&self, part: Part) -> &PartReport {
        &self.parts[part as usize]
    }

    fn phases(&self) -> [&PartReport; 2] {
        [self.part(Part::First), self.part(Part::Second)]
    }

    fn sum(&self, count: impl Fn(&PartReport) -> u64) -> u64 {
        self.phases().into_iter().map(count).sum()
    }

    /// Hit ratio of both phases; `None` unless both are complete.
    pub fn hit_ratio(&self) -> Option<f64> {
        self.of_both(|part| part.hits, |part| part.answers)
    }

    /// Byte hit ratio of both phases.
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        self.of_both(|part| part.hit_bytes, |part| part.bytes)
    }

    /// Largest possible hit ratio: the share of repeats in both phases.
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

    /// Mean latency of both phases in milliseconds; `None` unless both are complete.
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

    /// Body bytes of misses in both phases.
    pub fn fetched(&self) -> u64 {
        self.sum(|part| part.bytes - part.hit_bytes)
    }

    /// The first part without a right answer.
    pub fn silent(&self) -> Option<Part> {
        Part::ALL.into_iter().find(|&part| self.part(part).answers == 0)
    }
}
