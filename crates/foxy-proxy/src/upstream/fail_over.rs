//! Parts of every fail over, between parent proxies and between the servers of an origin: the rest
//! after a failure, and the set of servers that have failed for a request.

use foxy_base::{Instant, Random};
use std::time::Duration;

/// Largest number of servers or parents among which a request can change.
pub(crate) const MAX_CHOICES: usize = 64;

/// Rest after the first failure.
pub(crate) const FIRST_REST: Duration = Duration::from_millis(500);
/// The rest doubles at most this number of times, so the longest rest is 16 s.
const MAX_DOUBLINGS: u32 = 5;
/// Largest extra part of a rest, which is random. So several proxies do not return at once.
const JITTER: f64 = 0.25;

/// Whether a failure counts during a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhileResting {
    /// The failure belongs to a request from before the rest, so it does not lengthen the rest.
    Ignore,
    /// The failure is worse than the cause of the rest.
    Count,
}

/// The time for which a server receives no requests, because it has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    failures: u32,
    until: Instant,
    is_tried: bool,
}

impl Rest {
    /// Returns the end of the last rest.
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }

    /// Returns true while a request tries the server again.
    pub(crate) const fn is_tried(&self) -> bool {
        self.is_tried
    }

    /// Begins a rest, which is longer after each failure. Returns false if the failure does not
    /// count.
    pub(crate) fn begin(
        &mut self,
        during: WhileResting,
        now: Instant,
        random: &mut Random,
    ) -> bool {
        if during == WhileResting::Ignore && !self.is_tried && now < self.until {
            return false;
        }
        self.failures = self.failures.saturating_add(1);
        self.until = now + length(self.failures).mul_f64(1.0 + JITTER * random.unit());
        self.is_tried = false;
        true
    }

    /// Notes that a request will try the server after the rest. If the request gives no result,
    /// another request may try after as long a time as the rest.
    pub(crate) fn try_now(&mut self, now: Instant) {
        if now >= self.until {
            self.is_tried = true;
            self.until = now + length(self.failures);
        }
    }

    /// Ends the rest now. The next rest is still longer.
    pub(crate) fn end_early(&mut self, now: Instant) {
        self.until = self.until.min(now);
    }

    /// Notes that the trial succeeded. The next rest is still longer.
    pub(crate) fn is_passed(&mut self, now: Instant) {
        self.is_tried = false;
        self.end_early(now);
    }
}

fn length(failures: u32) -> Duration {
    FIRST_REST * 2u32.pow(failures.saturating_sub(1).min(MAX_DOUBLINGS))
}

/// The servers that have failed for a request, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tried(u64);

impl Tried {
    pub(crate) fn add(&mut self, number: usize) {
        self.0 |= 1 << number;
    }

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) const fn contains(self, number: usize) -> bool {
        self.0 & 1 << number != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rest_is_longer_up_to_a_limit() {
        let (mut rest, mut random) = (Rest::default(), Random::new(1));
        let mut now = Instant::ZERO;
        for number in 0..8 {
            rest.try_now(now);
            assert!(rest.begin(WhileResting::Ignore, now, &mut random));
            let least = FIRST_REST * 2u32.pow(5.min(number));
            let rests = rest.until.since(now);
            assert!((least..least.mul_f64(1.25)).contains(&rests), "{number}: {rests:?}");
            now = rest.until;
        }
    }

    #[test]
    fn failures_of_one_moment_count_once() {
        let (mut rest, mut random) = (Rest::default(), Random::new(1));
        let now = Instant::ZERO + Duration::from_secs(1);
        assert!(rest.begin(WhileResting::Ignore, now, &mut random));
        let first = rest;
        assert!(!rest.begin(WhileResting::Ignore, now, &mut random));
        assert_eq!(rest, first);
        assert!(rest.begin(WhileResting::Count, now, &mut random));
    }
}
