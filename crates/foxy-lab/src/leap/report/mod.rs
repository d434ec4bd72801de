//! What a replay counts for each path, and what the paths differ by.

pub mod class;
pub mod differences;
pub mod line;
pub mod records;

use super::exchange::Copied;
use super::exchange::failure::PathFailure;
use super::exchange::kept::{Carriage, Connections};
use super::front::ClientReport;
use super::multiplier::group::{RequestGroup, direct};
use super::verdict::unjudged::Unjudged;
use super::verdict::{Finding, Verdict};
use super::{Asked, LeapRun, Path};
use foxy_report::Latencies;
use std::time::Duration;

/// How many requests are kept for paired differences; of more, every second, every fourth, and so
/// on.
const ROWS: usize = 10_000;
/// How many examples of each verdict a path keeps.
const EXAMPLES: usize = 3;

/// One answer that was not OK.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in a few words.
    pub why: String,
    /// What was asked for.
    pub url: String,
}

/// An answer of the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// What it took, in microseconds.
    pub time: u32,
    /// Whether it came from the cache, where that is known.
    pub hit: Option<bool>,
    /// Bytes of its body.
    pub length: u64,
}

impl Sample {
    /// Of a copy that was answered.
    fn of(copy: &Copied) -> Option<Self> {
        let answer = copy.outcome.as_ref().ok()?;
        let time = u32::try_from(copy.times.whole().as_micros()).ok()?;
        Some(Self { time, hit: answer.hit, length: answer.length })
    }
}

/// What was counted of one path.
#[derive(Clone, Debug, Default)]
pub struct PathReport {
    /// Its name.
    pub name: String,
    /// Whole answers.
    pub answers: u64,
    /// Response times of those whose times count.
    pub latencies: Latencies,
    /// Response times with those of failed exchanges, until they failed.
    pub with_errors: Latencies,
    /// Times until the connection was there, of whole answers on new ones.
    pub connect: Latencies,
    /// Times until the first byte, of whole answers.
    pub first_byte: Latencies,
    /// Times from the first byte to the last, of whole answers.
    pub transfer: Latencies,
    /// Response times of answers from the cache, where that is known.
    pub of_hits: Latencies,
    /// Those of answers that are known not to come from it.
    pub of_misses: Latencies,
    /// Body bytes of whole answers.
    pub bytes: u64,
    /// Answers of which it is known whether they came from the cache, and their bytes.
    pub known: (u64, u64),
    /// Of these, those that did.
    pub hits: (u64, u64),
    /// Counts by verdict.
    pub verdicts: [u64; Verdict::ALL.len()],
    /// Answers without a verdict.
    pub unjudged: u64,
    /// These by reason.
    pub unjudged_by_reason: [u64; Unjudged::ALL.len()],
    /// Counts by failure.
    pub failures: [u64; PathFailure::ALL.len()],
    /// Counts of what copies went out on, by [`Carriage`].
    pub carriages: [u64; Carriage::ALL.len()],
    /// Kept connections on which something came behind an answer that had been taken as whole.
    pub late_surplus: u64,
    /// The first few of each verdict but OK.
    pub examples: Vec<Example>,
}

impl PathReport {
    /// Share of the answers from the cache, and of their bytes, where that is known.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn hit_ratios(&self) -> Option<(f64, f64)> {
        let share =
            |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        (self.known.0 > 0)
            .then(|| (share(self.hits.0, self.known.0), share(self.hits.1, self.known.1)))
    }

    /// How many answers have a verdict.
    pub fn count(&self, verdict: Verdict) -> u64 {
        self.verdicts[verdict as usize]
    }

    fn time(&mut self, copy: &Copied) {
        self.with_errors.add(copy.times.whole());
        if let Ok(answer) = &copy.outcome {
            self.latencies.add(copy.times.whole());
            match answer.hit {
                Some(true) => self.of_hits.add(copy.times.whole()),
                Some(false) => self.of_misses.add(copy.times.whole()),
                None => {}
            }
            if copy.carriage != Carriage::Kept {
                self.connect.add(copy.times.connect);
            }
            self.first_byte.add(copy.times.first_byte);
            self.transfer.add(copy.times.transfer);
        }
    }

    /// Microseconds until the connection was there, in the median of whole answers: nothing where
    /// it was a kept one.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn connect_median(&self) -> u64 {
        let (all, new) = (self.latencies.count() as f64, self.connect.count() as f64);
        let quantile = 1.0 - all / 2.0 / new.max(1.0);
        if quantile < 0.0 || new == 0.0 { 0 } else { self.connect.at(quantile) }
    }

    /// Failed exchanges.
    pub fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }
}

