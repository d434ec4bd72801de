//! The counts of a load run: answers, hits, causes of errors, and latencies. Module `records`
//! converts the counts into run records.

mod answering;
mod cause;
mod records;

use crate::load::fault::AroundFault;
pub use answering::Answering;
pub use cause::ErrorCause;
use foxy_base::clock;
use foxy_report::Latencies;
use foxy_workload::Request;
use foxy_workload::polymix::requests::Manner;
pub use records::HIT_RATIOS;
use std::time::Duration;

/// A number of requests, and the body bytes of their answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of requests.
    pub requests: u64,
    /// The body bytes of the answers.
    pub bytes: u64,
}

impl Tally {
    /// Returns the requests and bytes that this tally has more than an earlier tally.
    pub const fn since(self, before: Self) -> Self {
        Self { requests: self.requests - before.requests, bytes: self.bytes - before.bytes }
    }

    const fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
    }

    const fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }
}

/// The CPU time and the delays of the load generator. They show whether the generator, and not the
/// proxy, limited the measured rate.
#[derive(Clone, Debug, Default)]
pub struct Generator {
    /// The CPU time of the generator's threads.
    pub processor_time: Duration,
    /// The largest share of the run for which one thread used a CPU.
    pub busiest: f64,
    /// The delays of request starts that the generator alone caused. Measured only if requests have
    /// planned start times.
    pub late: Latencies,
}

/// The counts of a load run.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Number of complete and correct answers.
    pub answers: u64,
    /// The correct answers to plain GETs: without `no-cache` or a condition. The hit ratios refer
    /// to them.
    pub plain: Tally,
    /// The plain GETs (without no-cache or a condition) for cacheable objects that a client
    /// requested before. A perfect cache would answer all of them.
    pub offered: Tally,
    /// The number of plain GETs (without no-cache or a condition) that a cache answered. Such an
    /// answer has the number of an earlier request.
    pub hits: u64,
    /// The body bytes of all answers.
    pub bytes: u64,
    /// The body bytes of hits.
    pub hit_bytes: u64,
    /// The body bytes of cacheable misses, which fill the cache.
    pub fill_bytes: u64,
    /// Number of wrong body bytes.
    pub wrong_bytes: u64,
    /// The number of exchanges that client or origin ended early because the workload requires it.
    pub broken_off: u64,
    /// Number of failed requests, in the order of [`ErrorCause::ALL`].
    pub errors: [u64; ErrorCause::ALL.len()],
    /// The times from the planned start of each request to the end of its answer.
    pub latencies: Latencies,
    /// The time from the first start to the last end. If the run has a time limit, it ends at the
    /// latest at that limit, or at the last correct answer if that came later.
    pub elapsed: Duration,
    /// The time from the first to the last start of a request. `None` if requests have no planned
    /// start times.
    pub sending: Option<Duration>,
    /// The number of answers without a request number, except 304 answers. If most answers lack it,
    /// the report has no hit ratio.
    pub unnumbered: u64,
    /// The number of requests that the origin received, and its body bytes, if known.
    pub origin: Option<Tally>,
    /// The times of the last correct answer and of the last failure.
    pub answering: Answering,
    /// The counts before, during and after an injected fault, if there is a fault.
    pub around_fault: Option<AroundFault>,
    /// The work of the load generator itself.
    pub generator: Generator,
}

impl LoadReport {
    /// Counts an answer. It ended `latency` after its planned start and `ended` after the start of
    /// the run.
    pub(crate) fn take(
        &mut self,
        request: &Request,
        outcome: &Result<(Answered, Result<bool, ErrorCause>), Unanswered>,
        latency: Duration,
        ended: Duration,
    ) {
        let right = matches!(outcome, Ok((_, Ok(_))) | Err(Unanswered::BrokenOff));
        self.answering.take(ended.saturating_sub(latency), ended, right);
        let (answer, hit) = match outcome {
            Ok((answer, Ok(hit))) => (answer, *hit),
            Ok((answer, Err(cause))) => {
                self.wrong_bytes += answer.wrong_bytes;
                return self.fail(*cause);
            }
            Err(Unanswered::Failed(cause)) => return self.fail(*cause),
            Err(Unanswered::BrokenOff) => {
                self.broken_off += 1;
                return;
            }
        };
        self.answers += 1;
        // A 304 may lack the number, because a cache can make the 304 itself (RFC 9110 §15.4.5).
        self.unnumbered += u64::from(answer.reply_to.is_none() && answer.status != 304);
        self.bytes += answer.length;
        self.latencies.add(latency);
        self.fill_bytes += Self::fills(request, answer, hit);
        if Self::is_plain(request) {
            self.plain.add(answer.length);
            self.hits += u64::from(hit);
            self.hit_bytes += if hit { answer.length } else { 0 };
            if request.is_offered_hit() {
                self.offered.add(answer.length);
            }
        }
    }

    pub(crate) fn is_plain(request: &Request) -> bool {
        request.manner == Manner::Basic
    }

    pub(crate) fn fills(request: &Request, answer: &Answered, hit: bool) -> u64 {
        if !hit && request.is_cachable() { answer.length } else { 0 }
    }

    /// Counts a failed request.
    pub fn fail(&mut self, cause: ErrorCause) {
        self.errors[cause as usize] += 1;
    }

