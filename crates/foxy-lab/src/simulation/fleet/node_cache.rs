//! The cache of a simulated node: a limit in bytes and a replacement policy of the store. Unlike
//! `caches::cache`, it takes memory only for the objects that it stores.

use foxy_base::random::split_mix;
use foxy_schemes::Policy;
use std::collections::HashMap;

pub struct NodeCache {
    policy: Box<dyn Policy>,
    capacity: u64,
    used: u64,
    /// The place in `entries` of each stored URL.
    places: HashMap<u32, u32>,
    /// URL and size in bytes of each stored object. Free places have old values.
    entries: Vec<(u32, u64)>,
    free: Vec<u32>,
}

impl NodeCache {
    pub fn new(policy: Box<dyn Policy>, capacity: u64) -> Self {
        let (places, entries, free) = (HashMap::new(), Vec::new(), Vec::new());
        Self { policy, capacity, used: 0, places, entries, free }
    }

    /// Looks up a URL whose object has `size` bytes. Stores the object on a miss. Returns whether
    /// it was a hit.
    pub fn get(&mut self, url: u32, size: u64) -> bool {
        let is_hit = self.touch(url);
        if !is_hit && size <= self.capacity && self.policy.admits(size) {
            self.insert(url, size);
        }
        is_hit
    }

    /// Looks up a URL. Stores nothing.
    pub fn touch(&mut self, url: u32) -> bool {
        let place = self.places.get(&url);
        place.inspect(|place| self.policy.touch(**place)).is_some()
    }

    pub const fn used(&self) -> u64 {
        self.used
    }

    fn insert(&mut self, url: u32, size: u64) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push((url, size));
            u32::try_from(self.entries.len() - 1).expect("fewer entries than URLs")
        });
        self.entries[place as usize] = (url, size);
        self.places.insert(url, place);
        self.used += size;
        self.policy.insert(place, split_mix(&mut u64::from(url)), size);
        while self.used > self.capacity {
            let victim = self.policy.victim().expect("something takes the space");
            self.policy.remove(victim);
            let (url, size) = self.entries[victim as usize];
            self.places.remove(&url);
            self.used -= size;
            self.free.push(victim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::caches::cache::{Cache, Lookup};
    use foxy_base::Random;
    use foxy_schemes::PolicySettings;
    use foxy_schemes::policy::POLICIES;

    #[test]
    fn hits_are_the_same_as_in_a_cache_with_a_place_for_every_url() {
        const URLS: u32 = 200;
        let settings = PolicySettings { capacity: 5000, object_limit: 300 };
        for row in POLICIES {
            let mut whole = Cache::new(row.name.make(&settings), settings.capacity, URLS);
            let mut cache = NodeCache::new(row.name.make(&settings), settings.capacity);
            let mut random = Random::new(7);
            for _ in 0..5000 {
                let url = (random.unit().powi(2) * f64::from(URLS)) as u32;
                let size = u64::from(url % 17 * 20 + 1);
                let is_hit = matches!(whole.get(url, size), Lookup::Hit);
                assert_eq!(cache.get(url, size), is_hit, "{}", row.text);
                assert_eq!(cache.used(), whole.used(), "{}", row.text);
            }
        }
    }
}
