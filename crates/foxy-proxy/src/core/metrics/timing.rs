//! Measures durations. A duration counts in one of many buckets, so that quantiles can be computed.
//! One thread adds durations, and any thread reads them.

use histogram::{AtomicHistogram, Histogram};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Each power of two has 2^3 buckets. A quantile is at most an eighth too large.
const GROUPING_POWER: u8 = 3;
/// Durations are below 2^36 µs, which is 19 hours. A longer duration counts as the longest.
const MAX_POWER: u8 = 36;
const LONGEST: u64 = (1 << MAX_POWER) - 1;

/// The exported buckets end at these powers of two in µs: from 16 µs to 67 s.
const EXPORTED: RangeInclusive<u32> = 4..=26;

/// Number of exported buckets, with the last bucket, which has no end.
pub const EXPORTED_BUCKETS: usize = (*EXPORTED.end() - *EXPORTED.start() + 2) as usize;

/// Durations of events, such as requests.
pub struct Timing {
    buckets: AtomicHistogram,
    micros: AtomicU64,
}

impl Default for Timing {
    fn default() -> Self {
        let buckets = AtomicHistogram::new(GROUPING_POWER, MAX_POWER);
        Self { buckets: buckets.expect("the powers are constants"), micros: AtomicU64::new(0) }
    }
}

impl Timing {
    /// Adds a duration. Returns it in µs.
    pub fn add(&self, elapsed: Duration) -> u64 {
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(LONGEST).min(LONGEST);
        self.buckets.increment(micros).expect("a duration of at most the longest has a bucket");
        self.micros.fetch_add(micros, Ordering::Relaxed);
        micros
    }

    /// Returns the durations so far.
    pub fn durations(&self) -> Durations {
        Durations { buckets: self.buckets.load(), micros: self.micros.load(Ordering::Relaxed) }
    }
}

/// The durations of a [`Timing`] at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durations {
    buckets: Histogram,
    micros: u64,
}

impl Durations {
    /// Adds the durations of several timings together.
    pub fn sum<'a>(timings: impl Iterator<Item = &'a Timing>) -> Self {
        timings.map(Timing::durations).fold(Timing::default().durations(), |sum, more| Self {
            buckets: sum.buckets.wrapping_add(&more.buckets).expect("all have the same buckets"),
            micros: sum.micros.wrapping_add(more.micros),
        })
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.as_slice().iter().sum()
    }

    /// Returns the sum of all durations.
    pub fn total(&self) -> Duration {
        Duration::from_micros(self.micros)
    }

    /// Returns a duration that the share `share` (0 to 1) of the durations do not exceed. Returns
    /// `None` if there are no durations.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let found = self.buckets.quantiles(&[share]).ok()??;
        found.entries().values().next().map(|bucket| Duration::from_micros(bucket.end()))
    }

    /// Returns the exported buckets: the end of each in seconds, and the number of durations up to
    /// this end. The last bucket ends at infinity.
    pub fn exported(&self) -> Vec<(f64, u64)> {
        let up_to = |end: u64| {
            let inside = self.buckets.iter().take_while(|bucket| bucket.end() < end);
            inside.map(|bucket| bucket.count()).sum()
        };
        let ends = EXPORTED.map(|power| 1_u64 << power);
        let finite = ends.map(|micros| (micros as f64 / 1e6, up_to(micros)));
        finite.chain([(f64::INFINITY, self.count())]).collect()
    }
}

/// Returns the number of the exported bucket that contains a duration in µs.
pub(crate) fn exported_bucket(micros: u64) -> usize {
    let bits = u64::BITS - micros.leading_zeros();
    (bits.saturating_sub(*EXPORTED.start()) as usize).min(EXPORTED_BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_duration_is_in_the_exported_bucket_that_its_number_names() {
        for micros in [0, 1, 15, 16, 17, 31, 32, 1000, 67_108_863, 67_108_864, u64::MAX] {
            let timing = Timing::default();
            let added = timing.add(Duration::from_micros(micros));
            let exported = timing.durations().exported();
            let number = exported_bucket(added);
            assert_eq!(exported.len(), EXPORTED_BUCKETS);
            let first = exported.iter().position(|(_, count)| *count == 1);
            assert_eq!(first, Some(number), "{micros} µs");
            assert!(added as f64 / 1e6 <= exported[number].0, "{micros} µs");
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
        let half = all.quantile(0.5).expect("there are durations");
        assert!((Duration::from_millis(2)..Duration::from_micros(2250)).contains(&half));
        assert_eq!(Timing::default().durations().quantile(0.5), None);
    }
}
