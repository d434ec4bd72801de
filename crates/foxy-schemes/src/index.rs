//! The index in memory of the records on disk. The index lists live records in the order in which
//! the policy evicts them. It also lists leftovers: invalid records whose bytes are still on disk,
//! so that a scan after a crash could find them. Other modules decide about space and durability.

use crate::pages::Run;
use crate::policy::Policy;
use foxy_store::contract::Key;
use foxy_store::layout::{SLOT, SLOTS_PER_PAGE};
use foxy_store::record::SLOTS_LIMIT;
use hashbrown::HashTable;
use std::collections::BTreeSet;

pub type EntryId = u32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// A record that a get may return.
    Live,
    /// A record that a get must not return, but that may still be whole on disk. The record was
    /// evicted or removed, or its header is damaged.
    Leftover,
    /// A record as in [`Self::Leftover`], but its place on disk receives new data. This overwrite
    /// is not durable yet.
    Dying,
    /// A free place in the array of entries.
    Vacant,
}

/// A record that is on disk, or in a buffer on its way to disk.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub key: Key,
    /// Sequence number of the put that wrote the record.
    pub sequence: u64,
    pub first_slot: u32,
    pub slots: u16,
    pub state: EntryState,
    /// Whether the record's bytes are still in a write buffer in memory.
    pub buffered: bool,
    /// Whether the entry stands for a damaged header, so that the key is unknown.
    pub doubtful: bool,
}

impl Entry {
    pub fn new(key: Key, sequence: u64, first_slot: u32, slots: u32, state: EntryState) -> Self {
        let slots = u16::try_from(slots).expect("records have at most SLOTS_LIMIT slots");
        Self { key, sequence, first_slot, slots, state, buffered: false, doubtful: false }
    }

    pub const fn in_buffer(self) -> Self {
        Self { buffered: true, ..self }
    }

    /// Creates a doubtful entry for a slot that is unreadable or has a damaged header. The key of
    /// its record is unknown, so the entry gets a made-up key.
    pub fn doubt(slot: u32) -> Self {
        let mut name = [0xd0; 16];
        name[..4].copy_from_slice(&slot.to_le_bytes());
        Self { doubtful: true, ..Self::new(Key(name), 0, slot, 1, EntryState::Leftover) }
    }

    pub const fn end_slot(&self) -> u32 {
        self.first_slot + self.slots as u32
    }

    /// Returns the pages that contain the record or a part of it.
    pub const fn pages(&self) -> Run {
        let first = self.first_slot / SLOTS_PER_PAGE;
        Run { first, pages: self.end_slot().div_ceil(SLOTS_PER_PAGE) - first }
    }
}

pub struct Index {
    slab: Vec<Entry>,
    vacant: Vec<EntryId>,
    by_key: HashTable<EntryId>,
    by_slot: BTreeSet<(u32, EntryId)>,
    policy: Box<dyn Policy>,
    mix: u64,
    live: u32,
    live_slots: u64,
    doubtful: u32,
}

impl Index {
    /// Creates an empty index. `policy` chooses the next record to evict. `mix` is a secret that is
    /// part of each key's hash, so that outsiders cannot choose keys that collide.
    pub fn new(mix: u64, policy: Box<dyn Policy>) -> Self {
        Self {
            slab: Vec::new(),
            vacant: Vec::new(),
            by_key: HashTable::new(),
            by_slot: BTreeSet::new(),
            policy,
            mix,
            live: 0,
            live_slots: 0,
            doubtful: 0,
        }
    }

    pub fn get(&self, id: EntryId) -> &Entry {
        &self.slab[id as usize]
    }

    pub fn set_buffered(&mut self, id: EntryId, buffered: bool) {
        self.slab[id as usize].buffered = buffered;
    }

