//! Which file numbers are in use, by which record, in which order of use: the index of ufs. The
//! slot of a record is its file number. No IO, no file names.

use crate::SchemeSettings;
use crate::policy::Policy;
use foxy_store::contract::Key;
use foxy_store::layout::{PAGE, SLOT};
use foxy_store::record::slots_for;
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
    /// What the mapping must know to find the file.
    pub(super) place: u64,
    /// Bytes of head and body.
    pub(super) content: u32,
    pub(super) state: State,
}

impl Slot {
    const fn free() -> Self {
        Self { key: Key([0; 16]), sequence: 0, place: 0, content: 0, state: State::Free }
    }
}

/// The index.
pub(super) struct Shelf {
    slab: Vec<Slot>,
    by_key: HashMap<Key, u32>,
    free: BTreeSet<u32>,
    policy: Box<dyn Policy>,
    /// A secret; keeps callers from choosing keys that collide.
    mix: u64,
    used: u64,
    living: u64,
    limit: u32,
}

/// Bytes of disk that a file with that much content takes: whole pages.
pub(super) const fn disk_bytes(content: usize) -> u64 {
    file_bytes(content).next_multiple_of(PAGE) as u64
}

/// Bytes of the file itself: whole slots.
pub(super) const fn file_bytes(content: usize) -> usize {
    slots_for(content) as usize * SLOT
}

impl Shelf {
    /// An empty index of at most as many files as records are allowed.
    pub(super) fn new(settings: &SchemeSettings) -> Self {
        Self {
            slab: Vec::new(),
            by_key: HashMap::new(),
            free: BTreeSet::new(),
            policy: settings.make_policy(),
            mix: settings.store.seed,
            used: 0,
            living: 0,
            limit: settings.store.record_limit,
        }
    }

    pub(super) fn slot(&self, number: u32) -> Slot {
        self.slab.get(number as usize).copied().unwrap_or_else(Slot::free)
    }

    pub(super) fn is_free(&self, number: u32) -> bool {
        self.slot(number).state == State::Free
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
        u32::try_from(self.slab.len()).unwrap_or(u32::MAX)
    }

    /// The sequence number of the record in a file, if there is one.
    pub(super) fn live_sequence(&self, number: u32) -> Option<u64> {
        let slot = self.slab.get(number as usize)?;
        (slot.state == State::Live).then_some(slot.sequence)
    }

    pub(super) fn records(&self) -> usize {
        self.by_key.len()
    }

    /// Memory of the index in bytes.
    pub(super) fn memory(&self) -> usize {
        self.slab.capacity() * size_of::<Slot>()
            + self.by_key.capacity() * (size_of::<(Key, u32)>() + 1)
            + self.free.len() * 8
            + self.policy.memory()
    }

    /// Takes the lowest free number for a file about to be written.
    pub(super) fn take(
        &mut self,
        key: Key,
        sequence: u64,
        content: u32,
        place: u64,
    ) -> Option<u32> {
        let number = match self.free.pop_first() {
            Some(number) => number,
            None => u32::try_from(self.slab.len()).ok().filter(|&next| next < self.limit)?,
        };
        self.occupy(number, key, sequence, content, place);
        Some(number)
    }

    /// Takes a certain number, as recovery finds it; the numbers below it that are not in use
    /// become free.
    pub(super) fn occupy(
        &mut self,
        number: u32,
        key: Key,
        sequence: u64,
        content: u32,
        place: u64,
    ) {
        while self.slab.len() <= number as usize {
            self.free.insert(u32::try_from(self.slab.len()).unwrap_or(u32::MAX));
            self.slab.push(Slot::free());
        }
        self.free.remove(&number);
        self.used += disk_bytes(content as usize);
        self.living += disk_bytes(content as usize);
        self.slab[number as usize] = Slot { key, sequence, place, content, state: State::Filling };
    }

    /// A written file becomes its key's record, the most recently used. There must be no other
    /// record of that key.
    pub(super) fn enliven(&mut self, number: u32) {
        let slot = &mut self.slab[number as usize];
        slot.state = State::Live;
        let other = self.by_key.insert(slot.key, number);
        assert!(other.is_none(), "a key has one record");
        let (hash, size) = (slot.key.hash(self.mix), disk_bytes(slot.content as usize));
        self.policy.insert(number, hash, size);
    }

    /// A record or a half-written file is no more; its number stays taken until the file is gone.
    pub(super) fn condemn(&mut self, number: u32) {
        let slot = self.slab[number as usize];
        if slot.state == State::Live {
            self.by_key.remove(&slot.key);
            self.policy.remove(number);
        }
        self.living -= disk_bytes(slot.content as usize);
        self.slab[number as usize].state = State::Dying;
    }

    /// The file is gone.
    pub(super) fn release(&mut self, number: u32) {
        let slot = &mut self.slab[number as usize];
        self.used -= disk_bytes(slot.content as usize);
        slot.state = State::Free;
        self.free.insert(number);
    }

    pub(super) fn touch(&mut self, number: u32) {
        self.policy.touch(number);
    }

    /// Whether the policy lets an object of that many bytes in.
    pub(super) fn admits(&self, size: u64) -> bool {
        self.policy.admits(size)
    }

    /// The files of all records, about in the order in which they would go.
    pub(super) fn coldest_first(&mut self) -> Vec<u32> {
        self.policy.coldest_first()
    }

    /// The record that should go next.
    pub(super) fn victim(&mut self) -> Option<u32> {
        self.policy.victim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_store::StoreSettings;

    fn shelf(record_limit: u32) -> Shelf {
        let store = StoreSettings { record_limit, ..StoreSettings::with_size(1 << 20) };
        Shelf::new(&store.into())
    }

    #[test]
    fn the_lowest_free_number_is_taken_and_the_limit_holds() {
        let mut shelf = shelf(3);
        let take = |shelf: &mut Shelf, n| shelf.take(Key([n; 16]), u64::from(n), 100, 0);
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
        let mut shelf = shelf(10);
        shelf.occupy(3, Key([1; 16]), 1, 5000, 0);
        shelf.enliven(3);
        assert_eq!(shelf.find(Key([1; 16])), Some(3));
        assert_eq!(shelf.take(Key([2; 16]), 2, 1, 0), Some(0));
        assert_eq!(shelf.victim(), Some(3));
    }
}
