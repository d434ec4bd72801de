//! When a proxy answered and when it did not: whether it fell silent in the middle of a run.

use super::{ErrorCause, LoadReport};
use crate::load::options::Stop;
use std::time::Duration;

/// At least so long must nothing have been answered rightly.
const SILENCE: Duration = Duration::from_secs(1);

/// Times since the beginning of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answering {
    /// When the last request that came to an end should have begun.
    begun: Duration,
    /// When the last right answer was whole.
    right: Duration,
    /// When the last failed request was given up.
    failed: Duration,
}

impl Answering {
    /// Counts what should have begun at `begun` and came to its end, as a `right` answer or not, at
    /// `ended`.
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

    /// When the last right answer was whole.
    pub(crate) const fn last_right(self) -> Duration {
        self.right
    }

    /// Since when nothing was answered rightly, if that is at least the last half of the run and a
    /// second, and it was asked. The run was to end after `time`, or else with its last request.
    pub(crate) fn silent_since(self, time: Option<Duration>) -> Option<Duration> {
        let time = time.unwrap_or(self.begun);
        let silence = time.saturating_sub(self.right);
        (silence >= SILENCE.max(time / 2) && self.failed > self.right).then_some(self.right)
    }
}

impl LoadReport {
    /// How many were never sent.
    pub const fn not_sent(&self) -> u64 {
        self.errors[ErrorCause::NotSent as usize]
    }

    /// What most of those failed of that were sent; where none was, that they were not.
    pub fn main_cause_of_sent(&self) -> Option<ErrorCause> {
        let mut sent = self.errors;
        sent[ErrorCause::NotSent as usize] = 0;
        let causes = ErrorCause::ALL.into_iter().filter(|&cause| sent[cause as usize] > 0);
        causes.max_by_key(|&cause| sent[cause as usize]).or_else(|| self.main_cause())
    }

    /// Whole answers with other bytes than the object's.
    pub fn wrong_answers(&self) -> u64 {
        let causes = [ErrorCause::BodyMismatch, ErrorCause::Length, ErrorCause::Foreign];
        causes.into_iter().map(|cause| self.errors[cause as usize]).sum()
    }

    /// Since when, counted from the beginning, nothing was answered rightly any more, if that is at
    /// least the last half of the run.
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
    fn a_proxy_is_silent_that_answers_nothing_in_the_last_half_of_the_run_although_it_is_asked() {
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
    fn what_was_not_sent_is_no_cause_of_what_was() {
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