/// What was found.
#[derive(Clone, Debug)]
pub struct LeapReport {
    /// By path.
    pub paths: Vec<PathReport>,
    /// Requests that ended on all paths.
    pub requests: u64,
    /// Requests that were not begun because too many were under way (R107).
    pub refused: u64,
    /// Requests whose times were left out because the client took its answer more slowly than it
    /// came.
    pub held: u64,
    /// What became of clients and their requests; none of a replay.
    pub clients: Option<ClientReport>,
    /// Requests after which the origin was asked again because an answer was not like its own.
    pub asked_again: u64,
    /// Whether the origin's own answers are the reference; else what most agree about.
    pub by_origin: bool,
    /// How late requests began, where they had a time.
    pub late: Latencies,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// CPU time of the replay's thread.
    pub generator: Duration,
    /// What copies went out on.
    pub connections: Connections,
    /// Fields learned to be noise, by path.
    pub noise: Vec<Vec<String>>,
    pub(super) targets: Vec<Path>,
    /// Pairs of paths, by their places, that are set up alike.
    pub(super) alike: Vec<(usize, usize)>,
    /// Numbers of requests, and their answers by path, in the order of their ends.
    pub(super) rows: Vec<(u64, Vec<Option<Sample>>)>,
    /// Of how many requests with times one is a row.
    every: u64,
    timed: u64,
    pub(super) seed: u64,
}

impl LeapReport {
    pub(super) fn new(run: &LeapRun) -> Self {
        let path = |path: &Path| PathReport { name: path.name.clone(), ..PathReport::default() };
        Self {
            paths: run.paths.iter().map(path).collect(),
            requests: 0,
            refused: 0,
            held: 0,
            clients: None,
            asked_again: 0,
            by_origin: direct(&run.paths).is_some(),
            late: Latencies::default(),
            elapsed: Duration::ZERO,
            generator: Duration::ZERO,
            connections: run.connections,
            noise: Vec::new(),
            targets: run.paths.clone(),
            alike: run.alike.clone(),
            rows: Vec::new(),
            every: 1,
            timed: 0,
            seed: run.seed,
        }
    }

    /// Counts a request, and keeps its times if it is of the sample; whether they count at all:
    /// those of an answer that its client held back say nothing, and leaving out one path's alone
    /// would set it apart.
    pub(super) fn begin(&mut self, group: &RequestGroup) -> bool {
        self.requests += 1;
        self.asked_again += u64::from(group.again.is_some());
        if group.copies.iter().any(|copy| copy.held) {
            self.held += 1;
            return false;
        }
        let row = || (group.number, group.copies.iter().map(Sample::of).collect());
        self.timed += 1;
        if self.timed.is_multiple_of(self.every) {
            self.rows.push(row());
        }
        if self.rows.len() == ROWS {
            self.rows = self.rows.drain(..).skip(1).step_by(2).collect();
            self.every *= 2;
        }
        true
    }

    /// Counts what came on one path, with its times if they count.
    pub(super) fn take(
        &mut self,
        path: usize,
        asked: &Asked,
        (copy, timed): (&Copied, bool),
        finding: Result<&Finding, Unjudged>,
    ) {
        let report = &mut self.paths[path];
        report.carriages[copy.carriage as usize] += 1;
        if timed {
            report.time(copy);
        }
        match &copy.outcome {
            Ok(answer) => {
                report.answers += 1;
                report.bytes += answer.length;
                if let Some(hit) = answer.hit {
                    report.known.0 += 1;
                    report.known.1 += answer.length;
                    report.hits.0 += u64::from(hit);
                    report.hits.1 += if hit { answer.length } else { 0 };
                }
            }
            Err(failure) => report.failures[*failure as usize] += 1,
        }
        let Finding { verdict, detail } = match finding {
            Ok(finding) => finding,
            Err(reason) => {
                report.unjudged += 1;
                report.unjudged_by_reason[reason as usize] += 1;
                return;
            }
        };
        report.verdicts[*verdict as usize] += 1;
        let shown = report.examples.iter().filter(|example| example.verdict == *verdict).count();
        if *verdict != Verdict::Ok && shown < EXAMPLES {
            report.examples.push(Example {
                verdict: *verdict,
                why: detail.to_string(),
                url: asked.url(),
            });
        }
    }

    /// How many requests a second it could send and judge here, by the CPU time that each has taken
    /// of its one thread (R134).
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn ceiling(&self) -> f64 {
        self.requests as f64 / self.generator.as_secs_f64().max(1e-9)
    }

    /// Share of its time that the replay's thread ran.
    pub fn busy(&self) -> f64 {
        self.generator.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }
}
