//! The index of a ufs store: the record in the file of each file number, and the order of eviction.
//! A file number is also the index of its slot in an array.

use crate::SchemeSettings;
use crate::policy::Policy;
use foxy_store::contract::Key;
use foxy_store::layout::{PAGE, SLOT};
use foxy_store::record::slots_for;
use std::collections::{BTreeSet, HashMap};

/// The state of a file number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// No file has this number.
    #[default]
    Free,
    /// The file is being written.
    Filling,
    Live,
    /// The file is being deleted or waits for its deletion.
    Dying,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileRecord {
    pub(super) key: Key,
    pub(super) sequence: u64,
    /// The part of the location that does not follow from the file number: which directory of an
    /// origin server contains the file.
    pub(super) place: u64,
    /// Length of the record's head and body together, in bytes.
    pub(super) content: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) record: FileRecord,
    pub(super) state: State,
}

const FREE: Slot = Slot {
    record: FileRecord { key: Key([0; 16]), sequence: 0, place: 0, content: 0 },
    state: State::Free,
};

pub(super) struct FileIndex {
    slab: Vec<Slot>,
    by_key: HashMap<Key, u32>,
    free: BTreeSet<u32>,
    policy: Box<dyn Policy>,
    /// A secret that is part of each key's hash, so that outsiders cannot choose keys that collide.
    mix: u64,
    used: u64,
    live: u64,
    limit: u32,
}

/// Returns the disk space in bytes of the file for a record with `content` bytes, rounded up to
/// whole pages.
pub(super) const fn disk_bytes(content: usize) -> u64 {
    file_bytes(content).next_multiple_of(PAGE) as u64
}

/// Returns the size in bytes of the file for a record with `content` bytes. The file also contains
/// a header, and its size is a whole number of slots.
pub(super) const fn file_bytes(content: usize) -> usize {
    slots_for(content) as usize * SLOT
}

impl FileIndex {
    pub(super) fn new(settings: &SchemeSettings) -> Self {
        Self {
            slab: Vec::new(),
            by_key: HashMap::new(),
            free: BTreeSet::new(),
            policy: settings.make_policy(),
            mix: settings.store.seed,
            used: 0,
            live: 0,
            limit: settings.store.record_limit,
        }
    }

    pub(super) fn slot(&self, number: u32) -> Slot {
        self.slab.get(number as usize).copied().unwrap_or(FREE)
    }

    pub(super) fn is_free(&self, number: u32) -> bool {
        self.slot(number).state == State::Free
    }

    /// Returns the file number of a key's record.
    pub(super) fn find(&self, key: Key) -> Option<u32> {
        self.by_key.get(&key).copied()
    }

    /// Returns the disk space in use in bytes, including files that wait for their deletion.
    pub(super) const fn used_bytes(&self) -> u64 {
        self.used
    }

    /// Returns the disk space in use in bytes, without files that wait for their deletion.
    pub(super) const fn live_bytes(&self) -> u64 {
        self.live
    }

