//! Decides when to ask a store that has failed. After several failures in a row, most requests do
//! without the store, so that none of them waits.

use foxy_base::Instant;
use std::time::Duration;

const FAILURES_UNTIL_REST: u32 = 3;
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(30);

/// The failures of a store since its last answer.
#[derive(Debug, Default)]
pub struct Health {
    failures: u32,
    rests_until: Option<Instant>,
}

impl Health {
    /// Returns true if a request may ask the store. While the store fails, one request in each
    /// interval may.
    pub fn may_ask(&mut self, now: Instant) -> bool {
        match self.rests_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                self.rests_until = Some(now + self.rest());
                true
            }
        }
    }

    pub fn answered(&mut self) {
        *self = Self::default();
    }

    pub fn failed(&mut self, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        if self.failures >= FAILURES_UNTIL_REST {
            self.rests_until = Some(now + self.rest());
        }
    }

    pub const fn is_up(&self) -> bool {
        self.rests_until.is_none()
    }

    fn rest(&self) -> Duration {
        pause(self.failures.saturating_sub(FAILURES_UNTIL_REST))
    }
}

/// Returns the pause before another attempt, after `failures` failed attempts.
pub fn pause(failures: u32) -> Duration {
    FIRST_REST.saturating_mul(1 << failures.min(5)).min(LONGEST_REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_failing_store_is_asked_ever_less_often() {
        let mut health = Health::default();
        health.failed(at(0));
        health.failed(at(0));
        assert!(health.may_ask(at(0)), "two failures may be chance");
        health.failed(at(0));
        assert!(!health.may_ask(at(0)));
        let mut asked = 0;
        for second in 0..600 {
            if health.may_ask(at(second)) {
                assert!(!health.may_ask(at(second)), "one request tries, others do not wait");
                asked += 1;
                health.failed(at(second));
            }
        }
        assert!((20..30).contains(&asked), "{asked} requests asked within ten minutes");
        health.answered();
        assert!(health.is_up() && health.may_ask(at(600)));
    }
}
