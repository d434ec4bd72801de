//! Squid's heap policies (`src/repl/heap`; Arlitt, Cherkasova, Dilley and others, HPL-1999-69).
//! Each entry has a rank number, here called its key. The policy evicts the entry with the smallest
//! key. It then adds the evicted key, called the age, to the keys of later uses, so that entries
//! without new uses fall behind. Among equal keys, Squid evicts the entry with the oldest last use
//! in seconds. This policy has no clock, so it compares the order of the uses.

use super::{Policy, slot_of};
use std::cmp::Ordering;

pub(super) struct Use {
    /// Number of uses of the entry, including its insertion. Squid calls this number `refcount`.
    pub(super) frequency: u32,
    /// Size of the entry in bytes, at least 1.
    pub(super) size: u64,
    /// The key of the last evicted entry. A use adds this number to the new key.
    pub(super) age: f64,
    /// The sequence number of this use among all uses.
    pub(super) number: u64,
}

#[derive(Clone, Default)]
struct RankedSlot {
    size: u64,
    frequency: u32,
}

/// Squid's `heap LRU`: the key is the number of the last use. This policy evicts the same entries
/// as the LRU list, but each operation takes logarithmic instead of constant time. So a comparison
/// of both policies shows the cost of the heap.
pub(super) fn lru_key(used: &Use) -> f64 {
    used.number as f64
}

/// Squid's `heap GDSF`, GreedyDual-Size with frequency. Small popular entries stay longest.
/// Compared with LFUDA, the cache answers more requests but delivers fewer bytes.
pub(super) fn gdsf_key(used: &Use) -> f64 {
    used.age + f64::from(used.frequency) / used.size as f64
}

/// Squid's `heap LFUDA`, least frequently used with dynamic aging. Popular entries of any size stay
/// longest. Compared with GDSF, the cache delivers more bytes but answers fewer requests.
pub(super) fn lfuda_key(used: &Use) -> f64 {
    used.age + f64::from(used.frequency)
}

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
        *slot_of(&mut self.slots, entry) = RankedSlot { size, frequency: 1 };
        let node = self.node(entry);
        self.heap.insert(node);
    }

    fn insert_sampled(&mut self, entry: u32, key_hash: u64, size: u64, _charged: u64) {
        self.insert(entry, key_hash, size);
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

/// A heap node: an entry with its key. Among equal keys, the entry with the older last use is
/// smaller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) key: f64,
    pub(super) used: u64,
    pub(super) entry: u32,
}

impl Node {
    fn compare(&self, other: &Self) -> Ordering {
        self.key.total_cmp(&other.key).then(self.used.cmp(&other.used))
    }

    fn is_less(&self, other: &Self) -> bool {
        self.compare(other).is_lt()
    }
}

/// A binary heap that knows the position of each entry. So it can move or remove any entry in
/// logarithmic time.
#[derive(Default)]
pub(super) struct Heap {
    nodes: Vec<Node>,
    /// The position of each entry in the heap. The position of an entry that is not in the heap has
    /// no meaning.
    places: Vec<u32>,
}

impl Heap {
    pub(super) fn min(&self) -> Option<&Node> {
        self.nodes.first()
    }

    pub(super) fn insert(&mut self, node: Node) {
        slot_of(&mut self.places, node.entry);
        self.nodes.push(node);
        self.rise(self.nodes.len() - 1);
    }

    pub(super) fn update(&mut self, node: Node) {
        let at = self.places[node.entry as usize] as usize;
        self.nodes[at] = node;
        self.settle(at);
    }

    pub(super) fn remove(&mut self, entry: u32) {
        let at = self.places[entry as usize] as usize;
        self.nodes.swap_remove(at);
        if at < self.nodes.len() {
            self.settle(at);
        }
    }

    pub(super) fn in_order(&self) -> Vec<u32> {
        let mut nodes = self.nodes.clone();
        nodes.sort_unstable_by(Node::compare);
        nodes.iter().map(|node| node.entry).collect()
    }

    /// Returns the memory in bytes that the heap uses.
    pub(super) fn memory(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + self.places.capacity() * size_of::<u32>()
    }

    fn settle(&mut self, at: usize) {
        let risen = self.rise(at);
        self.sink(risen);
    }

    fn rise(&mut self, mut at: usize) -> usize {
        let node = self.nodes[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            if !node.is_less(&self.nodes[parent]) {
                break;
            }
            self.put(at, self.nodes[parent]);
            at = parent;
        }
        self.put(at, node);
        at
    }

    fn sink(&mut self, mut at: usize) {
        let node = self.nodes[at];
        loop {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let Some(mut least) = self.nodes.get(left).copied() else { break };
            let mut below = left;
            if let Some(other) = self.nodes.get(right)
                && other.is_less(&least)
            {
                (least, below) = (*other, right);
            }
            if !least.is_less(&node) {
                break;
            }
            self.put(at, least);
            at = below;
        }
        self.put(at, node);
    }

    fn put(&mut self, at: usize, node: Node) {
        self.nodes[at] = node;
        self.places[node.entry as usize] =
            u32::try_from(at).expect("fewer nodes than entry numbers");
    }
}
