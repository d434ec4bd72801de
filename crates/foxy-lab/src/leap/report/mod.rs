//! The counts of a LEAP run, for each path (proxy or origin) and for clients.

pub mod differences;
pub mod line;
pub mod records;

use super::exchange::Copied;
use super::exchange::failure::PathFailure;
use super::exchange::kept::{Carriage, Connections};
use super::front::reasons::FrontRefusal;
use super::multiplier::group::{RequestGroup, direct};
use super::verdict::Unjudged;
use super::verdict::{Finding, Verdict};
use super::{LeapRun, Path};
use crate::wire::tls::HandshakeFailure;
use foxy_report::Latencies;
use std::time::Duration;

/// The largest number of requests whose times are kept for the comparison of paths (proxies and
/// origin). A longer run keeps only every second request, then every fourth, every eighth, and so
/// on.
const ROWS: usize = 10_000;
const EXAMPLES: usize = 3;

/// An answer whose verdict was not OK, as an example for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// Verdict about the answer.
    pub verdict: Verdict,
    /// A short reason for the verdict.
    pub why: String,
    /// The URL of the request.
    pub url: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    /// The response time in microseconds, up to the last byte.
    pub time: u32,
    pub hit: Option<bool>,
    pub length: u64,
}

impl Sample {
    fn of(copy: &Copied) -> Option<Self> {
        let answer = copy.outcome.as_ref().ok()?;
        let time = u32::try_from(copy.times.whole().as_micros()).ok()?;
        Some(Self { time, hit: answer.hit, length: answer.length })
    }
}

/// The counts of one path (a proxy or the origin).
#[derive(Clone, Debug, Default)]
pub struct PathReport {
    /// The name of the proxy or origin.
    pub name: String,
    /// The number of complete answers.
    pub answers: u64,
    /// The response times of complete answers. Leaves out requests that a slow client delayed.
    pub latencies: Latencies,
    /// The response times of complete answers and of failed exchanges. A failed exchange counts up
    /// to its failure.
    pub with_errors: Latencies,
    /// The times to connect, for complete answers on new connections.
    pub connect: Latencies,
    /// The times to the first byte, for complete answers.
    pub first_byte: Latencies,
    /// The times from the first byte to the last byte, for complete answers.
    pub transfer: Latencies,
    /// The response times of answers that are known to be hits.
    pub of_hits: Latencies,
    /// The response times of answers that are known to be misses.
    pub of_misses: Latencies,
    /// The body bytes of complete answers.
    pub bytes: u64,
    /// The number and the bytes of answers that are known to be hits or misses.
    pub known: (u64, u64),
    /// The number and the bytes of known hits.
    pub hits: (u64, u64),
    /// The number of answers by verdict.
    pub verdicts: [u64; Verdict::ALL.len()],
    /// The number of answers without a verdict.
    pub unjudged: u64,
    /// The number of answers without a verdict, by reason.
    pub unjudged_by_reason: [u64; Unjudged::ALL.len()],
    /// The number of failed exchanges, by failure.
    pub failures: [u64; PathFailure::ALL.len()],
    /// The number of copies, by the kind of connection that they used.
    pub carriages: [u64; Carriage::ALL.len()],
    /// The number of idle connections on which the server sent bytes after a complete answer.
    pub late_surplus: u64,
    /// The first few examples of each verdict except OK.
    pub examples: Vec<Example>,
}

impl PathReport {
    /// Returns the hit ratio by answers and by bytes. Returns `None` if no answer is known to be a
    /// hit or a miss.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn hit_ratios(&self) -> Option<(f64, f64)> {
        let share =
            |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        (self.known.0 > 0)
            .then(|| (share(self.hits.0, self.known.0), share(self.hits.1, self.known.1)))
    }

    /// Returns the number of answers with this verdict.
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

    /// Returns the median time to connect in microseconds, over all complete answers. Answers on
    /// reused connections count as 0.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn connect_median(&self) -> u64 {
        let (all, new) = (self.latencies.count() as f64, self.connect.count() as f64);
        let quantile = 1.0 - all / 2.0 / new.max(1.0);
        if quantile < 0.0 || new == 0.0 { 0 } else { self.connect.at(quantile) }
    }

    /// Returns the number of exchanges with this path that failed.
    pub fn failed(&self) -> u64 {
        self.failures.iter().sum()
    }
}