    /// Returns the number of all failed requests.
    pub fn failed(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// Returns the most frequent cause of failure.
    pub fn main_cause(&self) -> Option<ErrorCause> {
        let failed = ErrorCause::ALL.into_iter().filter(|&cause| self.errors[cause as usize] > 0);
        failed.max_by_key(|&cause| self.errors[cause as usize])
    }

    /// Adds the counts of another report.
    pub fn merge(&mut self, other: &Self) {
        self.answers += other.answers;
        self.plain.merge(other.plain);
        self.offered.merge(other.offered);
        self.hits += other.hits;
        self.bytes += other.bytes;
        self.hit_bytes += other.hit_bytes;
        self.fill_bytes += other.fill_bytes;
        self.wrong_bytes += other.wrong_bytes;
        self.broken_off += other.broken_off;
        for (sum, count) in self.errors.iter_mut().zip(other.errors) {
            *sum += count;
        }
        self.latencies.merge(&other.latencies);
        if let Some(around) = other.around_fault {
            self.around_fault.get_or_insert_default().merge(around);
        }
        self.unnumbered += other.unnumbered;
        self.answering.merge(other.answering);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.sending = self.sending.max(other.sending);
        self.generator.processor_time += other.generator.processor_time;
        self.generator.busiest = self.generator.busiest.max(other.generator.busiest);
        self.generator.late.merge(&other.generator.late);
    }

    pub(crate) fn end_of_thread(&mut self, elapsed: Duration) {
        let used = clock::thread_processor_time();
        self.elapsed = elapsed;
        self.generator.processor_time = used;
        self.generator.busiest = used.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
    }

    /// Returns the number of answers per second. If requests have planned start times, the rate
    /// covers only the time in which requests start.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn rate(&self) -> f64 {
        self.answers as f64 / self.begun_within().as_secs_f64().max(1e-9)
    }

    /// Returns the number of started requests per second.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn begun_rate(&self) -> f64 {
        self.begun() as f64 / self.begun_within().as_secs_f64().max(1e-9)
    }

    /// Returns the time in which requests started: from the first to the last start, plus the mean
    /// gap between two starts. Without planned start times, returns the elapsed time.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn begun_within(&self) -> Duration {
        let begun = self.begun();
        match self.sending {
            Some(sending) if begun > 1 => sending.mul_f64(begun as f64 / (begun - 1) as f64),
            _ => self.elapsed,
        }
    }

    /// Returns the reason as a text if the load generator, and not the proxy, limited the run.
    pub fn limited_by_generator(&self) -> Option<String> {
        const BUSY: f64 = 0.9;
        const LATE: u64 = 1000;
        // Late starts distort the latencies only if the delay exceeds this share of the mean
        // latency.
        const SHARE_OF_LATENCY: f64 = 0.05;
        let late = self.generator.late.at(0.99);
        if self.answers == 0 {
            return None;
        }
        if self.generator.busiest >= BUSY {
            let share = self.generator.busiest * 100.0;
            Some(format!(
                "one of its threads was busy {share:.0} % of the time; raise --threads, or use \
                 another machine"
            ))
        } else if late >= LATE && late as f64 > self.latencies.mean() * SHARE_OF_LATENCY {
            Some(format!(
                "1 % of its requests began more than {late} us late, which raises the latencies; \
                 stop other programs, or lower --rate or --recorded"
            ))
        } else {
            None
        }
    }
}

/// Returns `part / whole`. Returns `None` if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The reason why a client has no complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The exchange ended early because the workload requires it.
    BrokenOff,
    /// The request failed.
    Failed(ErrorCause),
}

/// A complete answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// The status code.
    pub status: u16,
    /// The length of the body in bytes.
    pub length: u64,
    /// The number of wrong body bytes.
    pub wrong_bytes: u64,
    /// The number of the request for which the origin made this answer. A cache hit has the number
    /// of an earlier request.
    pub reply_to: Option<u64>,
    /// The key and the version of the object, as foxy's own origin states them in the answer.
    pub object: Option<(u64, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_an_open_loop_does_not_count_the_wait_for_the_last_answers() {
        let elapsed = Duration::from_secs(8);
        let closed = LoadReport { answers: 501, elapsed, ..LoadReport::default() };
        assert!((closed.rate() - 62.625).abs() < 1e-6);
        let open = LoadReport { sending: Some(Duration::from_secs(5)), ..closed };
        assert!((open.rate() - 100.0).abs() < 1e-6, "{}", open.rate());
    }

    #[test]
    fn an_answer_304_need_not_say_whose_it_is() {
        let workload = foxy_workload::Workload::find("polymix-4").expect("known");
        let request = foxy_workload::RequestStream::new(&workload, 1).next_request();
        let unnumbered = |status| {
            let mut report = LoadReport::default();
            let answer = Answered { status, ..Answered::default() };
            report.take(&request, &Ok((answer, Ok(false))), Duration::ZERO, Duration::ZERO);
            report.unnumbered
        };
        assert_eq!((unnumbered(304), unnumbered(200)), (0, 1));
    }

    #[test]
    fn a_busy_or_late_generator_says_that_it_is_the_limit() {
        let mut report = LoadReport { answers: 1, ..LoadReport::default() };
        assert_eq!(report.limited_by_generator(), None);
        report.generator.late.add(Duration::from_millis(3));
        assert!(report.limited_by_generator().is_some_and(|why| why.contains("us late")));
        report.latencies.add(Duration::from_millis(700));
        assert_eq!(report.limited_by_generator(), None);
        report.generator.busiest = 0.97;
        assert!(
            report
                .limited_by_generator()
                .is_some_and(|why| why.contains("was busy 97 % of the time"))
        );
    }
}
