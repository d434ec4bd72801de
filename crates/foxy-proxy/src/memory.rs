//! The memory tier: whole small responses shared by all workers, bounded by bytes. Eviction is SIEVE (Zhang et al.,
//! NSDI 2024): a hit only sets a mark, so it takes the lock for a look-up and nothing more.

use crate::stored::{Stored, VaryList};
use foxy_store::Key;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks the tier is divided over.
const SHARDS: usize = 16;

/// What the tier holds under a key.
#[derive(Clone, Debug)]
pub enum Cached {
    /// A response.
    Response(Arc<Stored>),
    /// The names that choose among several, with the key text they belong to.
    Varies(Arc<(bytes::Bytes, VaryList)>),
}

impl Cached {
    fn weight(&self) -> u64 {
        match self {
            Self::Response(stored) => stored.weight(),
            Self::Varies(list) => 256 + list.0.len() as u64,
        }
    }

    /// The key text it was stored under.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        match self {
            Self::Response(stored) => &stored.key,
            Self::Varies(list) => &list.0,
        }
    }
}

/// The tier.
#[derive(Debug)]
pub struct MemoryTier {
    shards: Vec<Mutex<Shard>>,
}

#[derive(Debug)]
struct Shard {
    limit: u64,
    used: u64,
    index: HashMap<Key, usize>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    newest: Option<usize>,
    oldest: Option<usize>,
    hand: Option<usize>,
}

#[derive(Debug)]
struct Slot {
    key: Key,
    value: Option<Cached>,
    weight: u64,
    visited: bool,
    newer: Option<usize>,
    older: Option<usize>,
}

impl MemoryTier {
    /// A tier of at most `bytes`.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let shard = || {
            Mutex::new(Shard {
                limit: bytes / SHARDS as u64,
                used: 0,
                index: HashMap::new(),
                slots: Vec::new(),
                free: Vec::new(),
                newest: None,
                oldest: None,
                hand: None,
            })
        };
        Self { shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    fn shard(&self, key: Key) -> MutexGuard<'_, Shard> {
        let index = usize::from(key.0[0]) % SHARDS;
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is held under `key`. The caller compares the key text.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<Cached> {
        let mut shard = self.shard(key);
        let index = *shard.index.get(&key)?;
        let slot = &mut shard.slots[index];
        slot.visited = true;
        slot.value.clone()
    }

    /// Holds `value`, making room. What is larger than a shard is not held, but replaces what was.
    pub fn put(&self, key: Key, value: Cached) {
        let weight = value.weight();
        let mut shard = self.shard(key);
        shard.remove(key);
        if weight > shard.limit {
            return;
        }
        while shard.used + weight > shard.limit {
            shard.evict();
        }
        shard.insert(key, value, weight);
    }

    /// Lets go of `key`.
    pub fn remove(&self, key: Key) {
        self.shard(key).remove(key);
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).used).sum()
    }

    /// Entries held.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().unwrap_or_else(PoisonError::into_inner).index.len()).sum()
    }
}

impl Shard {
    fn insert(&mut self, key: Key, value: Cached, weight: u64) {
        let slot = Slot { key, value: Some(value), weight, visited: false, newer: None, older: self.newest };
        let index = match self.free.pop() {
            Some(index) => {
                self.slots[index] = slot;
                index
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        match self.newest {
            Some(newest) => self.slots[newest].newer = Some(index),
            None => self.oldest = Some(index),
        }
        self.newest = Some(index);
        self.index.insert(key, index);
        self.used += weight;
    }

    fn remove(&mut self, key: Key) {
        if let Some(index) = self.index.remove(&key) {
            self.unlink(index);
        }
    }

    fn unlink(&mut self, index: usize) {
        let (newer, older) = (self.slots[index].newer, self.slots[index].older);
        match newer {
            Some(newer) => self.slots[newer].older = older,
            None => self.newest = older,
        }
        match older {
            Some(older) => self.slots[older].newer = newer,
            None => self.oldest = newer,
        }
        if self.hand == Some(index) {
            self.hand = newer;
        }
        let slot = &mut self.slots[index];
        slot.value = None;
        self.used -= slot.weight;
        self.free.push(index);
    }

    /// SIEVE: the hand moves from the oldest to the newest, clearing marks, and evicts the first without one.
    fn evict(&mut self) {
        let mut at = self.hand.or(self.oldest);
        while let Some(index) = at {
            let slot = &mut self.slots[index];
            if !slot.visited {
                let key = slot.key;
                self.hand = slot.newer;
                self.index.remove(&key);
                return self.unlink(index);
            }
            slot.visited = false;
            at = slot.newer.or(self.oldest);
        }
        assert_eq!(self.used, 0, "an empty shard weighs nothing");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::StoredBody;
    use bytes::Bytes;
    use foxy_base::WallTime;
    use foxy_http::ResponseHead;
    use foxy_rules::{Policy, StoredTimes};

    fn value(text: &str, size: usize) -> Cached {
        let times = StoredTimes { received: WallTime(0), initial_age: 0 };
        let body = StoredBody::Whole(Bytes::from(vec![0; size]));
        let key = Bytes::copy_from_slice(text.as_bytes());
        let head = ResponseHead::new(200);
        Cached::Response(Arc::new(Stored::new(key, head, Policy::default(), times, size as u64, body)))
    }

    fn key(number: u8) -> Key {
        // All in one shard.
        Key([0, number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    #[test]
    fn bytes_stay_within_the_limit_and_what_was_used_stays() {
        let tier = MemoryTier::new(16 * 10_000);
        for number in 0..100 {
            tier.put(key(number), value("k", 1000));
            assert!(tier.get(key(0)).is_some(), "the one in use left at {number}");
            assert!(tier.bytes() <= 10_000);
        }
        assert!(tier.get(key(1)).is_none());
        assert!(tier.get(key(99)).is_some());
    }

    #[test]
    fn replacing_and_removing_give_the_bytes_back() {
        let tier = MemoryTier::new(16 * 10_000);
        tier.put(key(1), value("k", 1000));
        let before = tier.bytes();
        tier.put(key(1), value("k", 2000));
        assert_eq!(tier.bytes(), before + 1000);
        tier.put(key(1), value("k", 1_000_000));
        assert_eq!((tier.bytes(), tier.entries()), (0, 0), "what is too large replaces what was");
        tier.put(key(2), value("k", 10));
        tier.remove(key(2));
        assert_eq!((tier.bytes(), tier.entries()), (0, 0));
    }
}
