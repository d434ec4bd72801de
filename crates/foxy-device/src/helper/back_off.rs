//! When a helper that died is started again: at once the first time, then after longer and longer
//! waits. Pure.

use foxy_base::Instant;
use std::time::Duration;

/// The first wait, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// A helper that has lived so long died of something else than the one before it.
const SOUND: Duration = Duration::from_secs(60);

/// When the next start is due.
#[derive(Debug, Default)]
pub(super) struct BackOff {
    starts: u64,
    last: Option<Instant>,
    wait: Duration,
}

impl BackOff {
    /// Whether a helper may be started now; if so it is, and the next wait is twice as long.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        let since = self.last.map(|last| now.since(last));
        if since.is_some_and(|since| since < self.wait) {
            return false;
        }
        let is_sound = since.is_none_or(|since| since >= SOUND);
        self.wait = if is_sound { WAITS.0 } else { (2 * self.wait).min(WAITS.1) };
        self.last = Some(now);
        self.starts += 1;
        true
    }

    /// How often it was.
    pub(super) const fn starts(&self) -> u64 {
        self.starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_come_further_and_further_apart_until_a_helper_lived_for_a_minute() {
        let mut back_off = BackOff::default();
        let at = |milliseconds| Instant::ZERO + Duration::from_millis(milliseconds);
        let starts: Vec<u64> = (0..100_000).filter(|&now| back_off.is_over(at(now))).collect();
        assert_eq!(starts[..5], [0, 100, 300, 700, 1_500]);
        assert_eq!(starts.len() as u64, back_off.starts());
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] <= 30_000));
        assert!(back_off.is_over(at(200_000)) && !back_off.is_over(at(200_099)));
        assert!(back_off.is_over(at(200_100)));
    }
}
