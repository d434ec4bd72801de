//! The recent response times of a node.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Number of response times that are remembered.
const REMEMBERED: usize = 512;
/// The percentile is unknown until there are this number of times.
const LEAST: usize = 100;
/// The percentile is computed again after this number of new times.
const BATCH: usize = 32;

/// The last response times, and the time that 99 % of them do not exceed.
#[derive(Debug, Default)]
pub struct RecentTimes(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    times: Vec<Duration>,
    next: usize,
    p99: Option<Duration>,
}

impl RecentTimes {
    /// Remembers a time, and forgets the oldest.
    pub fn add(&self, time: Duration) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = ring.next % REMEMBERED;
        match ring.times.get_mut(at) {
            Some(oldest) => *oldest = time,
            None => ring.times.push(time),
        }
        ring.next += 1;
        if ring.next >= LEAST && (ring.next - LEAST).is_multiple_of(BATCH) {
            let mut sorted = ring.times.clone();
            let at = sorted.len() * 99 / 100;
            ring.p99 = Some(*sorted.select_nth_unstable(at).1);
        }
    }

    /// Returns the time that 99 % of the recent times do not exceed. Returns `None` if there are
    /// too few times.
    pub fn p99(&self) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).p99
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_of_a_hundred_recent_times_counts() {
        let times = RecentTimes::default();
        (1..LEAST as u64).for_each(|millis| times.add(Duration::from_millis(millis)));
        assert_eq!(times.p99(), None);
        times.add(Duration::from_secs(5));
        assert_eq!(times.p99(), Some(Duration::from_secs(5)));
        (0..REMEMBERED + BATCH).for_each(|_| times.add(Duration::from_millis(7)));
        assert_eq!(times.p99(), Some(Duration::from_millis(7)), "old times are forgotten");
    }
}
