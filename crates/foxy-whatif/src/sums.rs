//! Weighted sums over the sampled requests, separately for each group of keys. The differences
//! between the groups show how uncertain a sum is.

use crate::curve::Estimate;

/// The number of groups. The lowest bits of a key's hash choose its group.
pub const GROUPS: usize = 16;

/// The 97.5 % quantile of Student's t distribution with `GROUPS - 1` degrees of freedom.
const QUANTILE: f64 = 2.131;

/// A number of requests and the bytes of their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Amount {
    pub requests: f64,
    pub bytes: f64,
}

impl Amount {
    fn add(&mut self, other: Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
    }
}

/// A sum over the sampled requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupSums {
    total: Amount,
    /// For each group of keys, the part of the sum that depends on which keys were sampled.
    uncertain: [Amount; GROUPS],
}

impl GroupSums {
    /// Adds a request that stands for `weight` requests, each with a body of `bytes` bytes. A key
    /// that is sampled in any case has the weight 1, and adds nothing uncertain.
    pub fn add(&mut self, key_hash: u64, weight: f64, bytes: f64) {
        let amount = |requests: f64| Amount { requests, bytes: requests * bytes };
        self.total.add(amount(weight));
        let uncertain = weight * (1.0 - 1.0 / weight).max(0.0).sqrt();
        self.uncertain[key_hash as usize % GROUPS].add(amount(uncertain));
    }

    pub fn halve(&mut self) {
        for sum in self.uncertain.iter_mut().chain([&mut self.total]) {
            sum.requests /= 2.0;
            sum.bytes /= 2.0;
        }
    }

    /// Returns the sum of `self` and `other`, separately for each group.
    pub fn with(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.total.add(other.total);
        all.uncertain.iter_mut().zip(&other.uncertain).for_each(|(sum, other)| sum.add(*other));
        all
    }

    pub const fn total(&self) -> Amount {
        self.total
    }
}

pub fn requests(amount: &Amount) -> f64 {
    amount.requests
}

pub fn bytes(amount: &Amount) -> f64 {
    amount.bytes
}

/// Estimates the share of hits of a cache: `known + (plus - minus) / whole`. `known` is the share
/// of another cache, `plus` are the misses of that cache, and `minus` the misses of this cache.
pub fn difference(
    (plus, minus): (&GroupSums, &GroupSums),
    of: fn(&Amount) -> f64,
    (known, whole): (f64, f64),
) -> Estimate {
    let value = known + (of(&plus.total) - of(&minus.total)) / whole;
    let uncertain = |group: usize| of(&plus.uncertain[group]) - of(&minus.uncertain[group]);
    Estimate::new(value, half_width(uncertain, whole))
}

/// Estimates the share of requests or bytes that hit: `1 - missed / asked`.
pub fn hit_share((missed, asked): (&GroupSums, &GroupSums), of: fn(&Amount) -> f64) -> Estimate {
    let whole = of(&asked.total).max(f64::MIN_POSITIVE);
    let ratio = of(&missed.total) / whole;
    let uncertain =
        |group: usize| of(&missed.uncertain[group]) - ratio * of(&asked.uncertain[group]);
    Estimate::new(1.0 - ratio, half_width(uncertain, whole))
}

/// Returns half the width of the 95 % interval of the sum of all groups, divided by `whole`.
fn half_width(uncertain: impl Fn(usize) -> f64, whole: f64) -> f64 {
    let count = GROUPS as f64;
    let groups: [f64; GROUPS] = std::array::from_fn(uncertain);
    let mean = groups.iter().sum::<f64>() / count;
    let squares: f64 = groups.iter().map(|group| (group - mean).powi(2)).sum();
    QUANTILE * (squares * count / (count - 1.0)).sqrt() / whole
}
