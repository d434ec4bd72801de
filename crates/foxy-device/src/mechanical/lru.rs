//! A bounded map that evicts the least recently used entry. Each operation takes constant time.

use std::collections::HashMap;
use std::hash::Hash;

const NONE: usize = usize::MAX;

#[derive(Debug)]
struct Slot<K, V> {
    key: K,
    value: V,
    newer: usize,
    older: usize,
}

#[derive(Debug)]
pub(super) struct Lru<K, V> {
    slots: Vec<Slot<K, V>>,
    found: HashMap<K, usize>,
    newest: usize,
    oldest: usize,
    limit: usize,
}

impl<K: Copy + Eq + Hash, V: Copy> Lru<K, V> {
    pub(super) fn new(limit: usize) -> Self {
        Self { slots: Vec::new(), found: HashMap::new(), newest: NONE, oldest: NONE, limit }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::new(self.limit);
    }

    /// Returns the value of `key` and marks the entry as the newest.
    pub(super) fn get(&mut self, key: K) -> Option<V> {
        let slot = *self.found.get(&key)?;
        self.unlink(slot);
        self.link(slot);
        Some(self.slots[slot].value)
    }

    /// Sets the value of `key` and marks the entry as the newest. A full map evicts its oldest
    /// entry.
    pub(super) fn insert(&mut self, key: K, value: V) {
        if let Some(&slot) = self.found.get(&key) {
            self.slots[slot].value = value;
            self.unlink(slot);
            self.link(slot);
        } else if self.slots.len() < self.limit {
            self.slots.push(Slot { key, value, newer: NONE, older: NONE });
            self.found.insert(key, self.slots.len() - 1);
            self.link(self.slots.len() - 1);
        } else if self.limit > 0 {
            let slot = self.oldest;
            self.found.remove(&self.slots[slot].key);
            self.found.insert(key, slot);
            self.unlink(slot);
            (self.slots[slot].key, self.slots[slot].value) = (key, value);
            self.link(slot);
        }
    }

    fn unlink(&mut self, slot: usize) {
        let Slot { newer, older, .. } = self.slots[slot];
        match newer {
            NONE => self.newest = older,
            newer => self.slots[newer].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.slots[older].newer = newer,
        }
    }

    fn link(&mut self, slot: usize) {
        (self.slots[slot].newer, self.slots[slot].older) = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = slot,
            newest => self.slots[newest].newer = slot,
        }
        self.newest = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_goes_first() {
        let mut lru = Lru::new(3);
        for key in 0..3 {
            lru.insert(key, key * 10);
        }
        assert_eq!(lru.get(0), Some(0));
        lru.insert(3, 30);
        assert_eq!([0, 1, 2, 3].map(|key| lru.get(key)), [Some(0), None, Some(20), Some(30)]);
        lru.insert(0, 1);
        lru.insert(4, 40);
        assert_eq!([0, 2, 3, 4].map(|key| lru.get(key)), [Some(1), None, Some(30), Some(40)]);
    }

    #[test]
    fn an_lru_without_capacity_keeps_nothing() {
        let mut lru = Lru::new(0);
        lru.insert(1, 1);
        assert_eq!(lru.get(1), None);
    }
}