    /// Returns whether all file numbers up to the limit are in use.
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty() && self.numbers() >= self.limit
    }

    /// Returns the lowest file number that was never used.
    pub(super) fn numbers(&self) -> u32 {
        u32::try_from(self.slab.len()).unwrap_or(u32::MAX)
    }

    /// Returns the sequence number of the live record with this file number, or `None` if there is
    /// no such record.
    pub(super) fn live_sequence(&self, number: u32) -> Option<u64> {
        let slot = self.slab.get(number as usize)?;
        (slot.state == State::Live).then_some(slot.record.sequence)
    }

    pub(super) fn records(&self) -> usize {
        self.by_key.len()
    }

    /// Returns the approximate memory of the index in bytes.
    pub(super) fn memory(&self) -> usize {
        self.slab.capacity() * size_of::<Slot>()
            + self.by_key.capacity() * (size_of::<(Key, u32)>() + 1)
            + self.free.len() * 8
            + self.policy.memory()
    }

    /// Takes the lowest free file number for a file that will be written.
    pub(super) fn take(&mut self, record: FileRecord) -> Option<u32> {
        let number = match self.free.pop_first() {
            Some(number) => number,
            None => u32::try_from(self.slab.len()).ok().filter(|&next| next < self.limit)?,
        };
        self.occupy(number, record);
        Some(number)
    }

    /// During an opening, takes the number of a file that exists on disk. Unused lower numbers
    /// become free.
    pub(super) fn occupy(&mut self, number: u32, record: FileRecord) {
        while self.slab.len() <= number as usize {
            self.free.insert(u32::try_from(self.slab.len()).unwrap_or(u32::MAX));
            self.slab.push(FREE);
        }
        self.free.remove(&number);
        self.used += disk_bytes(record.content as usize);
        self.live += disk_bytes(record.content as usize);
        self.slab[number as usize] = Slot { record, state: State::Filling };
    }

    /// After a file is written, makes it the record of its key, so that a get finds it. The key
    /// must have no other record.
    pub(super) fn make_live(&mut self, number: u32) {
        let Slot { record, state } = &mut self.slab[number as usize];
        *state = State::Live;
        let other = self.by_key.insert(record.key, number);
        assert!(other.is_none(), "a key has one record");
        let (hash, size) = (record.key.hash(self.mix), disk_bytes(record.content as usize));
        self.policy.insert(number, hash, size);
    }

    /// Marks the file of a record, or an incomplete file, for deletion. The number stays in use
    /// until the file is deleted.
    pub(super) fn mark_dying(&mut self, number: u32) {
        let Slot { record, state } = &mut self.slab[number as usize];
        if *state == State::Live {
            self.by_key.remove(&record.key);
            self.policy.remove(number);
        }
        self.live -= disk_bytes(record.content as usize);
        *state = State::Dying;
    }

    /// Frees the number of a deleted file.
    pub(super) fn release(&mut self, number: u32) {
        let slot = &mut self.slab[number as usize];
        self.used -= disk_bytes(slot.record.content as usize);
        slot.state = State::Free;
        self.free.insert(number);
    }

    pub(super) fn touch(&mut self, number: u32) {
        self.policy.touch(number);
    }

    pub(super) fn admits(&self, size: u64) -> bool {
        self.policy.admits(size)
    }

    /// Returns the file numbers of all records in the approximate order of eviction, the next
    /// victim first.
    pub(super) fn coldest_first(&mut self) -> Vec<u32> {
        self.policy.coldest_first()
    }

    pub(super) fn victim(&mut self) -> Option<u32> {
        self.policy.victim()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_store::StoreSettings;

    fn index(record_limit: u32) -> FileIndex {
        let store = StoreSettings { record_limit, ..StoreSettings::with_size(1 << 20) };
        FileIndex::new(&store.into())
    }

    fn record(key: u8, content: u32) -> FileRecord {
        FileRecord { key: Key([key; 16]), sequence: u64::from(key), place: 0, content }
    }

    #[test]
    fn the_lowest_free_number_is_taken_and_the_limit_holds() {
        let mut index = index(3);
        assert_eq!([1, 2, 3].map(|key| index.take(record(key, 100))), [Some(0), Some(1), Some(2)]);
        assert_eq!(index.take(record(4, 100)), None);
        for number in [1, 0] {
            index.mark_dying(number);
            index.release(number);
        }
        assert_eq!(index.take(record(5, 100)), Some(0));
        assert_eq!(index.used_bytes(), 2 * 4096);
    }

    #[test]
    fn numbers_below_a_found_file_are_free() {
        let mut index = index(10);
        index.occupy(3, record(1, 5000));
        index.make_live(3);
        assert_eq!(index.find(Key([1; 16])), Some(3));
        assert_eq!(index.take(record(2, 1)), Some(0));
        assert_eq!(index.victim(), Some(3));
    }
}
