//! Policies that keep entries in one list. LRU evicts the least recently used entry. LRU-TH is LRU
//! with a threshold: it refuses entries above a size limit. FIFO evicts the oldest entry and
//! ignores hits.

use super::{Policy, PolicySettings, slot_of};
use crate::lru::{Links, Lru};

pub(super) struct ListPolicy {
    links: Vec<Links>,
    order: Lru,
    moves_on_hit: bool,
    max_entry_bytes: u64,
}

impl ListPolicy {
    pub(super) fn lru() -> Self {
        let (links, order) = (Vec::new(), Lru::default());
        Self { links, order, moves_on_hit: true, max_entry_bytes: u64::MAX }
    }

    pub(super) fn lru_threshold(settings: &PolicySettings) -> Self {
        Self { max_entry_bytes: settings.object_limit, ..Self::lru() }
    }

    pub(super) fn fifo() -> Self {
        Self { moves_on_hit: false, ..Self::lru() }
    }
}

impl Policy for ListPolicy {
    fn admits(&self, size: u64) -> bool {
        size <= self.max_entry_bytes
    }

    fn insert(&mut self, entry: u32, _key_hash: u64, _size: u64) {
        slot_of(&mut self.links, entry);
        self.order.push(&mut self.links, entry);
    }

    fn touch(&mut self, entry: u32) {
        if self.moves_on_hit {
            self.order.touch(&mut self.links, entry);
        }
    }

    fn victim(&mut self) -> Option<u32> {
        self.order.coldest()
    }

    fn remove(&mut self, entry: u32) {
        self.order.remove(&mut self.links, entry);
    }

    fn coldest_first(&mut self) -> Vec<u32> {
        self.order.coldest_first(&mut self.links)
    }

    fn memory(&self) -> usize {
        self.links.capacity() * size_of::<Links>()
    }
}
