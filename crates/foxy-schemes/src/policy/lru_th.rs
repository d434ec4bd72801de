//! LRU-TH (R49): least recently used, and nothing above a threshold comes in. The threshold is the
//! object limit.

use super::lru::LruPolicy;
use super::{Policy, PolicySettings};

/// The policy.
pub(super) struct LruThreshold {
    lru: LruPolicy,
    limit: u64,
}

impl LruThreshold {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        Self { lru: LruPolicy::default(), limit: settings.object_limit }
    }
}

impl Policy for LruThreshold {
    fn admits(&self, size: u64) -> bool {
        size <= self.limit
    }

    fn insert(&mut self, entry: u32, key_hash: u64, size: u64) {
        self.lru.insert(entry, key_hash, size);
    }

    fn touch(&mut self, entry: u32) {
        self.lru.touch(entry);
    }

    fn victim(&mut self) -> Option<u32> {
        self.lru.victim()
    }

    fn remove(&mut self, entry: u32) {
        self.lru.remove(entry);
    }

    fn coldest_first(&mut self) -> Vec<u32> {
        self.lru.coldest_first()
    }

    fn memory(&self) -> usize {
        self.lru.memory()
    }
}
