//! A cache in miniature: it holds the sampled keys that a whole cache would hold.

use crate::rate::SampleRate;
use foxy_schemes::{Policy, PolicyName, PolicySettings};
use hashbrown::HashTable;

/// The size and the policy of a whole cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    pub policy: PolicyName,
    /// The size in bytes.
    pub capacity: u64,
    /// Objects above this number of bytes are not stored.
    pub object_limit: u64,
}

/// An object in the terms of the sample.
#[derive(Clone, Copy, Debug)]
pub struct CachedObject {
    pub key_hash: u64,
    /// The bytes of the whole object, which decide whether the sample contains it.
    pub object_bytes: u64,
    /// The bytes that the object takes in the cache.
    pub size: u64,
}

/// Whether a cache has an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    No,
    /// The cache has the object, but only since the fetch that this request has joined.
    SinceThisFetch,
    Yes,
}

#[derive(Clone, Copy)]
struct CachedKey {
    key_hash: u64,
    /// Sizes from 4 GiB on count as 4 GiB.
    object_bytes: u32,
    size: u32,
    /// Whether only requests that joined the fetch have used the object.
    is_new: bool,
}

fn short(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl CachedKey {
    fn new(object: &CachedObject) -> Self {
        let CachedObject { key_hash, object_bytes, size } = *object;
        let (object_bytes, size) = (short(object_bytes), short(size));
        Self { key_hash, object_bytes, size, is_new: true }
    }

    /// Returns the bytes that the object takes in a miniature, or `None` if the sample does not
    /// contain the object.
    fn charged(&self, rate: SampleRate) -> Option<u64> {
        let object_bytes = u64::from(self.object_bytes);
        let is_sampled = rate.takes(self.key_hash, object_bytes);
        is_sampled.then(|| rate.charged(u64::from(self.size), object_bytes))
    }
}

pub struct MiniatureCache {
    settings: CacheSettings,
    rate: SampleRate,
    policy: Box<dyn Policy>,
    capacity: u64,
    used: u64,
    /// The number of the entry of each key.
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
            policy: settings.policy.make(&PolicySettings {
                capacity,
                object_limit,
                halvings: rate.halvings(),
            }),
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

    /// Uses an object, if the cache has it. `joins` tells whether the request has joined the fetch
    /// of an earlier request.
    pub fn touch(&mut self, key_hash: u64, joins: bool) -> Held {
        let keys = &self.keys;
        let same = |entry: &u32| keys[*entry as usize].key_hash == key_hash;
        let Some(&entry) = self.entries.find(key_hash, same) else { return Held::No };
        let is_new = &mut self.keys[entry as usize].is_new;
        if joins && *is_new {
            return Held::SinceThisFetch;
        }
        *is_new = false;
        self.policy.touch(entry);
        Held::Yes
    }

    /// Adds an object that is not in the cache.
    pub fn add(&mut self, object: &CachedObject) {
        let CacheSettings { capacity, object_limit, .. } = self.settings;
        let size = object.size;
        if size > capacity || size > object_limit || !self.policy.admits(size) {
            return;
        }
        self.insert(CachedKey::new(object));
        while self.used > self.capacity || self.policy.is_full() {
            let Some(victim) = self.policy.victim() else { break };
            self.remove(victim);
            self.has_evicted = true;
        }
    }

    fn insert(&mut self, cached: CachedKey) {
        let charged = cached.charged(self.rate).unwrap_or_default();
        let entry = self.vacant.pop().unwrap_or_else(|| {
            self.keys.push(cached);
            (self.keys.len() - 1) as u32
        });
        self.keys[entry as usize] = cached;
        let (key_hash, keys) = (cached.key_hash, &self.keys);
        self.entries.insert_unique(key_hash, entry, |entry| keys[*entry as usize].key_hash);
        self.used += charged;
        self.policy.insert_sampled(entry, key_hash, u64::from(cached.size), charged);
    }

    fn remove(&mut self, entry: u32) {
        let cached = self.keys[entry as usize];
        self.policy.remove(entry);
        self.used -= cached.charged(self.rate).unwrap_or_default();
        if let Ok(found) = self.entries.find_entry(cached.key_hash, |other| *other == entry) {
            found.remove();
        }
        self.vacant.push(entry);
    }

    /// Keeps only the keys of half the rate.
    pub fn thin(&mut self) {
        let rate = self.rate.halved();
        let (mut keys, mut used) = (Vec::new(), 0);
        let mut entries = HashTable::new();
        let mut kept = vec![None; self.keys.len()];
        for &entry in &self.entries {
            let cached = self.keys[entry as usize];
            let Some(charged) = cached.charged(rate) else { continue };
            let new = keys.len() as u32;
            kept[entry as usize] = Some((new, charged));
            keys.push(cached);
            used += charged;
            let hash = |entry: &u32| keys[*entry as usize].key_hash;
            entries.insert_unique(cached.key_hash, new, hash);
        }
        if !self.policy.thin(&|entry| kept[entry as usize]) {
            return self.build_again(rate);
        }
        (self.keys, self.entries, self.vacant) = (keys, entries, Vec::new());
        (self.used, self.rate) = (used, rate);
        self.capacity = rate.miniature(self.settings.capacity);
    }

    /// Adds the keys of another rate to an empty cache, the coldest first.
    fn build_again(&mut self, rate: SampleRate) {
        let old = std::mem::replace(self, Self::new(self.settings, rate));
        let Self { mut policy, keys, has_evicted, .. } = old;
        self.has_evicted = has_evicted;
        for entry in policy.coldest_first() {
            let CachedKey { key_hash, object_bytes, size, .. } = keys[entry as usize];
            let (object_bytes, size) = (u64::from(object_bytes), u64::from(size));
            if rate.takes(key_hash, object_bytes) {
                self.add(&CachedObject { key_hash, object_bytes, size });
            }
        }
    }
}
