//! Least recently used: the reference that every other policy is compared with.

use super::{Policy, place};
use crate::lru::{Links, Lru as Order};

/// The policy.
#[derive(Default)]
pub(super) struct LruPolicy {
    links: Vec<Links>,
    order: Order,
}

impl Policy for LruPolicy {
    fn insert(&mut self, entry: u32, _key_hash: u64, _size: u64) {
        place(&mut self.links, entry);
        self.order.push(&mut self.links, entry);
    }

    fn touch(&mut self, entry: u32) {
        self.order.touch(&mut self.links, entry);
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
