//! A cache in miniature: it holds the sampled keys that a whole cache would hold.

use crate::rate::SampleRate;
use foxy_schemes::{Policy, PolicyName, PolicySettings};
use hashbrown::HashTable;

/// The size and the policy of a whole cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    pub policy: PolicyName,
    /// The size of the whole cache in bytes.
    pub capacity: u64,
    /// Objects above this number of bytes are not stored.
    pub object_limit: u64,
}

#[derive(Clone, Copy)]
struct CachedKey {
    key_hash: u64,
    size: u64,
}

pub struct MiniatureCache {
    settings: CacheSettings,
    rate: SampleRate,
    policy: Box<dyn Policy>,
    capacity: u64,
    used: u64,
    /// Index of the entry of each key in `keys`.
    entries: HashTable<u32>,
    keys: Vec<CachedKey>,
    vacant: Vec<u32>,
    has_evicted: bool,
}

impl MiniatureCache {
    pub fn new(settings: CacheSettings, rate: SampleRate) -> Self {
        let capacity = rate.miniature(settings.capacity);
        let object_limit = settings.object_limit;
        Self {
            settings,
            rate,
            policy: settings.policy.make(&PolicySettings { capacity, object_limit }),
            capacity,
            used: 0,
            entries: HashTable::new(),
            keys: Vec::new(),
            vacant: Vec::new(),
            has_evicted: false,
        }
    }

    pub const fn settings(&self) -> &CacheSettings {
        &self.settings
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the cache has ever been full.
    pub const fn has_evicted(&self) -> bool {
        self.has_evicted
    }

    pub fn memory(&self) -> usize {
        self.policy.memory()
            + self.entries.capacity() * (size_of::<u32>() + 1)
            + self.keys.capacity() * size_of::<CachedKey>()
            + self.vacant.capacity() * size_of::<u32>()
    }

    /// Uses a key, if the cache has it. Returns whether the cache has it.
    pub fn touch(&mut self, key_hash: u64) -> bool {
        let keys = &self.keys;
        let same = |entry: &u32| keys[*entry as usize].key_hash == key_hash;
        let found = self.entries.find(key_hash, same).copied();
        if let Some(entry) = found {
            self.policy.touch(entry);
        }
        found.is_some()
    }

    /// Adds a key that is not in the cache, with an object of `size` bytes.
    pub fn add(&mut self, key_hash: u64, size: u64) {
        let CacheSettings { capacity, object_limit, .. } = self.settings;
        if size > capacity || size > object_limit || !self.policy.admits(size) {
            return;
        }
        self.insert(key_hash, size);
        while self.used > self.capacity {
            let Some(victim) = self.policy.victim() else { break };
            self.remove(victim);
            self.has_evicted = true;
        }
    }

    fn insert(&mut self, key_hash: u64, size: u64) {
        let cached = CachedKey { key_hash, size };
        let entry = self.vacant.pop().unwrap_or_else(|| {
            self.keys.push(cached);
            (self.keys.len() - 1) as u32
        });
        self.keys[entry as usize] = cached;
        let keys = &self.keys;
        self.entries.insert_unique(key_hash, entry, |entry| keys[*entry as usize].key_hash);
        let charged = self.rate.charged(size);
        self.used += charged;
        self.policy.insert_sampled(entry, key_hash, size, charged);
    }

    fn remove(&mut self, entry: u32) {
        let CachedKey { key_hash, size } = self.keys[entry as usize];
        self.policy.remove(entry);
        self.used -= self.rate.charged(size);
        if let Ok(found) = self.entries.find_entry(key_hash, |other| *other == entry) {
            found.remove();
        }
        self.vacant.push(entry);
    }

    /// Removes the keys that the lower sampling rate `rate` does not take.
    pub fn thin(&mut self, rate: SampleRate) {
        let old = std::mem::replace(self, Self::new(self.settings, rate));
        let Self { mut policy, keys, has_evicted, .. } = old;
        self.has_evicted = has_evicted;
        for entry in policy.coldest_first() {
            let CachedKey { key_hash, size } = keys[entry as usize];
            if rate.takes(key_hash, size) {
                self.add(key_hash, size);
            }
        }
    }
}
