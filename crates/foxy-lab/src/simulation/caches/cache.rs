//! A cache of URL numbers bounded in bytes, under a replacement policy of the store. It holds no
//! content and knows no time: only which look-ups hit. A repeat is a hit even if its size has
//! changed, and an entry keeps the size it was stored with (WORKLOADS: "real data here").

use foxy_base::random::split_mix;
use foxy_schemes::Policy;

/// What a look-up found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// The URL was stored.
    Hit,
    /// It was not.
    Miss {
        /// Whether it is now: the policy may refuse it, and it may be larger than the cache.
        is_stored: bool,
        /// The URLs that went for it; good until the next look-up.
        evicted: &'a [u32],
    },
}

/// Sums over look-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Look-ups.
    pub gets: u64,
    /// Those that hit.
    pub hits: u64,
    /// Bytes asked for.
    pub bytes: u64,
    /// Bytes asked for by those that hit, and those that others found of what they asked for.
    pub hit_bytes: u64,
}

impl Counts {
    /// Adds a look-up.
    pub const fn add(&mut self, size: u64, is_hit: bool) {
        self.gets += 1;
        self.bytes = self.bytes.saturating_add(size);
        if is_hit {
            self.hits += 1;
            self.hit_bytes = self.hit_bytes.saturating_add(size);
        }
    }

    /// Adds a look-up that found all but so many bytes of what it asked for, and is no hit.
    pub const fn add_incomplete(&mut self, size: u64, missing: u64) {
        self.add(size, false);
        self.hit_bytes = self.hit_bytes.saturating_add(size.saturating_sub(missing));
    }

    /// The share of look-ups that hit; 0 of none.
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.gets.max(1) as f64
    }

    /// The share of bytes that hits answered; 0 of none.
    pub fn byte_hit_ratio(&self) -> f64 {
        self.hit_bytes as f64 / self.bytes.max(1) as f64
    }
}

/// No size of a stored entry.
const ABSENT: u64 = u64::MAX;

/// The cache.
pub struct Cache {
    policy: Box<dyn Policy>,
    capacity: u64,
    used: u64,
    /// By URL, the bytes its entry was stored with.
    sizes: Vec<u64>,
    evicted: Vec<u32>,
    counts: Counts,
}

impl Cache {
    /// An empty cache of at most `capacity` bytes for URLs numbered below `urls`.
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

    /// Looks up a URL whose object has `size` bytes, and stores it if it was not there.
    ///
    /// # Panics
    /// If `url` is not below the number of URLs.
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

    /// Whether a URL is stored.
    pub fn holds(&self, url: u32) -> bool {
        self.sizes[url as usize] != ABSENT
    }

    /// Bytes stored.
    pub const fn used(&self) -> u64 {
        self.used
    }

    /// What the look-ups so far came to.
    pub const fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
