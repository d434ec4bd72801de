//! Computes 95 % intervals of a mean or median by the bootstrap (Efron 1979). It draws many samples
//! from the measured values, at random and with repetition, and measures how far their statistic
//! varies. It assumes no distribution of the values.

use crate::statistics::mean;
use foxy_base::random::Random;

const RESAMPLES: usize = 1000;
/// Number of blocks of neighbouring values into which a time series is cut. Each sample consists of
/// whole blocks.
const BLOCKS: usize = 10;
/// Factor by which [`Interval::over_time`] widens an interval, because ten blocks are few and
/// neighbouring blocks depend on each other. It is the product of three parts: 2.26 / 1.96
/// (Student's t for ten blocks over the normal value), √(10/9) for the variance, and 1.25 for the
/// dependence.
///
/// With the noise of the tests below, at most one 95 % interval in twenty misses the true value.
/// Without the factor 1.25, one interval in twelve would miss it.
const WIDENING: f64 = 1.5;

/// The statistic for which the bootstrap computes an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The arithmetic mean.
    Mean,
    /// The median. For an even number of values, it is the upper middle value.
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

/// A statistic with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The statistic (mean or median) of the measured values, in their unit.
    pub value: f64,
    /// Lower end of the 95 % interval, in the unit of the values.
    pub low: f64,
    /// Upper end of the 95 % interval, in the unit of the values.
    pub high: f64,
}

impl Interval {
    /// Returns the 95 % interval of a time series, or `None` without values. Neighbouring values of
    /// a time series may depend on each other. So each sample consists of blocks of neighbours, a
    /// tenth of the values each (the circular block bootstrap of Politis and Romano 1992).
    ///
    /// The interval is right only if a disturbance, such as a pause of the machine, is shorter than
    /// a block. For a paired comparison, pass the differences of the pairs.
    pub fn over_time(values: &[f64], statistic: Statistic, seed: u64) -> Option<Self> {
        let found = Self::drawn(values, values.len().div_ceil(BLOCKS), statistic, seed)?;
        let end = |end: f64| found.value + (end - found.value) * WIDENING;
        Some(Self { low: end(found.low), high: end(found.high), ..found })
    }

    fn drawn(values: &[f64], block: usize, statistic: Statistic, seed: u64) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let mut drawn = values.to_vec();
        let value = statistic.of(&mut drawn);
        let mut random = Random::new(seed);
        let mut found: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                for places in drawn.chunks_mut(block) {
                    let at = usize::try_from(random.below(values.len() as u64)).unwrap_or(0);
                    let again = values[at..].iter().chain(values);
                    places.iter_mut().zip(again).for_each(|(place, value)| *place = *value);
                }
                statistic.of(&mut drawn)
            })
            .collect();
        found.sort_by(f64::total_cmp);
        let (low, high) = (found[RESAMPLES / 40], found[RESAMPLES - 1 - RESAMPLES / 40]);
        Some(Self { value, low, high })
    }

    /// Returns whether all values of the interval are above zero, or all below zero. For an
    /// interval of differences, this means that the difference is more than noise.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the interval from samples that draw single values instead of blocks. This treats the
    /// values as independent.
    fn plain(values: &[f64], statistic: Statistic, seed: u64) -> Option<Interval> {
        Interval::drawn(values, 1, statistic, seed)
    }

    /// Returns nearly normal values with variance one. Each value is the sum of twelve uniform
    /// numbers, minus six.
    fn normal(seed: u64, count: usize) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..count).map(|_| (0..12).map(|_| random.unit()).sum::<f64>() - 6.0).collect()
    }

    #[test]
    fn the_interval_of_a_normal_mean_is_about_two_standard_errors_wide_each_way() {
        let found = plain(&normal(1, 400), Statistic::Mean, 2).expect("values");
        let half = (found.high - found.low) / 2.0;
        assert!((0.08..0.12).contains(&half), "{found:?}");
        assert!(found.low < found.value && found.value < found.high, "{found:?}");
    }

    #[test]
    fn about_one_interval_in_twenty_misses_the_true_median() {
        let misses = (0..200)
            .filter(|&seed| {
                let found = plain(&normal(seed, 101), Statistic::Median, seed);
                found.expect("values").excludes_zero()
            })
            .count();
        assert!((2..=20).contains(&misses), "{misses} of 200");
    }

    /// Returns correlated noise: each value is nine tenths of the previous value plus new noise.
    fn correlated(seed: u64, count: usize) -> Vec<f64> {
        let mut last = 0.0;
        let next = |fresh: f64| {
            last = 0.9 * last + fresh;
            last
        };
        normal(seed, count).into_iter().map(next).collect()
    }

    /// Returns noise with occasional disturbances. A disturbance lasts for several values, and is
    /// far larger than the noise.
    fn disturbed(seed: u64, count: usize) -> Vec<f64> {
        let (mut random, mut values) = (Random::new(seed + 1_000), normal(seed, count));
        let mut at = 0;
        while at < count {
            at += usize::try_from(random.below(160)).unwrap_or(0);
            let (long, high) = (1 + random.below(30), 20.0 * (random.unit() - 0.5));
            let end = count.min(at + usize::try_from(long).unwrap_or(0));
            values[at.min(end)..end].iter_mut().for_each(|value| *value += high);
            at = end;
        }
        values
    }

    #[test]
    fn over_time_lasting_noise_gives_at_most_one_false_alarm_in_twenty() {
        const RUNS: u64 = 40;
        let alarms = |noise: fn(u64, usize) -> Vec<f64>, over_time: bool, statistic| {
            let interval = if over_time { Interval::over_time } else { plain };
            let is_alarm = |&seed: &u64| {
                let found = interval(&noise(seed, 400), statistic, seed);
                found.expect("values").excludes_zero()
            };
            (0..RUNS).filter(is_alarm).count()
        };
        for statistic in [Statistic::Median, Statistic::Mean] {
            for (name, noise) in
                [("correlated", correlated as fn(u64, usize) -> Vec<f64>), ("disturbed", disturbed)]
            {
                let found = alarms(noise, true, statistic);
                assert!(found <= 2, "{name}, {statistic:?}: {found} of {RUNS}");
            }
            assert!(alarms(correlated, false, statistic) > 10, "{statistic:?}");
        }
        assert!(alarms(disturbed, false, Statistic::Mean) > 10);
    }

    #[test]
    fn a_difference_is_found_over_time_too() {
        let values: Vec<f64> = disturbed(5, 1000).into_iter().map(|value| value + 1.0).collect();
        let found = Interval::over_time(&values, Statistic::Median, 1).expect("values");
        assert!(found.excludes_zero() && found.low > 0.0, "{found:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_interval_and_nothing_has_none() {
        let values = normal(3, 50);
        let again = |seed| plain(&values, Statistic::Mean, seed);
        assert_eq!(again(7), again(7));
        assert_ne!(again(7), again(8));
        assert_eq!(plain(&[], Statistic::Median, 1), None);
    }
}
