//! The state of this node while it joins or leaves the fleet. It decides which fraction of its
//! cache keys the node takes, and how long the node asks the former owners of these keys.

use foxy_base::Instant;
use foxy_proxy::upstream::fleet::Standing;
use std::time::Duration;

/// Number of steps in which a joining node takes its cache keys.
const STEPS: u32 = 10;

/// The settings for a node that joins the fleet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinTerms {
    /// Time over which the node takes its cache keys step by step. If it is zero, the node takes
    /// all its keys at once.
    pub ramp: Duration,
    /// Time for which a node that joined asks the former owners of its keys for responses.
    pub former_owner: Duration,
}

/// The state of a node that joins or leaves the fleet.
#[derive(Debug, Default)]
pub struct Joining {
    terms: JoinTerms,
    /// Whether the node joins and waits for [`Self::ready`] before it takes keys.
    waits: bool,
    /// The time when the node began to take keys. `None` if the node did not join during this run
    /// of the program, or still waits.
    begun: Option<Instant>,
    /// The end of the last time in which this node reached no other node.
    cut_off: Option<Instant>,
    is_leaving: bool,
}

impl Joining {
    /// Begins to join the fleet. The node takes no keys until [`Self::ready`] is called.
    pub fn begin(&mut self, terms: JoinTerms) {
        *self = Self { terms, waits: true, ..Self::default() };
    }

    /// Notes that the node may take keys, because it can serve stored responses.
    pub fn ready(&mut self, now: Instant) {
        if std::mem::take(&mut self.waits) {
            self.begun = Some(now);
        }
    }

    /// Notes that this node reaches another node again, after it had reached none.
    pub fn returns(&mut self, now: Instant) {
        self.cut_off = Some(now);
    }

    /// Begins to leave the fleet. If `is_leaving` is false, ends the leaving, and the node stays a
    /// member.
    pub fn leave(&mut self, is_leaving: bool) {
        self.is_leaving = is_leaving;
    }

    /// Returns the fraction of its keys that the node takes, and whether the node leaves.
    pub fn standing(&self, now: Instant) -> Standing {
        let part = match self.begun {
            _ if self.is_leaving => 0,
            _ if self.terms.ramp.is_zero() => Standing::WHOLE.part,
            None if self.waits => 0,
            None => Standing::WHOLE.part,
            Some(begun) => {
                let passed = now.since(begun).as_nanos() * u128::from(STEPS);
                let steps = passed / self.terms.ramp.as_nanos() + 1;
                let steps = u32::try_from(steps).unwrap_or(STEPS).min(STEPS);
                Standing::WHOLE.part * steps / STEPS
            }
        };
        Standing { part, is_leaving: self.is_leaving }
    }

    /// Returns whether this node must ask the former owners of its keys, because they may have
    /// responses that this node lacks.
    pub fn asks_former_owners(&self, now: Instant) -> bool {
        let is_recent = |since: Instant| now.since(since) < self.terms.former_owner;
        self.waits || self.begun.is_some_and(is_recent) || self.cut_off.is_some_and(is_recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_joining_node_takes_its_keys_in_steps_and_a_leaving_node_takes_none() {
        let mut joining = Joining::default();
        assert_eq!(joining.standing(at(0)), Standing::WHOLE, "a node without a ramp");
        assert!(!joining.asks_former_owners(at(0)));
        let (ramp, former_owner) = (Duration::from_secs(60), Duration::from_secs(600));
        joining.begin(JoinTerms { ramp, former_owner });
        let part = |joining: &Joining, seconds| joining.standing(at(seconds)).part;
        assert_eq!(part(&joining, 50), 0);
        joining.ready(at(100));
        joining.ready(at(130));
        let parts: Vec<_> =
            [100, 105, 106, 130, 153, 154, 900].map(|seconds| part(&joining, seconds)).into();
        assert_eq!(parts, [100, 100, 200, 600, 900, 1000, 1000]);
        assert!(joining.asks_former_owners(at(699)) && !joining.asks_former_owners(at(700)));
        joining.returns(at(1000));
        assert!(joining.asks_former_owners(at(1599)) && !joining.asks_former_owners(at(1600)));
        joining.leave(true);
        assert_eq!(joining.standing(at(900)), Standing { part: 0, is_leaving: true });
        joining.leave(false);
        assert_eq!(joining.standing(at(900)), Standing::WHOLE);
    }
}
