//! What a run counts for those who steer it while it goes on: a few sums that all threads add to.

use crate::load::outcome::Answered;
use crate::load::outcome::Unanswered;
use crate::load::outcome::{ErrorCause, LoadReport};
use foxy_workload::Request;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

#[derive(Debug, Default)]
pub(crate) struct Live {
    begun: AtomicU64,
    ended: AtomicU64,
    answered: AtomicU64,
    response_us: AtomicU64,
    plain: AtomicU64,
    hits: AtomicU64,
    fill_bytes: AtomicU64,
}

/// Sums of a running load at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Requests begun.
    pub begun: u64,
    /// Requests that ended, well or not.
    pub ended: u64,
    /// Whole, right answers.
    pub answered: u64,
    /// Sum of response times, in microseconds.
    pub response_us: u64,
    /// Answers to plain GETs.
    pub plain: u64,
    /// Hits among the plain GETs.
    pub hits: u64,
    /// Body bytes of cachable misses.
    pub fill_bytes: u64,
    /// Whether repeated requests come from a set that no longer grows.
    pub frozen: bool,
}

impl Live {
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Relaxed);
    }

    pub(crate) fn end(
        &self,
        request: &Request,
        outcome: &Result<(Answered, Result<bool, ErrorCause>), Unanswered>,
        latency: Duration,
    ) {
        self.ended.fetch_add(1, Relaxed);
        if let Ok((answer, Ok(hit))) = outcome {
            self.answered.fetch_add(1, Relaxed);
            self.response_us
                .fetch_add(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX), Relaxed);
            self.plain.fetch_add(u64::from(LoadReport::is_plain(request)), Relaxed);
            self.hits.fetch_add(u64::from(*hit && LoadReport::is_plain(request)), Relaxed);
            self.fill_bytes.fetch_add(LoadReport::fills(request, answer, *hit), Relaxed);
        }
    }

    pub(crate) fn seen(&self, frozen: bool) -> Seen {
        Seen {
            begun: self.begun.load(Relaxed),
            ended: self.ended.load(Relaxed),
            answered: self.answered.load(Relaxed),
            response_us: self.response_us.load(Relaxed),
            plain: self.plain.load(Relaxed),
            hits: self.hits.load(Relaxed),
            fill_bytes: self.fill_bytes.load(Relaxed),
            frozen,
        }
    }
}
