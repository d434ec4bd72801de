//! The what-if curves as values for JSON: the admin server sends them, and `foxy whatif` prints
//! them.

use foxy_whatif::{Estimate, Estimator, HostCurve, Point, Tier, Totals};
use serde::{Deserialize, Serialize};

const MAX_HOSTS: usize = 10;

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct WhatIfReport {
    /// Number of requests that the cache could have answered.
    pub requests: f64,
    /// Number of body bytes that clients received for these requests.
    pub bytes: f64,
    /// Sampled requests that were not simulated, because there were too many at a time.
    pub lost: u64,
    pub tiers: Vec<TierReport>,
}

/// The what-if curves of the disk or of the memory.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TierReport {
    /// Name of the tier: `disk` or `memory`.
    pub tier: String,
    pub capacity: u64,
    pub policy: String,
    /// The share of the keys of small objects that are sampled.
    pub sampled: f64,
    /// Points with the present policy, the smallest size first, then points with other policies.
    pub points: Vec<PointReport>,
    pub hosts: Vec<HostReport>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PointReport {
    pub factor: f64,
    pub policy: String,
    pub capacity: u64,
    pub hits: Share,
    pub byte_hits: Share,
    /// Number of sampled keys in the simulated cache of this point.
    pub keys: usize,
    /// Whether the simulated cache was ever full.
    pub was_full: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct HostReport {
    pub host: String,
    pub requests: f64,
    pub bytes: f64,
    /// For each cache size, the shares of the requests and of the bytes that would be hits.
    pub points: Vec<(Share, Share)>,
}

/// A fraction from 0 to 1, with its 95 % confidence interval. Both ends are `None` if the sample
/// does not show how uncertain the value is.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Share {
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

impl From<Estimate> for Share {
    fn from(Estimate { value, interval }: Estimate) -> Self {
        Self { value, low: interval.map(|ends| ends.0), high: interval.map(|ends| ends.1) }
    }
}

impl Share {
    /// Returns the distance from the value to the farther end of the interval.
    pub fn margin(&self) -> Option<f64> {
        Some((self.high? - self.value).max(self.value - self.low?))
    }
}

impl TierReport {
    pub fn new(name: &str, tier: Tier, estimator: &Estimator, totals: &Totals) -> Self {
        Self {
            tier: name.into(),
            capacity: tier.capacity,
            policy: tier.policy.to_string(),
            sampled: estimator.rate().share(),
            points: estimator.points(totals).iter().map(PointReport::from).collect(),
            hosts: estimator
                .hosts(MAX_HOSTS, totals.lost_share)
                .into_iter()
                .map(HostReport::from)
                .collect(),
        }
    }

    /// Returns the points of the curve with the present replacement policy.
    pub fn curve(&self) -> impl Iterator<Item = &PointReport> {
        self.points.iter().filter(|point| point.policy == self.policy)
    }
}

impl From<&Point> for PointReport {
    fn from(point: &Point) -> Self {
        Self {
            factor: point.factor,
            policy: point.policy.to_string(),
            capacity: point.capacity,
            hits: point.hits.into(),
            byte_hits: point.byte_hits.into(),
            keys: point.keys,
            was_full: point.was_full,
        }
    }
}

impl From<HostCurve> for HostReport {
    fn from(curve: HostCurve) -> Self {
        let share = |(hits, bytes): (Estimate, Estimate)| (hits.into(), bytes.into());
        Self {
            host: curve.host,
            requests: curve.requests,
            bytes: curve.bytes,
            points: curve.points.into_iter().map(share).collect(),
        }
    }
}
