//! What a point of the benchmark counted, by its parts.

use super::Cause;
use super::exchange::WpbAnswered;
use foxy_report::Latencies;
use foxy_workload::wpb::WpbRequest;
use std::time::Duration;

/// A part of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What phase 1 asks for, at URLs that may not be stored.
    Control,
    /// Every file is new.
    First,
    /// Half of the files were asked for before.
    Second,
}

impl Part {
    /// Every part, in the order in which they run.
    pub const ALL: [Self; 3] = [Self::Control, Self::First, Self::Second];

    /// Its name in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "no-cache",
            Self::First => "phase-1",
            Self::Second => "phase-2",
        }
    }
}

/// What one part counted.
#[derive(Clone, Debug, Default)]
pub struct PartReport {
    /// Whole, right answers.
    pub answers: u64,
    /// Their body bytes.
    pub bytes: u64,
    /// Of these answers, repeats.
    pub repeats: u64,
    /// Of these answers, those that were stored before.
    pub hits: u64,
    /// Their body bytes.
    pub hit_bytes: u64,
    /// Failed requests, by [`Cause::ALL`].
    pub errors: [u64; Cause::ALL.len()],
    /// From the beginning of each answered request's connection to the end of its answer.
    pub latencies: Latencies,
    /// From the first request's beginning to the last one's end.
    pub elapsed: Duration,
    /// CPU time of the thread that all clients run on.
    pub generator: Duration,
}

impl PartReport {
    /// Counts what came of a request.
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

    /// Failed requests by cause, those that there were.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, u64)> + use<> {
        Cause::ALL.into_iter().zip(self.errors).filter(|&(_, count)| count > 0)
    }

    /// The share of its time that the generator's thread was running; near 1 it, not the proxy, was
    /// the limit.
    pub fn busy(&self) -> f64 {
        self.generator.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The mean latency in milliseconds; none without answers.
    pub fn mean(&self) -> Option<f64> {
        (self.answers > 0).then(|| self.latencies.mean() / 1000.0)
    }
}

/// What a point counted.
#[derive(Clone, Debug)]
pub struct PointReport {
    /// How many clients.
    pub clients: u32,
    /// How many servers.
    pub servers: u32,
    /// By [`Part::ALL`].
    pub parts: [PartReport; 3],
    /// Whether it ran to its end; else what it says of both phases together says nothing.
    pub whole: bool,
}

impl PointReport {
    /// What a part counted.
    pub const fn part(&self, part: Part) -> &PartReport {
        &self.parts[part as usize]
    }

    fn phases(&self) -> [&PartReport; 2] {
        [self.part(Part::First), self.part(Part::Second)]
    }

    fn sum(&self, count: impl Fn(&PartReport) -> u64) -> u64 {
        self.phases().into_iter().map(count).sum()
    }

    /// Hits among the answers of both phases; none unless both ran to their end and have some.
    pub fn hit_ratio(&self) -> Option<f64> {
        self.of_both(|part| part.hits, |part| part.answers)
    }

    /// The same by bytes.
    pub fn byte_hit_ratio(&self) -> Option<f64> {
        self.of_both(|part| part.hit_bytes, |part| part.bytes)
    }

    /// The most that the hit ratio could be: repeats among the answers of both phases.
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

    /// Mean latency of both phases in milliseconds; none unless both ran to their end and have
    /// answers.
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

    /// Body bytes that the phases brought through the cache: those of answers that were not hits.
    pub fn fetched(&self) -> u64 {
        self.sum(|part| part.bytes - part.hit_bytes)
    }

    /// The first part without a single right answer.
    pub fn silent(&self) -> Option<Part> {
        Part::ALL.into_iter().find(|&part| self.part(part).answers == 0)
    }
}
