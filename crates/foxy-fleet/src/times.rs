//! The recent response times of a fleet's node.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Number of recent response times that are remembered for a node.
const REMEMBERED: usize = 512;
/// Smallest number of response times from which the 99th percentile is computed.
const LEAST: usize = 100;
/// The 99th percentile is computed again after this number of new response times.
const BATCH: usize = 32;

/// A node's last response times, and their 99th percentile.
#[derive(Debug, Default)]
pub struct RecentTimes(Mutex<Ring>);

#[derive(Debug, Default)]
struct Ring {
    times: Vec<Duration>,
    next: usize,
    p99: Option<Duration>,
}

impl RecentTimes {
    /// Adds a response time. If the memory is full, forgets the oldest time.
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

    /// Returns the time that 99 % of the recent response times do not exceed. Returns `None` if too
    /// few times are known.
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
