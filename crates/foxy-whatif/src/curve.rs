//! The results: the points of a curve, which shows the hits of a cache at each size. Each point has
//! its uncertainty.

use foxy_schemes::PolicyName;

/// A fraction from 0 to 1, with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The most likely fraction.
    pub value: f64,
    /// The ends of the interval. `None` if the sample does not show how uncertain the value is.
    pub interval: Option<(f64, f64)>,
}

impl Estimate {
    pub(crate) fn new(value: f64, half_width: f64) -> Self {
        let within = |share: f64| share.clamp(0.0, 1.0);
        let interval = (within(value - half_width), within(value + half_width));
        Self { value: within(value), interval: Some(interval) }
    }

    /// Widens the interval by requests that were lost, which may all be hits or all be misses.
    pub(crate) fn with_lost(self, share: f64) -> Self {
        let widened = |(low, high)| (low * (1.0 - share), high + share * (1.0 - high));
        Self { interval: self.interval.map(widened), ..self }
    }

    /// Removes an interval without width. Equal results of all groups of sampled keys say nothing
    /// about the keys outside the sample.
    pub(crate) fn of_part(self) -> Self {
        Self { interval: self.interval.filter(|(low, high)| low < high), ..self }
    }
}

/// A point of a curve: the hits that a cache with this size and policy would have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The size of the simulated cache divided by the size of the present cache.
    pub factor: f64,
    /// The replacement policy.
    pub policy: PolicyName,
    /// The size of the cache in bytes.
    pub capacity: u64,
    /// The fraction of the requests that would be hits.
    pub hits: Estimate,
    /// The fraction of the bytes that would be hits.
    pub byte_hits: Estimate,
    /// Number of sampled keys that the simulated cache holds now.
    pub keys: usize,
    /// Whether the simulated cache was ever full. Until then, the point may be too low.
    pub was_full: bool,
}

/// The requests, bytes and hits of the whole traffic, sampled or not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Number of requests.
    pub requests: f64,
    /// Bytes of the bodies that clients received.
    pub bytes: f64,
    /// The requests that the present cache answered, and their bytes. `None` if they are unknown,
    /// as in many logs.
    pub hits: Option<(f64, f64)>,
    /// The share of the sampled requests that were not simulated.
    pub lost_share: f64,
}
