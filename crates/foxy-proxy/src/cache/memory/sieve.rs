//! A map with SIEVE eviction (Zhang et al., NSDI 2024): a hit only marks the entry as used. The map
//! has no size limit of its own: its owner evicts entries and so limits the number of bytes.

use foxy_store::{Key, KeyMap};

/// A map from keys to values. The entries are also linked in order of insertion.
pub(super) struct Sieve<Value> {
    used: u64,
    index: KeyMap<usize>,
    slots: Vec<Slot<Value>>,
    free: Vec<usize>,
    newest: Option<usize>,
    oldest: Option<usize>,
    hand: Option<usize>,
}

/// A place for one entry. After a removal, the slot is empty until another entry uses it.
struct Slot<Value> {
    key: Key,
    value: Option<Value>,
    weight: u64,
    visited: bool,
    newer: Option<usize>,
    older: Option<usize>,
}

impl<Value: Clone> Sieve<Value> {
    pub(super) fn new() -> Self {
        Self {
            used: 0,
            index: KeyMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: None,
            oldest: None,
            hand: None,
        }
    }

    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    pub(super) fn entries(&self) -> usize {
        self.index.len()
    }

    /// Returns a value and marks its entry as used.
    pub(super) fn get(&mut self, key: Key) -> Option<Value> {
        let index = *self.index.get(&key)?;
        let slot = &mut self.slots[index];
        slot.visited = true;
        slot.value.clone()
    }

    /// Calls `change` for each value. `change` must not change the weight of a value, which is its
    /// size in bytes.
    pub(super) fn update(&mut self, change: impl FnMut(&mut Value)) {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut()).for_each(change);
    }

    /// Calls `take` for each value in up to `most` slots, from slot number `from` on. Returns the
    /// slot at which the next call must continue.
    pub(super) fn visit(
        &self,
        from: usize,
        most: usize,
        take: impl FnMut(&Value),
    ) -> Option<usize> {
        let end = self.slots.len().min(from.saturating_add(most));
        let part = self.slots.get(from..end).unwrap_or_default();
        part.iter().filter_map(|slot| slot.value.as_ref()).for_each(take);
        (end < self.slots.len()).then_some(end)
    }

    pub(super) fn insert(&mut self, key: Key, value: Value, weight: u64) {
        let slot = Slot {
            key,
            value: Some(value),
            weight,
            visited: false,
            newer: None,
            older: self.newest,
        };
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

    pub(super) fn remove(&mut self, key: Key) {
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

    /// Evicts an entry that is not marked as used. The search starts at the hand (the position
    /// where the last search ended), and moves towards newer entries. It clears the mark of each
    /// entry that it passes.
    pub(super) fn evict(&mut self) {
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
        assert_eq!(self.used, 0, "nothing weighs nothing");
    }
}
