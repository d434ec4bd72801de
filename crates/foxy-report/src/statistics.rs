//! Computes means with 95 % intervals, the distance between two samples, and histograms of
//! latencies.

use hdrhistogram::Histogram;
use std::time::Duration;

/// Two-sided 95 % points of Student's t distribution for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// A summary of the repeats of one measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// The middle value. For an even number of values, it is the mean of the middle two.
    pub median: f64,
    /// Lower end of the mean's 95 % interval, by Student's t distribution.
    pub low: f64,
    /// Upper end of the mean's 95 % interval.
    pub high: f64,
    /// Number of values.
    pub count: usize,
}

/// Returns the arithmetic mean, or 0 without values.
#[expect(clippy::cast_precision_loss, reason = "counts of repeats are small")]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Summary {
    /// Summarises `values`. Returns `None` without values.
    #[expect(clippy::cast_precision_loss, reason = "counts of repeats are small")]
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len();
        if count == 0 {
            return None;
        }
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let mean = mean(&sorted);
        let median = f64::midpoint(sorted[(count - 1) / 2], sorted[count / 2]);
        let half = if count < 2 {
            0.0
        } else {
            let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
            let deviation = (squares / (count - 1) as f64).sqrt();
            STUDENT.get(count - 2).copied().unwrap_or(1.96) * deviation / (count as f64).sqrt()
        };
        Some(Self { mean, median, low: mean - half, high: mean + half, count })
    }

    /// Summarises the ratios of pairs: the first value of a pair divided by the second. Ignores
    /// ratios that are not finite or not above 0. Returns `None` if no ratio remains.
    pub fn of_pairs(pairs: impl IntoIterator<Item = (f64, f64)>) -> Option<Self> {
        let ratios = pairs.into_iter().map(|(upper, lower)| upper / lower);
        let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite() && *ratio > 0.0).collect();
        Self::of_ratios(&ratios)
    }

    /// Summarises ratios: their geometric mean, with an interval that lies above 0. Returns `None`
    /// without ratios, or if a ratio is not above 0.
    pub fn of_ratios(ratios: &[f64]) -> Option<Self> {
        let logarithms: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        if logarithms.iter().any(|logarithm| !logarithm.is_finite()) {
            return None;
        }
        let Self { mean, median, low, high, count } = Self::of(&logarithms)?;
        let [mean, median, low, high] = [mean, median, low, high].map(f64::exp);
        Some(Self { mean, median, low, high, count })
    }
}

/// Returns the largest distance between the cumulative distributions of two samples, divided by the
/// critical value of the Kolmogorov–Smirnov test for α = 0.001. A result above 1 shows that the
/// samples come from different distributions. Returns 0 if a sample is empty.
#[expect(clippy::cast_precision_loss, reason = "samples are far below 2^53 values")]
pub fn distribution_distance(one: &[f64], other: &[f64]) -> f64 {
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    let sorted = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values
    };
    let (one, other) = (sorted(one), sorted(other));
    let share = |values: &[f64], value: f64| {
        values.partition_point(|other| *other <= value) as f64 / values.len() as f64
    };
    let apart = |&value: &f64| (share(&one, value) - share(&other, value)).abs();
    let distance = one.iter().chain(&other).map(apart).fold(0.0, f64::max);
    let (n, m) = (one.len() as f64, other.len() as f64);
    // The critical value is c(α) · sqrt((n + m) / (n · m)). For α = 0.001, c is 1.949.
    distance / (1.949 * ((n + m) / (n * m)).sqrt())
}

const HOUR_IN_MICROSECONDS: u64 = 3_600_000_000;

/// A histogram of latencies from 1 µs to an hour. It keeps three significant digits of each
/// latency. Each thread fills its own histogram, and [`Latencies::merge`] combines them.
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
    /// Adds a latency. A latency above an hour counts as an hour.
    pub fn add(&mut self, latency: Duration) {
        self.histogram
            .saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
    }

    /// Adds all latencies of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Returns the latency in microseconds at `quantile` between 0 and 1. Returns 0 for an empty
    /// histogram.
    pub fn at(&self, quantile: f64) -> u64 {
        if self.count() == 0 { 0 } else { self.histogram.value_at_quantile(quantile) }
    }

    /// Returns the mean in microseconds, or 0 for an empty histogram.
    pub fn mean(&self) -> f64 {
        self.histogram.mean()
    }

    /// Returns pairs of quantile and microseconds, for a plot of the distribution: every hundredth,
    /// and finer steps near 1.
    pub fn quantiles(&self) -> Vec<(f64, u64)> {
        let tail = [0.995, 0.999, 0.9999, 1.0];
        let shown = (0..100).map(|hundredth| f64::from(hundredth) / 100.0).chain(tail);
        shown.map(|quantile| (quantile, self.at(quantile))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_distribution_are_near_and_shifted_ones_are_not() {
        let sample =
            |shift: f64| (0..400).map(|at| f64::from(at * 7919 % 1009) + shift).collect::<Vec<_>>();
        assert!(distribution_distance(&sample(0.0), &sample(5.0)) < 0.5);
        assert!(distribution_distance(&sample(0.0), &sample(250.0)) > 1.0);
        // The cumulative distributions differ by at most one half.
        assert!((distribution_distance(&[1.0, 2.0], &[2.0, 3.0]) - 0.5 / 1.949).abs() < 1e-9);
        assert!(distribution_distance(&[], &[1.0]) < 1e-9);
    }

    #[test]
    fn three_repeats_have_the_interval_of_students_t() {
        let summary = Summary::of(&[1.0, 3.0, 2.0]).expect("values");
        assert_eq!((summary.mean, summary.median, summary.count), (2.0, 2.0, 3));
        assert!((summary.high - (2.0 + 4.303 / 3f64.sqrt())).abs() < 1e-9, "{summary:?}");
        assert!((summary.low + summary.high - 4.0).abs() < 1e-9);
    }

    #[test]
    fn one_value_is_its_own_interval_and_none_is_nothing() {
        assert_eq!(Summary::of(&[5.0]).map(|s| (s.low, s.high)), Some((5.0, 5.0)));
        assert_eq!(Summary::of(&[]), None);
    }

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