    /// Returns all entries of a key in any state.
    pub fn of_key(&self, key: Key) -> impl Iterator<Item = EntryId> + '_ {
        let slab = &self.slab;
        self.by_key
            .iter_hash(key.hash(self.mix))
            .copied()
            .filter(move |&id| slab[id as usize].key == key)
    }

    pub fn live_of(&self, key: Key) -> Option<EntryId> {
        self.of_key(key).find(|&id| self.get(id).state == EntryState::Live)
    }

    /// Adds an entry. The caller must not add a second live entry of a key.
    pub fn insert(&mut self, entry: Entry) -> EntryId {
        let id = self.vacant.pop().unwrap_or_else(|| {
            self.slab.push(entry);
            EntryId::try_from(self.slab.len() - 1).expect("fewer records than slots")
        });
        self.slab[id as usize] = entry;
        let (slab, mix) = (&self.slab, self.mix);
        let hash = entry.key.hash(mix);
        self.by_key.insert_unique(hash, id, |&other| slab[other as usize].key.hash(mix));
        self.by_slot.insert((entry.first_slot, id));
        self.doubtful += u32::from(entry.doubtful);
        if entry.state == EntryState::Live {
            self.live += 1;
            self.live_slots += u64::from(entry.slots);
            self.policy.insert(id, hash, u64::from(entry.slots) * SLOT as u64);
        }
        id
    }

    /// Changes the state of an entry. The new state must not be live or vacant.
    pub fn set_state(&mut self, id: EntryId, state: EntryState) {
        assert!(
            state != EntryState::Live && state != EntryState::Vacant,
            "records do not come back to life"
        );
        if self.get(id).state == EntryState::Live {
            self.live -= 1;
            self.live_slots -= u64::from(self.get(id).slots);
            self.policy.remove(id);
        }
        self.slab[id as usize].state = state;
    }

    pub fn remove(&mut self, id: EntryId) {
        let entry = *self.get(id);
        assert!(
            entry.state != EntryState::Live && entry.state != EntryState::Vacant,
            "live or gone"
        );
        let hash = entry.key.hash(self.mix);
        if let Ok(found) = self.by_key.find_entry(hash, |&other| other == id) {
            found.remove();
        }
        self.by_slot.remove(&(entry.first_slot, id));
        self.doubtful -= u32::from(entry.doubtful);
        self.slab[id as usize].state = EntryState::Vacant;
        self.vacant.push(id);
    }

    pub fn touch(&mut self, id: EntryId) {
        self.policy.touch(id);
    }

    pub fn admits(&self, size: u64) -> bool {
        self.policy.admits(size)
    }

    pub fn victim(&mut self) -> Option<EntryId> {
        self.policy.victim()
    }

    /// Returns all live entries in the approximate order of eviction, the next victim first.
    pub fn coldest_first(&mut self) -> Vec<EntryId> {
        self.policy.coldest_first()
    }

    /// Returns the entries whose first slot (512 bytes) is in `from..to`.
    pub fn beginning_in(&self, from: u32, to: u32) -> impl Iterator<Item = EntryId> + '_ {
        self.by_slot.range((from, 0)..(to, 0)).map(|&(_, id)| id)
    }

    /// Returns the live entries that overlap the slots (512 bytes each) `from..to`, from the last
    /// to the first. The search stops at the first live entry that ends before the range, because
    /// live entries never overlap each other.
    pub fn live_in(&self, from: u32, to: u32) -> impl Iterator<Item = EntryId> + '_ {
        let near = self.by_slot.range((from.saturating_sub(SLOTS_LIMIT), 0)..(to, 0)).rev();
        near.map(|&(_, id)| id)
            .filter(|&id| self.get(id).state == EntryState::Live)
            .take_while(move |&id| self.get(id).end_slot() > from)
    }

    /// Returns the array of entries, including vacant places. Entries never move in the array, so a
    /// caller can walk through it in several steps.
    pub fn slab(&self) -> &[Entry] {
        &self.slab
    }

    pub const fn live(&self) -> u32 {
        self.live
    }

    pub const fn live_slots(&self) -> u64 {
        self.live_slots
    }

    /// Returns the number of entries that are not vacant.
    pub fn len(&self) -> usize {
        self.slab.len() - self.vacant.len()
    }

    /// Returns the number of entries that stand for damaged headers.
    pub const fn doubtful(&self) -> u32 {
        self.doubtful
    }

    /// Returns the approximate memory of the index in bytes.
    pub fn memory(&self) -> usize {
        self.slab.capacity() * size_of::<Entry>()
            + self.vacant.capacity() * size_of::<EntryId>()
            + self.by_key.capacity() * (size_of::<EntryId>() + 1)
            + self.by_slot.len() * 12
            + self.policy.memory()
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
