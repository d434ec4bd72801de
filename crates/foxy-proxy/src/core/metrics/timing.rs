//! Measures durations. A duration counts in one of a few buckets. One thread adds durations, and
//! any thread reads them.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A longer duration counts as this duration in µs, which is 19 hours.
const LONGEST: u64 = (1 << 36) - 1;

/// The buckets end at these powers of two in µs: from 16 µs to 67 s.
const POWERS: RangeInclusive<u32> = 4..=26;

/// Number of buckets, including the last bucket, which has no upper end.
pub const BUCKETS: usize = (*POWERS.end() - *POWERS.start() + 2) as usize;

/// Durations of events, such as requests.
#[derive(Debug, Default)]
pub struct Timing {
    buckets: [AtomicU64; BUCKETS],
    micros: AtomicU64,
}

impl Timing {
    /// Adds a duration. Returns the number of its bucket, and the duration in µs.
    pub fn add(&self, elapsed: Duration) -> (usize, u64) {
        let micros = elapsed.as_secs().saturating_mul(1_000_000);
        let micros = micros.saturating_add(elapsed.subsec_micros().into()).min(LONGEST);
        let bucket = bucket(micros);
        raise(&self.buckets[bucket], 1);
        raise(&self.micros, micros);
        (bucket, micros)
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).sum()
    }
}

/// Raises a number that no other thread changes. This is faster than an atomic addition.
fn raise(number: &AtomicU64, by: u64) {
    number.store(number.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

/// The durations of several [`Timing`]s at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    buckets: [u64; BUCKETS],
    micros: u64,
}

impl Durations {
    /// Adds the durations of several timings together.
    pub fn sum<'a>(timings: impl Iterator<Item = &'a Timing>) -> Self {
        let mut sum = Self::default();
        for timing in timings {
            for (all, bucket) in sum.buckets.iter_mut().zip(&timing.buckets) {
                *all += bucket.load(Ordering::Relaxed);
            }
            sum.micros = sum.micros.wrapping_add(timing.micros.load(Ordering::Relaxed));
        }
        sum
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the sum of all durations added so far.
    pub fn total(&self) -> Duration {
        Duration::from_micros(self.micros)
    }

    /// Returns the end of each bucket in seconds, and the number of durations up to this end. The
    /// last bucket ends at infinity.
    pub fn up_to(&self) -> [(f64, u64); BUCKETS] {
        let ends = POWERS.map(|power| (1_u64 << power) as f64 / 1e6).chain([f64::INFINITY]);
        let (mut ends, mut count) = (ends, 0);
        self.buckets.map(|bucket| {
            count += bucket;
            (ends.next().unwrap_or(f64::INFINITY), count)
        })
    }
}

/// Returns the number of the bucket that contains a duration in µs.
fn bucket(micros: u64) -> usize {
    let bits = u64::BITS - micros.leading_zeros();
    (bits.saturating_sub(*POWERS.start()) as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_below_each_end_that_it_does_not_reach() {
        for micros in [0, 1, 15, 16, 17, 31, 32, 1000, 67_108_863, 67_108_864, u64::MAX] {
            let timing = Timing::default();
            let (bucket, added) = timing.add(Duration::from_micros(micros));
            for (number, (end, count)) in
                Durations::sum(std::iter::once(&timing)).up_to().into_iter().enumerate()
            {
                let is_below = (added as f64) < end * 1e6;
                assert_eq!((count == 1, number >= bucket), (is_below, is_below), "{micros} µs");
            }
        }
    }

    #[test]
    fn the_durations_of_all_workers_add_up() {
        let timings = [Timing::default(), Timing::default()];
        for (timing, millis) in [(0, 1), (0, 2), (1, 3), (1, 100)] {
            timings[timing].add(Duration::from_millis(millis));
        }
        let all = Durations::sum(timings.iter());
        assert_eq!((all.count(), all.total()), (4, Duration::from_millis(106)));
    }
}
