//! SIEVE (Zhang, Yang, Yue, Vigfusson and Rashmi, NSDI 2024). It has a queue in the order of
//! arrival, one bit per entry, and a position called the hand. A hit sets the bit of its entry. To
//! evict, the hand moves from old to new entries and clears each set bit. It evicts the first entry
//! whose bit is already clear. The owner inserts a new entry before it evicts, so the hand skips
//! the newest entry.

use super::{Policy, slot_of};
use crate::lru::{Links, Lru};

#[derive(Default)]
pub(super) struct Sieve {
    links: Vec<Links>,
    visited: Vec<bool>,
    order: Lru,
    /// The entry at which the next search for a victim starts (SIEVE's *hand*). `None` means the
    /// oldest entry.
    hand: Option<u32>,
}

impl Sieve {
    /// Returns the entry to which the hand moves after `entry`. `None` means that the hand returns
    /// to the oldest entry.
    fn after(&mut self, entry: u32) -> Option<u32> {
        Lru::hotter(&mut self.links, entry).filter(|&next| !self.is_newest(next))
    }

    fn is_newest(&self, entry: u32) -> bool {
        self.order.hottest() == Some(entry)
    }
}

impl Policy for Sieve {
    fn insert(&mut self, entry: u32, _key_hash: u64, _size: u64) {
        *slot_of(&mut self.visited, entry) = false;
        slot_of(&mut self.links, entry);
        self.order.push(&mut self.links, entry);
    }

    fn touch(&mut self, entry: u32) {
        self.visited[entry as usize] = true;
    }

    fn victim(&mut self) -> Option<u32> {
        let oldest = self.order.coldest()?;
        let mut at = self.hand.filter(|&hand| !self.is_newest(hand)).unwrap_or(oldest);
        while self.visited[at as usize] {
            self.visited[at as usize] = false;
            at = self.after(at).unwrap_or(oldest);
        }
        self.hand = Some(at);
        self.hand
    }

    fn remove(&mut self, entry: u32) {
        if self.hand == Some(entry) {
            self.hand = self.after(entry);
        }
        self.order.remove(&mut self.links, entry);
    }

    fn coldest_first(&mut self) -> Vec<u32> {
        self.order.coldest_first(&mut self.links)
    }

    fn memory(&self) -> usize {
        self.links.capacity() * size_of::<Links>() + self.visited.capacity()
    }
}
