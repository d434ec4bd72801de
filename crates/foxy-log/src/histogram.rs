//! A weighted histogram of durations, from which quantiles are computed. A computed quantile is at
//! most 1/16 too high.

use std::collections::BTreeMap;

/// The durations between two powers of two fall into 2^4 = 16 buckets of equal width.
const SUB_BITS: u32 = 4;

/// A histogram of durations, which have weights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    buckets: BTreeMap<u16, u64>,
    count: u64,
    /// The longest duration.
    longest: u64,
}

impl Histogram {
    /// Adds a duration in microseconds, as if it had occurred `weight` times.
    pub fn add(&mut self, micros: u64, weight: u64) {
        *self.buckets.entry(bucket(micros)).or_default() += weight;
        self.count += weight;
        self.longest = self.longest.max(micros);
    }

    /// Adds all durations of another histogram to this histogram.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.buckets {
            *self.buckets.entry(*bucket).or_default() += count;
        }
        self.count += other.count;
        self.longest = self.longest.max(other.longest);
    }

    /// Returns the quantile `share` (from 0 to 1) in microseconds: this fraction of all durations
    /// is at most as long. Returns `None` if there are no durations.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = (share * self.count as f64).ceil().max(1.0);
        let mut below = 0;
        self.buckets.iter().find_map(|(bucket, count)| {
            below += count;
            (below as f64 >= rank).then(|| largest(*bucket).min(self.longest))
        })
    }
}

fn bucket(micros: u64) -> u16 {
    let bits = u64::BITS - micros.leading_zeros();
    let shift = bits.saturating_sub(SUB_BITS + 1);
    let sub = micros >> shift;
    u16::try_from((u64::from(shift) << SUB_BITS) + sub).unwrap_or(u16::MAX)
}

fn largest(bucket: u16) -> u64 {
    let bucket = u64::from(bucket);
    let shift = (bucket >> SUB_BITS).saturating_sub(1);
    let sub = bucket - (shift << SUB_BITS);
    ((sub + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_at_most_a_sixteenth_too_high() {
        for micros in (0..2000).chain([70_000, 1 << 30, (1 << 40) + 12_345]) {
            let mut histogram = Histogram::default();
            histogram.add(micros, 3);
            let found = histogram.quantile(0.5).expect("a quantile");
            assert!(found >= micros && found <= micros + micros / 16, "{micros}: {found}");
        }
    }

    #[test]
    fn no_quantile_is_longer_than_the_longest_duration() {
        let mut histogram = Histogram::default();
        let mut slow = Histogram::default();
        histogram.add(20, 90);
        slow.add(1_810_000, 10);
        histogram.merge(&slow);
        assert_eq!(histogram.quantile(0.99), Some(1_810_000));
    }

    #[test]
    fn weights_and_merged_histograms_count() {
        let mut histogram = Histogram::default();
        histogram.add(10, 90);
        let mut slow = Histogram::default();
        slow.add(20, 10);
        histogram.merge(&slow);
        let quantiles = [0.5, 0.9, 0.91, 1.0].map(|share| histogram.quantile(share));
        assert_eq!(quantiles, [Some(10), Some(10), Some(20), Some(20)]);
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
