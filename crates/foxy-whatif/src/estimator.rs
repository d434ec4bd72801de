//! Simulates the caches of a tier (the disk or the memory) with other sizes and policies, and
//! estimates their hits.

use crate::cache::{CacheSettings, MiniatureCache};
use crate::curve::{Estimate, Point, Totals};
use crate::hosts::{HostCurve, HostTable};
use crate::rate::SampleRate;
use crate::sums::{Amount, GroupSums, bytes, difference, requests};
use foxy_schemes::PolicyName;

/// A request whose key is in the sample.
#[derive(Clone, Copy, Debug)]
pub struct SampledRequest<'a> {
    /// A hash of the key with evenly distributed bits.
    pub key_hash: u64,
    /// The requested host.
    pub host: &'a str,
    /// The bytes that the object takes in the cache, or 0 if they are not known. An object whose
    /// size is not known cannot be stored.
    pub size: u64,
    /// The bytes of the body that the client received.
    pub sent: u64,
    /// Whether a cache that has the object may answer this request.
    pub may_hit: bool,
    /// Whether a cache that does not have the object may store it now.
    pub may_store: bool,
}

/// The present cache of a tier (the disk or the memory).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier {
    /// The size of the cache in bytes.
    pub capacity: u64,
    /// The replacement policy.
    pub policy: PolicyName,
    /// Objects above this number of bytes are not stored.
    pub object_limit: u64,
    /// Number of equal shards of the cache. An object that does not fit into a shard is not stored.
    pub shards: u64,
}

/// The cache sizes of a curve, as multiples of the present size.
pub const FACTORS: [f64; 6] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0];

/// Index of the present size in [`FACTORS`].
const PRESENT: usize = 2;

/// The estimator checks its memory use each time it has taken this many sampled requests.
const REQUESTS_PER_LOOK: u32 = 256;

struct Simulated {
    factor: f64,
    cache: MiniatureCache,
    missed: GroupSums,
}

/// Estimates the curve of a tier: its hits at each size.
pub struct Estimator {
    rate: SampleRate,
    memory_limit: usize,
    until_look: u32,
    /// Caches with the present policy and [`FACTORS`], then caches with the present size.
    simulated: Vec<Simulated>,
    /// Requests that would miss in a cache of any size.
    unavoidable: GroupSums,
    hosts: HostTable,
    /// Whether each cache missed the last request.
    missed: Vec<bool>,
}

impl Estimator {
    /// Creates an estimator that uses about `memory_limit` bytes. It also simulates these other
    /// policies with the present size. The sample first has all keys.
    pub fn new(tier: Tier, others: &[PolicyName], memory_limit: usize) -> Self {
        let sizes = FACTORS.iter().map(|&factor| (factor, tier.policy));
        let others = others.iter().filter(|policy| **policy != tier.policy);
        let others = others.map(|&policy| (1.0, policy));
        let rate = SampleRate::default();
        let simulated = |(factor, policy): (f64, PolicyName)| {
            let capacity = (tier.capacity as f64 * factor) as u64;
            let object_limit = tier.object_limit.min(capacity / tier.shards);
            let settings = CacheSettings { policy, capacity, object_limit };
            let cache = MiniatureCache::new(settings, rate);
            Simulated { factor, cache, missed: GroupSums::default() }
        };
        let simulated: Vec<_> = sizes.chain(others).map(simulated).collect();
        Self {
            rate,
            memory_limit,
            until_look: REQUESTS_PER_LOOK,
            missed: vec![false; simulated.len()],
            simulated,
            unavoidable: GroupSums::default(),
            hosts: HostTable::default(),
        }
    }

    /// Returns the present sampling rate.
    pub const fn rate(&self) -> SampleRate {
        self.rate
    }

    /// Returns the number of keys in the simulated cache with the most keys.
    pub fn keys(&self) -> usize {
        self.simulated.iter().map(|simulated| simulated.cache.len()).max().unwrap_or(0)
    }

    /// Returns the bytes of memory of all simulated caches.
    pub fn memory(&self) -> usize {
        self.simulated.iter().map(|simulated| simulated.cache.memory()).sum()
    }

