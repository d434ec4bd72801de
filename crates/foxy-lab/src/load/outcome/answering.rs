//! Keeps the times of the last correct answer and of the last failure. They show whether a proxy
//! stopped answering during a run.

use super::{ErrorCause, LoadReport};
use crate::load::options::Stop;
use std::time::Duration;

const SILENCE: Duration = Duration::from_secs(1);

/// The latest start of a request, the latest correct answer and the latest failure. All times count
/// from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answering {
    begun: Duration,
    right: Duration,
    failed: Duration,
}

impl Answering {
    /// Records a request: its planned start, its end, and whether the answer was correct.
    pub fn take(&mut self, begun: Duration, ended: Duration, right: bool) {
        self.begun = self.begun.max(begun);
        let last = if right { &mut self.right } else { &mut self.failed };
        *last = ended.max(*last);
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.begun = self.begun.max(other.begun);
        self.right = self.right.max(other.right);
        self.failed = self.failed.max(other.failed);
    }

    pub(crate) const fn last_right(self) -> Duration {
        self.right
    }

    /// Returns the time of the last correct answer if the proxy then stopped answering. After that
    /// answer, at least one request must have failed. The rest of the run must last at least a
    /// second and at least half of the run. `time` is the planned duration of the run. With `None`,
    /// the run ends when its last request starts.
    pub(crate) fn silent_since(self, time: Option<Duration>) -> Option<Duration> {
        let time = time.unwrap_or(self.begun);
        let silence = time.saturating_sub(self.right);
        (silence >= SILENCE.max(time / 2) && self.failed > self.right).then_some(self.right)
    }
}

impl LoadReport {
    /// Returns the number of requests that were never sent.
    pub const fn not_sent(&self) -> u64 {
        self.errors[ErrorCause::NotSent as usize]
    }

    /// Returns the most frequent cause of failure among sent requests. If no sent request failed,
    /// returns `NotSent` if a request was not sent, else `None`.
    pub fn main_cause_of_sent(&self) -> Option<ErrorCause> {
        let mut sent = self.errors;
        sent[ErrorCause::NotSent as usize] = 0;
        let causes = ErrorCause::ALL.into_iter().filter(|&cause| sent[cause as usize] > 0);
        causes.max_by_key(|&cause| sent[cause as usize]).or_else(|| self.main_cause())
    }

    /// Returns the number of complete answers with wrong content.
    pub fn wrong_answers(&self) -> u64 {
        let causes = [ErrorCause::BodyMismatch, ErrorCause::Length, ErrorCause::Foreign];
        causes.into_iter().map(|cause| self.errors[cause as usize]).sum()
    }

    /// Returns the time of the last correct answer if the proxy then stopped answering, for at
    /// least half of the run.
    pub fn silent_since(&self, stop: Stop) -> Option<Duration> {
        self.answering.silent_since(match stop {
            Stop::After(time) => Some(time),
            Stop::Requests(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_proxy_that_answers_nothing_in_the_last_half_of_the_run_counts_as_silent() {
        let mut seen = Answering::default();
        seen.take(seconds(1), seconds(2), true);
        assert_eq!(seen.silent_since(Some(seconds(10))), None, "not asked any more");
        seen.take(seconds(2), seconds(32), false);
        assert_eq!(seen.silent_since(Some(seconds(10))), Some(seconds(2)));
        assert_eq!(seen.silent_since(Some(seconds(3))), None, "less than half of it");
        assert_eq!(
            seen.silent_since(None),
            None,
            "the end of a count of requests, of which the last are lost"
        );
        seen.take(seconds(32), seconds(62), false);
        assert_eq!(seen.silent_since(None), Some(seconds(2)));
        seen.take(seconds(5), seconds(6), true);
        assert_eq!(seen.silent_since(Some(seconds(10))), None);
    }

    #[test]
    fn unsent_requests_do_not_hide_the_cause_of_sent_ones() {
        let mut report = LoadReport::default();
        assert_eq!(report.main_cause_of_sent(), None);
        (0..2).for_each(|_| report.fail(ErrorCause::NotSent));
        assert_eq!(report.main_cause_of_sent(), Some(ErrorCause::NotSent));
        report.fail(ErrorCause::Timeout);
        assert_eq!(report.main_cause_of_sent(), Some(ErrorCause::Timeout));
    }

    #[test]
    fn less_than_a_second_is_no_silence() {
        let mut seen = Answering::default();
        seen.take(Duration::ZERO, seconds(30), false);
        assert_eq!(seen.silent_since(Some(Duration::from_millis(900))), None);
    }
}
