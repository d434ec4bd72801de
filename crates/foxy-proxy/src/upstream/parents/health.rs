//! Judges whether a parent proxy works, by the results of earlier requests. A parent that fails
//! *rests*: it receives no requests for some time, which grows with each failure.

use crate::upstream::fail_over::{Rest, WhileResting};
use foxy_base::{Instant, Random};
use std::time::Duration;

/// After a rest (pause without requests), a parent proxy still counts as down for this time, unless
/// a request finds that it works.
const MEMORY: Duration = Duration::from_secs(60);

/// How a parent proxy failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParentFault {
    /// The parent proxy accepts no connection, or refuses this proxy's credentials. No request
    /// through it can succeed.
    Down,
    /// The parent proxy accepted a connection, but then gave no answer. Perhaps the origin gave no
    /// answer. So requests prefer other parents, but may still use this parent.
    Silent,
}

/// The order in which parent proxies are tried. Lower ranks come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ParentRank {
    Works,
    Silent,
    /// The parent proxy was down, and one request is trying it again.
    Tried,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParentHealth {
    fault: Option<ParentFault>,
    rest: Rest,
}

impl ParentHealth {
    /// Returns the rank of the parent proxy among all parents. Returns `None` while the parent
    /// rests.
    pub(crate) fn rank(&self, now: Instant) -> Option<ParentRank> {
        match self.fault {
            None => Some(ParentRank::Works),
            Some(_) if now >= self.rest.until() => Some(ParentRank::Works),
            Some(ParentFault::Silent) => Some(ParentRank::Silent),
            Some(ParentFault::Down) => self.rest.is_tried().then_some(ParentRank::Tried),
        }
    }

    /// Notes that a request will use the parent proxy. If the parent was down, other requests
    /// prefer other parents until the result is known.
    pub(crate) fn try_now(&mut self, now: Instant) {
        if self.fault == Some(ParentFault::Down) {
            self.rest.try_now(now);
        }
    }

    /// Records a failure. A failure during a rest makes the rest longer only if it is the first
    /// sign that the parent proxy is down. Returns true if the parent proxy is down now and was not
    /// down before.
    pub(crate) fn fails(&mut self, fault: ParentFault, now: Instant, random: &mut Random) -> bool {
        let is_worse = self.fault != Some(ParentFault::Down) && fault == ParentFault::Down;
        let during = if is_worse { WhileResting::Count } else { WhileResting::Ignore };
        if !self.rest.begin(during, now, random) {
            return false;
        }
        // A parent proxy that only gave no answer has accepted a connection, so it is no longer
        // down.
        self.fault = Some(fault);
        is_worse
    }

    /// Records that the parent proxy answered.
    pub(crate) fn works(&mut self) {
        *self = Self::default();
    }

    /// Returns true if the last request through the parent proxy found it down. The finding expires
    /// [`MEMORY`] after the rest.
    pub(crate) fn is_down(&self, now: Instant) -> bool {
        self.fault == Some(ParentFault::Down) && now < self.rest.until() + MEMORY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn only_one_request_tries_a_parent_that_was_down() {
        let (mut health, mut random) = (ParentHealth::default(), Random::new(1));
        health.fails(ParentFault::Down, at(0), &mut random);
        health.try_now(at(1000));
        assert_eq!(health.rank(at(1000)), Some(ParentRank::Tried));
        assert_eq!(health.rank(at(1500)), Some(ParentRank::Works), "the trial gave no result");
    }

    #[test]
    fn without_requests_a_parent_is_not_down_for_ever() {
        let (mut health, mut random) = (ParentHealth::default(), Random::new(1));
        health.fails(ParentFault::Down, at(0), &mut random);
        assert!(health.is_down(at(60_000)));
        assert!(!health.is_down(at(61_000)));
    }

    #[test]
    fn a_silent_parent_ranks_last_and_stays_in_use() {
        let (mut health, mut random) = (ParentHealth::default(), Random::new(1));
        health.fails(ParentFault::Silent, at(0), &mut random);
        assert_eq!(health.rank(at(1)), Some(ParentRank::Silent));
        assert_eq!(health.rank(at(700)), Some(ParentRank::Works));
        assert!(health.fails(ParentFault::Down, at(1), &mut random), "it got worse");
        assert_eq!(health.rank(at(2)), None);
    }
}
