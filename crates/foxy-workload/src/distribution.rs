//! Draws random numbers from the distributions of the workload models.

use foxy_base::Random;
use std::f64::consts::TAU;

pub fn exponential(random: &mut Random, mean: f64) -> f64 {
    -mean * (1.0 - random.unit()).ln()
}

/// Draws from a normal distribution by the method of Box and Muller (1958).
pub fn normal(random: &mut Random, mean: f64, deviation: f64) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    mean + deviation * radius * (TAU * random.unit()).cos()
}

/// Draws from a lognormal distribution. `mean` and `deviation` are the mean and the standard
/// deviation of the drawn values, not of their logarithms.
pub fn lognormal(random: &mut Random, mean: f64, deviation: f64) -> f64 {
    let square = (deviation * deviation + mean * mean).ln();
    let mu = 2.0 * mean.ln() - 0.5 * square;
    normal(random, mu, (square - 2.0 * mean.ln()).sqrt()).exp()
}

/// Draws uniformly from `[low, high)`.
pub fn uniform(random: &mut Random, low: f64, high: f64) -> f64 {
    low + (high - low) * random.unit()
}

/// Draws a count from 1 to `most`, such as the number of images in a page. The count k has the
/// probability ln((k + 1) / k) / ln(most + 1), as in Polygraph's `zipf(most)`.
pub fn zipf_count(random: &mut Random, most: u32) -> u32 {
    floor(f64::from(most + 1).powf(random.unit())).try_into().unwrap_or(most).clamp(1, most)
}

/// Returns the mean of [`zipf_count`].
pub fn zipf_count_mean(most: u32) -> f64 {
    let logarithms: f64 = (1..=most).map(|k| f64::from(k).ln()).sum();
    f64::from(most) - logarithms / f64::from(most + 1).ln()
}

/// Draws how far back a repeated request reaches among the earlier objects: 1 is the newest object,
/// `objects` the oldest. The distance is at most k with the probability (ln(k + 1) / ln(objects +
/// 1))^(1 / skew). So newer objects are more popular, as in Polygraph's `zipf(skew)`.
#[expect(clippy::cast_precision_loss, reason = "objects of a run are far below 2^53")]
pub fn recency_rank(random: &mut Random, objects: u64, skew: f64) -> u64 {
    let rank = (objects as f64 + 1.0).powf(random.unit().powf(skew));
    floor(rank).clamp(1, objects.max(1))
}

/// Returns the whole part of `number`, or 0 for a negative number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates, which is what is meant"
)]
pub(crate) fn floor(number: f64) -> u64 {
    number as u64
}

/// Draws ranks by Zipf's law. The weight of a rank, counted from 1, is rank^-exponent. Draws follow
/// the law exactly, and each takes logarithmic time.
#[derive(Clone, Debug)]
pub(crate) struct Zipf {
    cumulated: Vec<f64>,
}

impl Zipf {
    #[expect(clippy::cast_precision_loss, reason = "ranks are far below 2^53")]
    pub(crate) fn new(objects: u64, exponent: f64) -> Self {
        let mut sum = 0.0;
        let cumulated = (1..=objects.max(1)).map(|rank| {
            sum += (rank as f64).powf(-exponent);
            sum
        });
        Self { cumulated: cumulated.collect() }
    }

    /// Returns the rank, counted from 0, that belongs to the uniform random number `unit` in `[0,
    /// 1)`. It is the first rank up to which the weights together exceed the share `unit` of the
    /// sum of all weights.
    pub(crate) fn rank(&self, unit: f64) -> u64 {
        let total = self.cumulated.last().copied().unwrap_or(1.0);
        let rank = self.cumulated.partition_point(|&sum| sum <= unit * total);
        rank.min(self.cumulated.len() - 1) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u32 = 100_000;

    /// Returns the mean and standard deviation of many draws.
    fn moments(mut draw: impl FnMut(&mut Random) -> f64) -> (f64, f64) {
        let mut random = Random::new(42);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let value = draw(&mut random);
            sum += value;
            squares += value * value;
        }
        let mean = sum / f64::from(DRAWS);
        (mean, (squares / f64::from(DRAWS) - mean * mean).sqrt())
    }

    /// The test compares the mean of n draws with the true mean. With correct code, they differ by
    /// more than four times deviation / √n for one seed in 16,000. The tolerance of 2 % is larger
    /// than this difference for all tested means and deviations.
    #[test]
    fn draws_have_the_mean_and_deviation_that_they_are_named_by() {
        let near = |name: &str, (mean, deviation): (f64, f64), expected: (f64, f64)| {
            assert!(
                (mean / expected.0 - 1.0).abs() < 0.02,
                "{name}: mean {mean}, expected {}",
                expected.0
            );
            let ratio = deviation / expected.1;
            assert!(
                (ratio - 1.0).abs() < 0.02,
                "{name}: deviation {deviation}, expected {}",
                expected.1
            );
        };
        near("exp", moments(|random| exponential(random, 5.0)), (5.0, 5.0));
        near("norm", moments(|random| normal(random, 2.5, 1.0)), (2.5, 1.0));
        near("logn", moments(|random| lognormal(random, 25.0, 10.0)), (25.0, 10.0));
        near("unif", moments(|random| uniform(random, 1.0, 365.0)), (183.0, 364.0 / 12f64.sqrt()));
    }

    #[test]
    fn counts_follow_the_logarithm() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 13];
        for _ in 0..DRAWS {
            seen[zipf_count(&mut random, 13) as usize - 1] += 1;
        }
        for (k, &count) in (1..=13).zip(&seen) {
            let expected = f64::from(DRAWS) * (f64::from(k + 1) / f64::from(k)).ln() / 14f64.ln();
            // The count may differ from its expected value by four standard deviations.
            assert!(
                (f64::from(count) - expected).abs() < 4.0 * expected.sqrt(),
                "{k}: {count}, {expected:.0}"
            );
        }
        let mean: f64 =
            (1..=13).zip(&seen).map(|(k, &count)| f64::from(k) * f64::from(count)).sum();
        assert!((mean / f64::from(DRAWS) - zipf_count_mean(13)).abs() < 0.05);
    }

    #[test]
    fn recency_ranks_follow_polygraphs_formula() {
        let mut random = Random::new(1);
        let (objects, skew) = (5000, 0.6);
        let ranks: Vec<u64> =
            (0..DRAWS).map(|_| recency_rank(&mut random, objects, skew)).collect();
        for k in [1u32, 15, 100, 1000] {
            let share = ranks.iter().filter(|&&rank| rank <= u64::from(k)).count();
            let share = f64::from(u32::try_from(share).expect("small")) / f64::from(DRAWS);
            let expected = (f64::from(k + 1).ln() / 5001f64.ln()).powf(1.0 / skew);
            assert!(
                (share - expected).abs() < 0.008,
                "rank at most {k}: {share}, expected {expected}"
            );
        }
        assert!(ranks.iter().all(|&rank| (1..=objects).contains(&rank)));
    }
}
