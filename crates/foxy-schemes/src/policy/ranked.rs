//! What Squid's heap policies share (`src/repl/heap`; Arlitt, Cherkasova, Dilley et al.,
//! HPL-1999-69): each entry has a key, the smallest goes, and the key of the last that went is the
//! age that new keys begin from. Squid breaks ties by the seconds since the last use; here the
//! order of uses does, because a policy has no clock.

use super::heap::{Heap, Node};
use super::{Policy, place};

/// What a key is made of.
pub(super) struct Use {
    /// How often the entry was asked for, its insertion included; `refcount` in Squid.
    pub(super) frequency: u32,
    /// Bytes, at least 1.
    pub(super) size: u64,
    /// The key of the last entry that went.
    pub(super) age: f64,
    /// The number of this use among all.
    pub(super) number: u64,
}

#[derive(Clone, Default)]
struct RankedSlot {
    size: u64,
    frequency: u32,
}

/// A policy that ranks entries by a key.
pub(super) struct Ranked {
    key: fn(&Use) -> f64,
    heap: Heap,
    slots: Vec<RankedSlot>,
    age: f64,
    uses: u64,
}

impl Ranked {
    pub(super) fn new(key: fn(&Use) -> f64) -> Self {
        Self { key, heap: Heap::default(), slots: Vec::new(), age: 0.0, uses: 0 }
    }

    fn node(&mut self, entry: u32) -> Node {
        self.uses += 1;
        let RankedSlot { size, frequency } = self.slots[entry as usize];
        let key =
            (self.key)(&Use { frequency, size: size.max(1), age: self.age, number: self.uses });
        Node { key, used: self.uses, entry }
    }
}

impl Policy for Ranked {
    fn insert(&mut self, entry: u32, _key_hash: u64, size: u64) {
        *place(&mut self.slots, entry) = RankedSlot { size, frequency: 1 };
        let node = self.node(entry);
        self.heap.insert(node);
    }

    fn touch(&mut self, entry: u32) {
        let slot = &mut self.slots[entry as usize];
        slot.frequency = slot.frequency.saturating_add(1);
        let node = self.node(entry);
        self.heap.update(node);
    }

    fn victim(&mut self) -> Option<u32> {
        let least = self.heap.min()?;
        self.age = least.key;
        Some(least.entry)
    }

    fn remove(&mut self, entry: u32) {
        self.heap.remove(entry);
    }

    fn coldest_first(&mut self) -> Vec<u32> {
        self.heap.in_order()
    }

    fn memory(&self) -> usize {
        self.heap.memory() + self.slots.capacity() * size_of::<RankedSlot>()
    }
}