/// The counts of clients and their requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientReport {
    /// The number of accepted connections.
    pub connections: u64,
    /// The number of refused requests and connections, by reason.
    pub refused: [u64; FrontRefusal::ALL.len()],
    /// The number of failed TLS handshakes of clients, by reason.
    pub not_entered: [u64; HandshakeFailure::ALL.len()],
    /// The number of clients that left or stopped reading before they had the complete answer.
    pub gone: u64,
    /// The number of truncated answers to clients. The answer of the path (proxy or origin) was
    /// truncated, so the client's answer was too.
    pub broken: u64,
}

impl ClientReport {
    /// Returns the number of requests and connections refused for this reason.
    pub const fn refused(&self, reason: FrontRefusal) -> u64 {
        self.refused[reason as usize]
    }
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct LeapReport {
    /// The counts of each path (proxy or origin).
    pub paths: Vec<PathReport>,
    /// The number of requests that all paths (proxies and origin) have answered or failed.
    pub requests: u64,
    /// The number of requests that the run refused because too many were in flight.
    pub refused: u64,
    /// The number of requests whose times do not count, because a slow client delayed an answer.
    pub held: u64,
    /// The counts of clients. `None` if the requests came from a workload or a trace.
    pub clients: Option<ClientReport>,
    /// The number of requests that the origin received a second time, because a proxy's answer
    /// differed from its first answer.
    pub asked_again: u64,
    /// Whether a direct path to the origin gave the references, the answers that count as correct.
    /// If false, the majority of the proxies gave the references.
    pub by_origin: bool,
    /// The delays between the planned and the actual start of requests that started late.
    pub late: Latencies,
    /// The time from the first request to the last answer.
    pub elapsed: Duration,
    /// The CPU time of the thread that sends the requests.
    pub generator: Duration,
    /// Setting of the run: whether copies of requests reuse connections to proxies and origin.
    pub connections: Connections,
    /// For each path, the header fields that its server changes in every answer. LEAP does not
    /// compare their values.
    pub noise: Vec<Vec<String>>,
    pub(super) targets: Vec<Path>,
    pub(super) alike: Vec<(usize, usize)>,
    pub(super) rows: Vec<(u64, Vec<Option<Sample>>)>,
    /// The report keeps the times of every `every`-th request, to limit its memory.
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

    /// Counts a request, and keeps its response times if it is one of at most `ROWS` chosen
    /// requests. Returns whether its times count. If the client delayed the answer of one path, the
    /// request's times count for no path, because all paths must have the same requests.
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

    pub(super) fn take(
        &mut self,
        path: usize,
        group: &RequestGroup,
        is_timed: bool,
        finding: &Result<Finding, Unjudged>,
    ) {
        let (report, copy) = (&mut self.paths[path], &group.copies[path]);
        report.carriages[copy.carriage as usize] += 1;
        if is_timed {
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
                report.unjudged_by_reason[*reason as usize] += 1;
                return;
            }
        };
        report.verdicts[*verdict as usize] += 1;
        let shown = report.examples.iter().filter(|example| example.verdict == *verdict).count();
        if *verdict != Verdict::Ok && shown < EXAMPLES {
            report.examples.push(Example {
                verdict: *verdict,
                why: detail.to_string(),
                url: group.asked.url(),
            });
        }
    }

    /// Returns how many requests per second the sending thread could handle at most, computed from
    /// its CPU time per request.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn ceiling(&self) -> f64 {
        self.requests as f64 / self.generator.as_secs_f64().max(1e-9)
    }

    /// Returns the share of the run's duration in which the sending thread used the CPU.
    pub fn busy(&self) -> f64 {
        self.generator.as_secs_f64() / self.elapsed.as_secs_f64().max(1e-9)
    }
}
