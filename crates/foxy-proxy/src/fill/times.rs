//! When an origin was asked and when its answer came: by the clock that ages are counted by, and by
//! the civil one.

use foxy_base::{WallTime, clock};
use foxy_rules::StoredTimes;
use foxy_rules::fields::Fields;

/// When an origin was asked and when its answer came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// By the steady clock.
    requested: WallTime,
    /// By the steady clock.
    pub(crate) received: WallTime,
    /// By the civil clock, when the answer came: what its dates are compared with.
    pub(crate) civil: WallTime,
}

impl Times {
    /// Those of an answer that comes now, to a request of that time of the steady clock.
    pub(crate) fn until_now(requested: WallTime) -> Self {
        Self { requested, received: clock::steady(), civil: clock::wall() }
    }

    /// What is stored of them.
    pub(crate) fn stored(self, response: &(impl Fields + ?Sized)) -> StoredTimes {
        let took = self.received.0.saturating_sub(self.requested.0);
        let requested = WallTime(self.civil.0.saturating_sub(took));
        let times = StoredTimes::new(response, requested, self.civil);
        StoredTimes { received: self.received, ..times }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_compared_with_the_civil_clock_and_the_age_goes_on_by_the_steady_one() {
        const DATE: WallTime = WallTime::from_seconds(784_111_777);
        let steady = WallTime::from_seconds(4_000_000_000);
        let times = Times {
            requested: WallTime(steady.0 - 2000),
            received: steady,
            civil: WallTime(DATE.0 + 5000),
        };
        let fields = [("Date", "Sun, 06 Nov 1994 08:49:37 GMT")];
        let stored = times.stored(&fields[..]);
        assert_eq!(stored, StoredTimes { received: steady, initial_age: 5 });
        assert_eq!(stored.age(WallTime(steady.0 + 7000)), 12);
        assert_eq!(times.stored(&fields[1..]).initial_age, 2, "the request's time alone");
    }
}
