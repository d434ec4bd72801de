//! Which file numbers are in use, by which record, in which order of use: the index of ufs. The slot of a record is its
//! file number. No IO, no file names.

use crate::contract::Key;
use crate::layout::{PAGE, SLOT};
use crate::lru::{LinkStore, Links, Lru};
use crate::record::slots_for;
use std::collections::{BTreeSet, HashMap};

/// What a file number stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// No file.
    #[default]
    Free,
    /// A file is being written.
    Filling,
    /// A record.
    Live,
    /// A file that is to be unlinked, or is being.
    Dying,
}

/// One file number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) key: Key,
    pub(super) sequence: u64,
    /// Bytes of head and body.
    pub(super) content: u32,
    pub(super) state: State,
    links: Links,
}

impl Slot {
    fn new(key: Key, sequence: u64, content: u32, state: State) -> Self {
        Self { key, sequence, content, state, links: Links::default() }
    }

    fn free() -> Self {
        Self::new(Key([0; 16]), 0, 0, State::Free)
    }
}

struct Slab(Vec<Slot>);

impl LinkStore for Slab {
    fn links(&mut self, index: u32) -> &mut Links {
        &mut self.0[index as usize].links
    }
}

/// The index.
pub(super) struct Shelf {
    slab: Slab,
    by_key: HashMap<Key, u32>,
    free: BTreeSet<u32>,
    order: Lru,
    used: u64,
    living: u64,
    limit: u32,
}

/// Bytes of disk that a file with that much content takes: whole pages.
#[must_use]
pub(super) const fn disk_bytes(content: usize) -> u64 {
    file_bytes(content).next_multiple_of(PAGE) as u64
}

/// Bytes of the file itself: whole slots.
#[must_use]
pub(super) const fn file_bytes(content: usize) -> usize {
    slots_for(content) as usize * SLOT
}

impl Shelf {
    /// An empty index of at most `limit` files.
    pub(super) fn new(limit: u32) -> Self {
        let slab = Slab(Vec::new());
        Self {
            slab,
            by_key: HashMap::new(),
            free: BTreeSet::new(),
            order: Lru::default(),
            used: 0,
            living: 0,
            limit,
        }
    }

    pub(super) fn slot(&self, number: u32) -> Slot {
        self.slab.0.get(number as usize).copied().unwrap_or_else(Slot::free)
    }

    /// The file of a key's record.
    pub(super) fn find(&self, key: Key) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// Bytes of disk in use, dying files included.
    pub(super) const fn used(&self) -> u64 {
        self.used
    }

    /// The same without dying files.
    pub(super) const fn living(&self) -> u64 {
        self.living
    }

    /// Whether no number is free.
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty() && self.numbers() >= self.limit
    }

    /// The number above all that are or were in use.
    pub(super) fn numbers(&self) -> u32 {
        u32::try_from(self.slab.0.len()).unwrap_or(u32::MAX)
    }

    /// The sequence number of the record in a file, if there is one.
    pub(super) fn live_sequence(&self, number: u32) -> Option<u64> {
        let slot = self.slab.0.get(number as usize)?;
        (slot.state == State::Live).then_some(slot.sequence)
    }

    pub(super) fn records(&self) -> usize {
        self.by_key.len()
    }

    /// Memory of the index in bytes.
    pub(super) fn memory(&self) -> usize {
        self.slab.0.capacity() * size_of::<Slot>()
            + self.by_key.capacity() * (size_of::<(Key, u32)>() + 1)
            + self.free.len() * 8
    }

    /// Takes the lowest free number for a file about to be written.
    pub(super) fn take(&mut self, key: Key, sequence: u64, content: u32) -> Option<u32> {
        let number = match self.free.pop_first() {
            Some(number) => number,
            None => u32::try_from(self.slab.0.len()).ok().filter(|&next| next < self.limit)?,
        };
        self.occupy(number, key, sequence, content);
        Some(number)
    }

    /// Takes a certain number, as recovery finds it; the numbers below it that are not in use become free.
    pub(super) fn occupy(&mut self, number: u32, key: Key, sequence: u64, content: u32) {
        while self.slab.0.len() <= number as usize {
            self.free.insert(u32::try_from(self.slab.0.len()).unwrap_or(u32::MAX));
            self.slab.0.push(Slot::free());
        }
        self.free.remove(&number);
        self.used += disk_bytes(content as usize);
        self.living += disk_bytes(content as usize);
        self.slab.0[number as usize] = Slot::new(key, sequence, content, State::Filling);
    }

    /// A written file becomes its key's record, the most recently used. There must be no other record of that key.
    pub(super) fn enliven(&mut self, number: u32) {
        let slot = &mut self.slab.0[number as usize];
        slot.state = State::Live;
        let other = self.by_key.insert(slot.key, number);
        assert!(other.is_none(), "a key has one record");
        self.order.push(&mut self.slab, number);
    }

    /// A record or a half-written file is no more; its number stays taken until the file is gone.
    pub(super) fn condemn(&mut self, number: u32) {
        let slot = self.slab.0[number as usize];
        if slot.state == State::Live {
            self.by_key.remove(&slot.key);
            self.order.remove(&mut self.slab, number);
        }
        self.living -= disk_bytes(slot.content as usize);
        self.slab.0[number as usize].state = State::Dying;
    }

    /// The file is gone.
    pub(super) fn release(&mut self, number: u32) {
        let slot = &mut self.slab.0[number as usize];
        self.used -= disk_bytes(slot.content as usize);
        slot.state = State::Free;
        self.free.insert(number);
    }

    pub(super) fn touch(&mut self, number: u32) {
        self.order.touch(&mut self.slab, number);
    }

    /// The record unused for longest.
    pub(super) fn coldest(&self) -> Option<u32> {
        self.order.coldest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_number_is_taken_and_the_limit_holds() {
        let mut shelf = Shelf::new(3);
        let take = |shelf: &mut Shelf, n| shelf.take(Key([n; 16]), u64::from(n), 100);
        assert_eq!(
            [take(&mut shelf, 1), take(&mut shelf, 2), take(&mut shelf, 3)],
            [Some(0), Some(1), Some(2)]
        );
        assert_eq!(take(&mut shelf, 4), None);
        for number in [1, 0] {
            shelf.condemn(number);
            shelf.release(number);
        }
        assert_eq!(take(&mut shelf, 5), Some(0));
        assert_eq!(shelf.used(), 2 * 4096);
    }

    #[test]
    fn numbers_below_a_found_file_are_free() {
        let mut shelf = Shelf::new(10);
        shelf.occupy(3, Key([1; 16]), 1, 5000);
        shelf.enliven(3);
        assert_eq!(shelf.find(Key([1; 16])), Some(3));
        assert_eq!(shelf.take(Key([2; 16]), 2, 1), Some(0));
        assert_eq!(shelf.coldest(), Some(3));
    }
}
