//! What a replay counts for each path, and what the paths differ by.

use super::exchange::{Copied, Failure};
use super::group::{Group, direct};
use super::verdict::{Finding, Verdict};
use super::{Asked, LeapRun, Path};
use foxy_base::random::Random;
use foxy_report::{Interval, Latencies, Statistic};
use std::time::Duration;

/// How many requests are kept for paired differences; of more, a random sample.
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

/// What was counted of one path.
#[derive(Clone, Debug, Default)]
pub struct PathReport {
    /// Its name.
    pub name: String,
    /// Response times of whole answers.
    pub latencies: Latencies,
    /// Response times with those of failed exchanges, until they failed.
    pub with_errors: Latencies,
    /// Times until the connection was there, of whole answers.
    pub connect: Latencies,
    /// Times until the first byte, of whole answers.
    pub first_byte: Latencies,
    /// Times from the first byte to the last, of whole answers.
    pub transfer: Latencies,
    /// Body bytes of whole answers.
    pub bytes: u64,
    /// Answers of which it is known whether they came from the cache, and their bytes.
    pub known: (u64, u64),
    /// Of these, those that did.
    pub hits: (u64, u64),
    /// Counts by verdict.
    pub verdicts: [u64; Verdict::ALL.len()],
    /// Whole answers that there was nothing to judge by.
    pub unjudged: u64,
    /// Counts by failure.
    pub failures: [u64; Failure::ALL.len()],
    /// The first few of each verdict but OK.
    pub examples: Vec<Example>,
}

impl PathReport {
    /// Share of the answers from the cache, and of their bytes, where that is known.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn hit_ratios(&self) -> Option<(f64, f64)> {
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        (self.known.0 > 0).then(|| (share(self.hits.0, self.known.0), share(self.hits.1, self.known.1)))
    }

    /// How many answers have a verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> u64 {
        self.verdicts[verdict as usize]
    }

    /// Failed exchanges.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }
}

/// By how much one path is slower than another, over the requests that both answered, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct PairedDifference {
    /// Places of the paths in the report: the first less the second.
    pub paths: (usize, usize),
    /// How many requests it comes from.
    pub requests: usize,
    /// Of the median difference.
    pub median: Interval,
    /// Of the mean difference.
    pub mean: Interval,
    /// Whether both are the same address, so that what differs is noise.
    pub same: bool,
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
    /// Fields learned to be noise, by path.
    pub noise: Vec<Vec<String>>,
    targets: Vec<Path>,
    rows: Vec<Vec<Option<u32>>>,
    random: Random,
    seed: u64,
}

impl LeapReport {
    pub(super) fn new(run: &LeapRun) -> Self {
        let path = |path: &Path| PathReport { name: path.name.clone(), ..PathReport::default() };
        Self {
            paths: run.paths.iter().map(path).collect(),
            requests: 0,
            refused: 0,
            asked_again: 0,
            by_origin: direct(&run.paths).is_some(),
            late: Latencies::default(),
            elapsed: Duration::ZERO,
            generator: Duration::ZERO,
            noise: Vec::new(),
            targets: run.paths.clone(),
            rows: Vec::new(),
            random: Random::new(run.seed),
            seed: run.seed,
        }
    }

    /// Counts a request, and keeps its times if it is of the sample.
    pub(super) fn begin(&mut self, group: &Group) {
        self.requests += 1;
        self.asked_again += u64::from(group.again.is_some());
        let time = |copy: &Copied| {
            copy.outcome.as_ref().ok()?;
            u32::try_from(copy.times.whole().as_micros()).ok()
        };
        let row = || group.copies.iter().map(time).collect();
        if self.rows.len() < ROWS {
            self.rows.push(row());
        } else {
            let place = usize::try_from(self.random.below(self.requests)).unwrap_or(ROWS);
            if place < ROWS {
                self.rows[place] = row();
            }
        }
    }

    /// Counts what came on one path.
    pub(super) fn take(&mut self, path: usize, asked: &Asked, copy: &Copied, finding: Option<&Finding>) {
        let report = &mut self.paths[path];
        report.with_errors.add(copy.times.whole());
        match &copy.outcome {
            Ok(answer) => {
                report.latencies.add(copy.times.whole());
                report.connect.add(copy.times.connect);
                report.first_byte.add(copy.times.first_byte);
                report.transfer.add(copy.times.transfer);
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
        let Some(Finding { verdict, detail }) = finding else {
            report.unjudged += 1;
            return;
        };
        report.verdicts[*verdict as usize] += 1;
        let shown = report.examples.iter().filter(|example| example.verdict == *verdict).count();
        if *verdict != Verdict::Ok && shown < EXAMPLES {
            report.examples.push(Example { verdict: *verdict, why: detail.to_string(), url: asked.url() });
        }
    }

    /// Share of its time that the replay's thread ran.
    #[must_use]
    pub fn busy(&self) -> f64 {
        self.generator.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// The paired differences of all paths, in their order.
    #[must_use]
    pub fn differences(&self) -> Vec<PairedDifference> {
        let count = self.paths.len();
        let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other)));
        pairs.filter_map(|pair| self.difference(pair)).collect()
    }

    fn difference(&self, (one, other): (usize, usize)) -> Option<PairedDifference> {
        let pair = |row: &Vec<Option<u32>>| Some(f64::from(row[one]?) - f64::from(row[other]?));
        let values: Vec<f64> = self.rows.iter().filter_map(pair).collect();
        let (first, second) = (&self.targets[one], &self.targets[other]);
        Some(PairedDifference {
            paths: (one, other),
            requests: values.len(),
            median: Interval::bootstrap(&values, Statistic::Median, self.seed)?,
            mean: Interval::bootstrap(&values, Statistic::Mean, self.seed)?,
            same: first.address == second.address && first.manner == second.manner,
        })
    }
}

/// What two paths to one address differ by at most in the median, in microseconds; a difference below it says nothing. None
/// when no address was given twice.
#[must_use]
pub fn noise_floor(differences: &[PairedDifference]) -> Option<f64> {
    let ends = |pair: &PairedDifference| pair.median.low.abs().max(pair.median.high.abs());
    differences.iter().filter(|pair| pair.same).map(ends).reduce(f64::max)
}
