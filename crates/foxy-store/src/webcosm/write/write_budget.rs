//! Counts written bytes against the write budget, a number of bytes per day. Unused bytes
//! accumulate, up to the bytes of one day. Some writes happen even if no bytes are left. They can
//! overdraw the budget by at most the bytes of one day. The budget never delays a write.

use foxy_base::Instant;

const NANOSECONDS_PER_DAY: u128 = 86_400_000_000_000;

/// The bytes left of the write budget. A negative number means that the budget is overdrawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetMeter {
    bytes_per_day: i64,
    left: i64,
    /// The time up to which the bytes of the budget were credited.
    since: Instant,
}

impl BudgetMeter {
    /// Creates a meter. It starts with the unused bytes of one day.
    pub fn new(bytes_per_day: u64) -> Self {
        let bytes_per_day = i64::try_from(bytes_per_day).unwrap_or(i64::MAX);
        Self { bytes_per_day, left: bytes_per_day, since: Instant::ZERO }
    }

    pub fn spend(&mut self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.left = self.left.saturating_sub(bytes).max(-self.bytes_per_day);
    }

    /// Credits the bytes that the budget allows for the time until `now`. Returns whether no bytes
    /// are left.
    pub fn is_spent(&mut self, now: Instant) -> bool {
        let per_day = u128::from(self.bytes_per_day.unsigned_abs());
        let earned = now.since(self.since).as_nanos() * per_day / NANOSECONDS_PER_DAY;
        if earned > 0 {
            // Only whole bytes are credited, so `since` advances by the time of these bytes alone.
            // The remaining fraction of a byte counts next time.
            let took = u64::try_from(earned * NANOSECONDS_PER_DAY / per_day).unwrap_or(u64::MAX);
            self.since = Instant(self.since.0.saturating_add(took));
            let earned = i64::try_from(earned).unwrap_or(i64::MAX);
            self.left = self.left.saturating_add(earned).min(self.bytes_per_day);
        }
        self.left <= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn spent_bytes_are_earned_again_and_saved_for_a_day() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut meter = BudgetMeter::new(86_400);
        assert!(!meter.is_spent(at(0)));
        meter.spend(86_400);
        assert!(meter.is_spent(at(0)) && !meter.is_spent(at(1)));
        meter.spend(10);
        assert!(meter.is_spent(at(10)) && !meter.is_spent(at(11)));
        assert!(!meter.is_spent(at(1_000_000)), "no more than a day's");
        meter.spend(86_400);
        assert!(meter.is_spent(at(1_000_000)));
    }

    #[test]
    fn overdrafts_last_a_day_at_most() {
        let mut meter = BudgetMeter::new(86_400);
        meter.spend(u64::MAX);
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert!(meter.is_spent(at(86_400)) && !meter.is_spent(at(86_401)));
    }

    #[test]
    fn fractions_of_a_byte_are_not_lost() {
        let mut meter = BudgetMeter::new(3);
        meter.spend(4);
        let third = 8 * 3_600;
        let spent = |meter: &mut BudgetMeter, minutes: u64| {
            meter.is_spent(Instant::ZERO + Duration::from_secs(minutes * 60))
        };
        assert!((0..2 * third / 60).all(|minute| spent(&mut meter, minute)));
        assert!(!spent(&mut meter, 2 * third / 60));
    }

    #[test]
    fn a_budget_of_zero_is_always_spent() {
        let mut meter = BudgetMeter::new(0);
        assert!(meter.is_spent(Instant::ZERO) && meter.is_spent(Instant(u64::MAX)));
    }
}
