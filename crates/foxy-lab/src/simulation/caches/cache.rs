//! A simulated cache with a size limit in bytes and a replacement policy of the store. It stores no
//! content, only numbers for URLs, and it has no clock. It counts hits and misses. A repeated
//! look-up is a hit even if the object's size has changed. An entry keeps the size with which it
//! was stored.

use foxy_base::random::split_mix;
use foxy_schemes::Policy;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<'a> {
    Hit,
    Miss {
        /// Whether the missed object is now stored. False if the policy refused the object, or if
        /// the object is larger than the whole cache.
        is_stored: bool,
        evicted: &'a [u32],
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub gets: u64,
    pub hits: u64,
    pub bytes: u64,
    pub hit_bytes: u64,
}

impl Counts {
    pub const fn add(&mut self, size: u64, is_hit: bool) {
        self.gets += 1;
        self.bytes = self.bytes.saturating_add(size);
        if is_hit {
            self.hits += 1;
            self.hit_bytes = self.hit_bytes.saturating_add(size);
        }
    }

    /// Adds a miss of an object of `size` bytes. The cache lacked only `missing` of these bytes.
    pub const fn add_incomplete(&mut self, size: u64, missing: u64) {
        self.add(size, false);
        self.hit_bytes = self.hit_bytes.saturating_add(size.saturating_sub(missing));
    }

    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.gets.max(1) as f64
    }

    pub fn byte_hit_ratio(&self) -> f64 {
        self.hit_bytes as f64 / self.bytes.max(1) as f64
    }
}

/// The value in a list of sizes that marks an object which is not stored.
const ABSENT: u64 = u64::MAX;

pub struct Cache {
    policy: Box<dyn Policy>,
    capacity: u64,
    used: u64,
    /// The size of each stored object in bytes, by the number of the URL.
    sizes: Vec<u64>,
    evicted: Vec<u32>,
    counts: Counts,
}

impl Cache {
    /// Creates an empty cache of at most `capacity` bytes. URLs are numbers below `urls`.
    pub fn new(policy: Box<dyn Policy>, capacity: u64, urls: u32) -> Self {
        Self {
            policy,
            capacity,
            used: 0,
            sizes: vec![ABSENT; urls as usize],
            evicted: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// Looks up a URL whose object has `size` bytes. Stores the object on a miss.
    pub fn get(&mut self, url: u32, size: u64) -> Lookup<'_> {
        let is_hit = self.holds(url);
        self.counts.add(size, is_hit);
        if is_hit {
            self.policy.touch(url);
            return Lookup::Hit;
        }
        self.evicted.clear();
        if size <= self.capacity && self.policy.admits(size) {
            self.insert(url, size);
        }
        Lookup::Miss { is_stored: self.holds(url), evicted: &self.evicted }
    }

    fn insert(&mut self, url: u32, size: u64) {
        self.sizes[url as usize] = size;
        self.used += size;
        self.policy.insert(url, split_mix(&mut u64::from(url)), size);
        while self.used > self.capacity {
            let victim = self.policy.victim().expect("something takes the space");
            self.forget(victim);
            if victim != url {
                self.evicted.push(victim);
            }
        }
    }

    fn forget(&mut self, url: u32) {
        self.policy.remove(url);
        self.used -= self.sizes[url as usize];
        self.sizes[url as usize] = ABSENT;
    }

    pub fn holds(&self, url: u32) -> bool {
        self.sizes[url as usize] != ABSENT
    }

    pub const fn used(&self) -> u64 {
        self.used
    }

    pub const fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
