//! Means with intervals, for a handful of repeats.

/// Two-sided 95 % points of Student's t for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// What repeats of one measurement say together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The arithmetic mean.
    pub mean: f64,
    /// The middle value, or the mean of the middle two.
    pub median: f64,
    /// Lower end of the mean's 95 % interval (Student's t).
    pub low: f64,
    /// Upper end of it.
    pub high: f64,
    /// How many values.
    pub count: usize,
}

/// The arithmetic mean; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "counts of repeats are small")]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

impl Summary {
    /// Summarises `values`; `None` when there are none.
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
}

/// The largest distance between the cumulative distributions of two samples (Kolmogorov and
/// Smirnov), in units of what two samples of one distribution stay below 99.9 times in 100: above 1
/// they are two. 0 when there is nothing to compare.
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
    // c(0.001) = sqrt(-ln(0.0005) / 2).
    distance / (1.949 * ((n + m) / (n * m)).sqrt())
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
        // Two against two, one of them in common: half of the distribution apart, of 1.949.
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
}
