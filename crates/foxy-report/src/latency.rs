//! Latencies in a high-dynamic-range histogram: microseconds, three digits, up to an hour.

use hdrhistogram::Histogram;
use std::time::Duration;

const HOUR_IN_MICROSECONDS: u64 = 3_600_000_000;

/// A set of latencies. Each thread keeps its own; they are merged at the end.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, HOUR_IN_MICROSECONDS, 3);
        Self { histogram: histogram.expect("the bounds are constants that hdrhistogram accepts") }
    }
}

impl Latencies {
    /// Adds one; anything over an hour counts as an hour.
    pub fn add(&mut self, latency: Duration) {
        self.histogram
            .saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
    }

    /// Adds all of another set.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The latency at a quantile in 0..=1, in microseconds; 0 when there is none.
    pub fn at(&self, quantile: f64) -> u64 {
        if self.count() == 0 { 0 } else { self.histogram.value_at_quantile(quantile) }
    }

    /// The mean in microseconds; 0 when there is none.
    pub fn mean(&self) -> f64 {
        self.histogram.mean()
    }

    /// `[quantile, microseconds]` at the quantiles that a plot of the distribution needs.
    pub fn quantiles(&self) -> Vec<(f64, u64)> {
        const SHOWN: [f64; 12] =
            [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999, 1.0];
        SHOWN.iter().map(|&quantile| (quantile, self.at(quantile))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_merged_sets_are_those_of_all_latencies() {
        let (mut low, mut high) = (Latencies::default(), Latencies::default());
        for number in 1..=50 {
            low.add(Duration::from_micros(number));
            high.add(Duration::from_micros(50 + number));
        }
        low.merge(&high);
        assert_eq!((low.count(), low.at(0.5), low.at(1.0)), (100, 50, 100));
    }

    #[test]
    fn nothing_measured_reads_as_zero_and_a_day_as_an_hour() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.at(0.99), 0);
        latencies.add(Duration::from_secs(86_400));
        assert!(latencies.at(1.0) >= HOUR_IN_MICROSECONDS);
    }
}
