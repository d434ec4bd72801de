//! The results: the points of a curve, which shows the hits of a cache at each size. Each point has
//! its uncertainty.

use foxy_schemes::PolicyName;

/// A fraction from 0 to 1, with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The most likely fraction.
    pub value: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    pub(crate) fn new(value: f64, half_width: f64) -> Self {
        let within = |share: f64| share.clamp(0.0, 1.0);
        let (low, high) = (within(value - half_width), within(value + half_width));
        Self { value: within(value), low, high }
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
}
