//! Bootstrap intervals (Efron 1979): how sure a statistic of many values is, without assuming how they are distributed.

use crate::statistics::mean;
use foxy_base::random::Random;

/// How often values are drawn again.
const RESAMPLES: usize = 1000;

/// What is asked of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The middle value; of an even number the upper of the two in the middle.
    Median,
}

impl Statistic {
    fn of(self, values: &mut [f64]) -> f64 {
        match self {
            Self::Mean => mean(values),
            Self::Median => {
                let middle = values.len() / 2;
                *values.select_nth_unstable_by(middle, f64::total_cmp).1
            }
        }
    }
}

/// A statistic with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The statistic of the values themselves.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// The percentile interval of `values`, drawn again from `seed`; `None` when there are none. Given paired differences, it
    /// is the paired interval.
    #[must_use]
    pub fn bootstrap(values: &[f64], statistic: Statistic, seed: u64) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mut drawn = values.to_vec();
        let value = statistic.of(&mut drawn);
        let mut random = Random::new(seed);
        let mut found: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                for place in &mut drawn {
                    let at = usize::try_from(random.below(values.len() as u64)).unwrap_or(0);
                    *place = values[at];
                }
                statistic.of(&mut drawn)
            })
            .collect();
        found.sort_by(f64::total_cmp);
        let (low, high) = (found[RESAMPLES / 40], found[RESAMPLES - 1 - RESAMPLES / 40]);
        Some(Self { value, low, high })
    }

    /// Whether it lies wholly on one side of zero.
    #[must_use]
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of twelve uniform numbers less six: nearly normal, variance one.
    fn normal(seed: u64, count: usize) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..count).map(|_| (0..12).map(|_| random.unit()).sum::<f64>() - 6.0).collect()
    }

    #[test]
    fn the_interval_of_a_normal_mean_is_about_two_standard_errors_wide_each_way() {
        let found = Interval::bootstrap(&normal(1, 400), Statistic::Mean, 2).expect("values");
        let half = (found.high - found.low) / 2.0;
        assert!((0.08..0.12).contains(&half), "{found:?}");
        assert!(found.low < found.value && found.value < found.high, "{found:?}");
    }

    #[test]
    fn about_one_interval_in_twenty_misses_the_true_median() {
        let misses = (0..200)
            .filter(|&seed| {
                let found = Interval::bootstrap(&normal(seed, 101), Statistic::Median, seed);
                found.expect("values").excludes_zero()
            })
            .count();
        assert!((2..=20).contains(&misses), "{misses} of 200");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval_and_nothing_has_none() {
        let values = normal(3, 50);
        let again = |seed| Interval::bootstrap(&values, Statistic::Mean, seed);
        assert_eq!(again(7), again(7));
        assert_ne!(again(7), again(8));
        assert_eq!(Interval::bootstrap(&[], Statistic::Median, 1), None);
    }
}
