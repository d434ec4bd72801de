//! Code that two kinds of fail-over share: between parent proxies, and between the servers of an
//! origin. After a failure, a server or parent *rests*: for some time, it receives no requests.
//! Each request remembers which servers or parents have failed for it.

use foxy_base::{Instant, Random};
use std::time::Duration;

/// Largest number of servers of an origin, and of parent proxies, among which a request can choose.
pub(crate) const MAX_CHOICES: usize = 64;

/// Length of a rest (a time without requests for a server or parent proxy) after the first failure.
pub(crate) const FIRST_REST: Duration = Duration::from_millis(500);
/// The rest (pause without requests) doubles with each failure, at most this number of times. So
/// the longest rest is 16 s, plus the random part.
const MAX_DOUBLINGS: u32 = 5;
/// Each rest (pause without requests) is longer by a random part, up to this share of the rest. So
/// several proxies do not try a server again at the same moment.
const JITTER: f64 = 0.25;

/// Tells whether a failure during a rest (a time without requests) makes the rest longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhileResting {
    /// The failure does not count, because the failed request began before the rest (pause without
    /// requests).
    Ignore,
    /// The failure counts, because it is worse than the failure that began the rest (the pause
    /// without requests).
    Count,
}

/// The rest of a server or parent proxy: the time for which it receives no requests after a
/// failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    failures: u32,
    until: Instant,
    is_tried: bool,
}

impl Rest {
    /// Returns the end of the current or last rest (pause without requests).
    pub(crate) const fn until(&self) -> Instant {
        self.until
    }

    /// Returns true while one request tries the server again after its rest (pause without
    /// requests).
    pub(crate) const fn is_tried(&self) -> bool {
        self.is_tried
    }

    /// Begins a rest (pause without requests) after a failure. Each rest is longer than the last
    /// rest. Returns false if the failure begins no new rest.
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

    /// Notes that one request now tries the server after its rest. Other requests wait for the
    /// result. If no result comes, another request may try the server after a pause as long as the
    /// rest.
    pub(crate) fn try_now(&mut self, now: Instant) {
        if now >= self.until {
            self.is_tried = true;
            self.until = now + length(self.failures);
        }
    }

    /// Ends the rest now, so that the server or parent proxy receives requests again. The next rest
    /// will still be longer than this rest.
    pub(crate) fn end_early(&mut self, now: Instant) {
        self.until = self.until.min(now);
    }

    /// Notes that the server answered the request that tried it again. The next rest (pause without
    /// requests) will still be longer than this rest.
    pub(crate) fn is_passed(&mut self, now: Instant) {
        self.is_tried = false;
        self.end_early(now);
    }
}

fn length(failures: u32) -> Duration {
    FIRST_REST * 2u32.pow(failures.saturating_sub(1).min(MAX_DOUBLINGS))
}

/// The numbers of the servers or parent proxies that have failed for one request.
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
