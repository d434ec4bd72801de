//! What a load run counts: answers, hits, causes of errors, latencies. `records` makes run records.

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

/// A number of requests and their body bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of requests.
    pub requests: u64,
    /// Body bytes of their answers.
    pub bytes: u64,
}

impl Tally {
    /// What was counted since an earlier tally.
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

/// How busy the load generator itself was.
#[derive(Clone, Debug, Default)]
pub struct Generator {
    /// CPU time of the generator's threads.
    pub processor_time: Duration,
    /// Largest share of the time that one thread used a CPU.
    pub busiest: f64,
    /// How late requests started because of the generator alone. Measured only in open loops.
    pub late: Latencies,
}

/// Counts of a load run.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Number of complete and correct answers.
    pub answers: u64,
    /// Correct answers to plain GETs. Hit ratios refer to these.
    pub plain: Tally,
    /// Plain GETs for cacheable objects that were requested before.
    pub offered: Tally,
    /// Plain GETs whose answer has another request's number, so a cache answered.
    pub hits: u64,
    /// Body bytes of all answers.
    pub bytes: u64,
    /// Body bytes of hits.
    pub hit_bytes: u64,
    /// Body bytes of cachable misses.
    pub fill_bytes: u64,
    /// Number of wrong body bytes.
    pub wrong_bytes: u64,
    /// Exchanges that ended early because the workload wants that.
    pub broken_off: u64,
    /// Number of failed requests, in the order of [`ErrorCause::ALL`].
    pub errors: [u64; ErrorCause::ALL.len()],
    /// Time from the intended start to the end of the answer.
    pub latencies: Latencies,
    /// Time from the first start to the last end. If the run has a time limit, only the time until
    /// the last correct answer counts.
    pub elapsed: Duration,
    /// Time from the first start to the last start, if requests start at given times.
    pub sending: Option<Duration>,
    /// Answers without a request number, except 304 answers. If there are many, hits are unknown.
    pub unnumbered: u64,
    /// Requests and body bytes at the origin, if they are known.
    pub origin: Option<Tally>,
    /// When answers and failures occurred.
    pub answering: Answering,
    /// Counts around the injected fault, if there is one.
    pub around_fault: Option<AroundFault>,
    /// How busy the load generator was.
    pub generator: Generator,
}

impl LoadReport {
    /// Counts an answer. It ended `latency` after its intended start and `ended` after the start of
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
        // A cache may send its own 304 without the other fields (RFC 9110 §15.4.5).
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

    /// Number of all failed requests.
    pub fn failed(&self) -> u64 {
        self.errors.iter().sum()
    }

    /// Most frequent cause of failure.
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

    /// Answers per second. If requests start at given times, the time of all starts counts.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn rate(&self) -> f64 {
        self.answers as f64 / self.begun_within().as_secs_f64().max(1e-9)
    }

    /// Started requests per second.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn begun_rate(&self) -> f64 {
        self.begun() as f64 / self.begun_within().as_secs_f64().max(1e-9)
    }

    /// Time from the first start to the last, plus the mean gap between two starts.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn begun_within(&self) -> Duration {
        let begun = self.begun();
        match self.sending {
            Some(sending) if begun > 1 => sending.mul_f64(begun as f64 / (begun - 1) as f64),
            _ => self.elapsed,
        }
    }

    /// Returns a reason if the load generator, and not the proxy, limited the run.
    pub fn limited_by_generator(&self) -> Option<String> {
        const BUSY: f64 = 0.9;
        const LATE: u64 = 1000;
        // A request that starts late by less than 5 % of the response time does not change the
        // latencies visibly.
        const SHARE_OF_LATENCY: f64 = 0.05;
        let late = self.generator.late.at(0.99);
        if self.answers == 0 {
            return None;
        }
        if self.generator.busiest >= BUSY {
            let share = self.generator.busiest * 100.0;
            Some(format!(
                "one of its threads ran {share:.0} % of the time; give it more --threads, or another machine"
            ))
        } else if late >= LATE && late as f64 > self.latencies.mean() * SHARE_OF_LATENCY {
            Some(format!(
                "1 % of its requests began more than {late} us late, which is in the latencies; free the machine, or begin fewer a second (--rate, --recorded)"
            ))
        } else {
            None
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Why there is no complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The exchange ended early because the workload wants that.
    BrokenOff,
    /// The request failed.
    Failed(ErrorCause),
}

/// A complete answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// Status code.
    pub status: u16,
    /// Length of the body.
    pub length: u64,
    /// Number of wrong body bytes.
    pub wrong_bytes: u64,
    /// Number of the request that the origin answered.
    pub reply_to: Option<u64>,
    /// Key and version of the object, as the origin names them.
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
            report.limited_by_generator().is_some_and(|why| why.contains("ran 97 % of the time"))
        );
    }
}
