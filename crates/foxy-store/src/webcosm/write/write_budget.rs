//! What may be written: so many bytes a day, saved up for a day at most. Writes that nobody can put
//! off go on when it is spent, and what they take is missing afterwards, a day's worth at most. It
//! delays nothing and knows no clock.

use foxy_base::Instant;

/// Nanoseconds of a day.
const DAY: u128 = 86_400_000_000_000;

/// Bytes that may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    a_day: i64,
    left: i64,
    /// Up to when bytes were earned.
    since: Instant,
}

impl Allowance {
    /// So many bytes a day; those of one day are there at once.
    #[must_use]
    pub fn new(bytes_a_day: u64) -> Self {
        let a_day = i64::try_from(bytes_a_day).unwrap_or(i64::MAX);
        Self { a_day, left: a_day, since: Instant::ZERO }
    }

    /// So many bytes are written.
    pub fn spend(&mut self, bytes: u64) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.left = self.left.saturating_sub(bytes).max(-self.a_day);
    }

    /// Whether all is spent that was earned until now.
    pub fn is_spent(&mut self, now: Instant) -> bool {
        let a_day = u128::from(self.a_day.unsigned_abs());
        let earned = now.since(self.since).as_nanos() * a_day / DAY;
        if earned > 0 {
            // What is left of a byte counts the next time.
            let took = u64::try_from(earned * DAY / a_day).unwrap_or(u64::MAX);
            self.since = Instant(self.since.0.saturating_add(took));
            self.left =
                self.left.saturating_add(i64::try_from(earned).unwrap_or(i64::MAX)).min(self.a_day);
        }
        self.left <= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_is_spent_is_earned_again_and_a_day_of_it_can_be_saved() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut allowance = Allowance::new(86_400);
        assert!(!allowance.is_spent(at(0)));
        allowance.spend(86_400);
        assert!(allowance.is_spent(at(0)) && !allowance.is_spent(at(1)));
        allowance.spend(10);
        assert!(allowance.is_spent(at(10)) && !allowance.is_spent(at(11)));
        assert!(!allowance.is_spent(at(1_000_000)), "no more than a day's");
        allowance.spend(86_400);
        assert!(allowance.is_spent(at(1_000_000)));
    }

    #[test]
    fn what_was_written_beyond_it_is_owed_for_a_day_at_most() {
        let mut allowance = Allowance::new(86_400);
        allowance.spend(u64::MAX);
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        assert!(allowance.is_spent(at(86_400)) && !allowance.is_spent(at(86_401)));
    }

    #[test]
    fn parts_of_a_byte_are_not_lost_however_often_it_is_asked() {
        let mut allowance = Allowance::new(3);
        allowance.spend(4);
        let third = 8 * 3_600;
        let spent = |allowance: &mut Allowance, minutes: u64| {
            allowance.is_spent(Instant::ZERO + Duration::from_secs(minutes * 60))
        };
        assert!((0..2 * third / 60).all(|minute| spent(&mut allowance, minute)));
        assert!(!spent(&mut allowance, 2 * third / 60));
    }

    #[test]
    fn of_nothing_a_day_all_is_spent_always() {
        let mut allowance = Allowance::new(0);
        assert!(allowance.is_spent(Instant::ZERO) && allowance.is_spent(Instant(u64::MAX)));
    }
}
