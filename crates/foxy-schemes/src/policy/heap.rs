//! A binary heap of entries by key that knows where each entry is, so that any can be moved or
//! removed in O(log n).

use super::place;
use std::cmp::Ordering;

/// An entry and what it is ordered by. Of equal keys the one used longer ago is smaller.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) key: f64,
    /// The number of its last use.
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

/// The heap; the smallest is on top.
#[derive(Default)]
pub(super) struct Heap {
    nodes: Vec<Node>,
    /// Where each entry's node is; of no meaning for entries that are not in the heap.
    places: Vec<u32>,
}

impl Heap {
    /// The smallest.
    pub(super) fn min(&self) -> Option<&Node> {
        self.nodes.first()
    }

    /// Adds an entry that is not in the heap.
    pub(super) fn insert(&mut self, node: Node) {
        place(&mut self.places, node.entry);
        self.nodes.push(node);
        self.rise(self.nodes.len() - 1);
    }

    /// Gives an entry of the heap a new key.
    pub(super) fn update(&mut self, node: Node) {
        let at = self.places[node.entry as usize] as usize;
        self.nodes[at] = node;
        self.settle(at);
    }

    /// Takes an entry out of the heap.
    pub(super) fn remove(&mut self, entry: u32) {
        let at = self.places[entry as usize] as usize;
        self.nodes.swap_remove(at);
        if at < self.nodes.len() {
            self.settle(at);
        }
    }

    /// All entries, the smallest first.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let mut nodes = self.nodes.clone();
        nodes.sort_unstable_by(Node::compare);
        nodes.iter().map(|node| node.entry).collect()
    }

    /// Memory taken in bytes.
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