    /// Simulates a request. Ignores it if its key is not in the sample.
    pub fn add(&mut self, request: &SampledRequest<'_>) {
        let SampledRequest { key_hash, host, size, sent, may_hit, may_store } = *request;
        if !self.rate.takes(key_hash, size) {
            return;
        }
        let weight = self.rate.weight(size);
        let sent = sent as f64;
        for (simulated, missed) in self.simulated.iter_mut().zip(&mut self.missed) {
            let is_held = simulated.cache.touch(key_hash);
            if !is_held && may_store {
                simulated.cache.add(key_hash, size);
            }
            *missed = !(is_held && may_hit);
            if *missed && may_hit {
                simulated.missed.add(key_hash, weight, sent);
            }
        }
        if !may_hit {
            self.unavoidable.add(key_hash, weight, sent);
        }
        let missed = self.missed[..FACTORS.len()].iter().copied();
        self.hosts.add(host, key_hash, (weight, sent), missed);
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = REQUESTS_PER_LOOK;
            while self.memory() > self.memory_limit {
                self.thin();
            }
        }
    }

    /// Halves the sampling rate, and forgets the keys that are no longer sampled.
    pub fn thin(&mut self) {
        self.rate = self.rate.halved();
        self.simulated.iter_mut().for_each(|simulated| simulated.cache.thin(self.rate));
    }

    /// Halves all sums, so that old requests lose weight. The caller must halve its totals too.
    pub fn halve(&mut self) {
        self.simulated.iter_mut().for_each(|simulated| simulated.missed.halve());
        self.unavoidable.halve();
        self.hosts.halve();
    }

    /// Returns the points of the curve, then the points of the other policies.
    pub fn points(&self, totals: &Totals) -> Vec<Point> {
        self.simulated.iter().map(|simulated| self.point(simulated, totals)).collect()
    }

    /// Returns a point of the curve. If the hits of the present cache are known, `point` estimates
    /// only the difference from that cache. Errors of the simulation that all sizes have in common
    /// then cancel out. Otherwise, every request that did not miss is a hit. Sums of misses are
    /// more certain than sums of hits (as in SHARDS-adj, FAST 2015). A key with many requests has
    /// many hits and few misses.
    fn point(&self, simulated: &Simulated, totals: &Totals) -> Point {
        let Simulated { factor, cache, missed } = simulated;
        let present = &self.simulated[PRESENT];
        let is_known = totals.hits.is_some() && std::ptr::eq(simulated, present);
        let estimate = |of: fn(&Amount) -> f64, whole: f64, hits: Option<f64>| {
            let whole = whole.max(f64::MIN_POSITIVE);
            if let Some(hits) = hits {
                difference((&present.missed, missed), of, (hits / whole, whole))
            } else {
                let all = missed.with(&self.unavoidable);
                difference((&GroupSums::default(), &all), of, (1.0, whole))
            }
        };
        let estimate = |of: fn(&Amount) -> f64, whole: f64, hits: Option<f64>| {
            let found = estimate(of, whole, hits);
            if is_known { found } else { self.doubted(found, totals.lost_share) }
        };
        let CacheSettings { policy, capacity, .. } = *cache.settings();
        Point {
            factor: *factor,
            policy,
            capacity,
            hits: estimate(requests, totals.requests, totals.hits.map(|hits| hits.0)),
            byte_hits: estimate(bytes, totals.bytes, totals.hits.map(|hits| hits.1)),
            keys: cache.len(),
            was_full: cache.has_evicted(),
        }
    }

    /// Adds the doubts that the groups of keys do not show: lost requests, and keys outside the
    /// sample.
    fn doubted(&self, found: Estimate, lost_share: f64) -> Estimate {
        let found = if self.rate == SampleRate::default() { found } else { found.of_part() };
        found.with_lost(lost_share)
    }

    /// Returns the curves of the `most` hosts with the most requests. `lost_share` is the share of
    /// the sampled requests that were not simulated.
    pub fn hosts(&self, most: usize, lost_share: f64) -> Vec<HostCurve> {
        let doubted = |found| self.doubted(found, lost_share);
        let mut curves = self.hosts.curves(most);
        for (hits, bytes) in curves.iter_mut().flat_map(|curve| &mut curve.points) {
            (*hits, *bytes) = (doubted(*hits), doubted(*bytes));
        }
        curves
    }
}

#[cfg(test)]
#[path = "estimator_tests.rs"]
mod tests;
