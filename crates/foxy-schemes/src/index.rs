//! What is known to lie on disk: live records in order of use, and leftovers that would be read
//! back after a crash. Pure memory; it decides nothing about space or durability.

use crate::policy::Policy;
use foxy_store::contract::Key;
use foxy_store::layout::{SLOT, SLOTS_PER_PAGE};
use foxy_store::record::SLOTS_LIMIT;
use hashbrown::HashTable;
use std::collections::BTreeSet;

/// Names an entry while it exists.
pub type EntryId = u32;

/// What an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// The record a get may return.
    Live,
    /// A record that may still be whole on disk but is not to be returned: evicted, forgotten, or
    /// doubtful.
    Leftover,
    /// A leftover that is being overwritten, or has been but not yet durably.
    Dying,
    /// No entry: its place in the slab is free.
    Vacant,
}

/// A record on disk, or in a buffer on its way there.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Whose.
    pub key: Key,
    /// Its place in the order of puts.
    pub sequence: u64,
    /// Where it begins.
    pub first_slot: u32,
    /// How many slots it takes.
    pub slots: u16,
    /// What it stands for.
    pub state: EntryState,
    /// Whether its bytes are still in a buffer of ours.
    pub buffered: bool,
    /// Stands for a damaged header whose key is not known.
    pub doubtful: bool,
}

impl Entry {
    /// An entry that is in no list yet.
    pub fn new(key: Key, sequence: u64, first_slot: u32, slots: u32, state: EntryState) -> Self {
        let slots = u16::try_from(slots).expect("records have at most SLOTS_LIMIT slots");
        Self { key, sequence, first_slot, slots, state, buffered: false, doubtful: false }
    }

    /// The same, with its bytes still in a buffer of ours.
    pub const fn in_buffer(self) -> Self {
        Self { buffered: true, ..self }
    }

    /// Stands for whatever may lie in a slot that could not be read, or whose header is damaged.
    pub fn doubt(slot: u32) -> Self {
        let mut name = [0xd0; 16];
        name[..4].copy_from_slice(&slot.to_le_bytes());
        Self { doubtful: true, ..Self::new(Key(name), 0, slot, 1, EntryState::Leftover) }
    }

    /// The slot after its last.
    pub const fn end_slot(&self) -> u32 {
        self.first_slot + self.slots as u32
    }

    /// Its first page and the page after its last.
    pub const fn pages(&self) -> (u32, u32) {
        (self.first_slot / SLOTS_PER_PAGE, self.end_slot().div_ceil(SLOTS_PER_PAGE))
    }
}

/// The index.
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
    /// An empty index. The policy, an empty one too, says which live entry goes first. `mix` is a
    /// secret that keeps callers from choosing keys that collide.
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

    /// An entry.
    pub fn get(&self, id: EntryId) -> &Entry {
        &self.slab[id as usize]
    }

    /// Sets whether an entry's bytes are in a buffer of ours.
    pub fn set_buffered(&mut self, id: EntryId, buffered: bool) {
        self.slab[id as usize].buffered = buffered;
    }

    /// Every entry of a key, live or not.
    pub fn of_key(&self, key: Key) -> impl Iterator<Item = EntryId> + '_ {
        let slab = &self.slab;
        self.by_key
            .iter_hash(key.hash(self.mix))
            .copied()
            .filter(move |&id| slab[id as usize].key == key)
    }

    /// The live entry of a key.
    pub fn live_of(&self, key: Key) -> Option<EntryId> {
        self.of_key(key).find(|&id| self.get(id).state == EntryState::Live)
    }

    /// Adds an entry; a live one is new to the policy. There must be no other live entry of its
    /// key.
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

    /// Changes what an entry stands for; never to live.
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

    /// Drops an entry that is not live.
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

    /// Marks a live entry as just used.
    pub fn touch(&mut self, id: EntryId) {
        self.policy.touch(id);
    }

    /// Whether the policy lets an object of that many bytes in.
    pub fn admits(&self, size: u64) -> bool {
        self.policy.admits(size)
    }

    /// The live entry that should go next.
    pub fn victim(&mut self) -> Option<EntryId> {
        self.policy.victim()
    }

    /// All live entries, about in the order in which they would go.
    pub fn coldest_first(&mut self) -> Vec<EntryId> {
        self.policy.coldest_first()
    }

    /// Entries whose header lies in a range of slots.
    pub fn beginning_in(&self, from: u32, to: u32) -> impl Iterator<Item = EntryId> + '_ {
        self.by_slot.range((from, 0)..(to, 0)).map(|&(_, id)| id)
    }

    /// Live entries that take any of a range of slots. They do not overlap each other, so a walk
    /// backwards can stop at the first that ends before the range.
    pub fn live_in(&self, from: u32, to: u32) -> impl Iterator<Item = EntryId> + '_ {
        let near = self.by_slot.range((from.saturating_sub(SLOTS_LIMIT), 0)..(to, 0)).rev();
        near.map(|&(_, id)| id)
            .filter(|&id| self.get(id).state == EntryState::Live)
            .take_while(move |&id| self.get(id).end_slot() > from)
    }

    /// Entries of any state, by place in the slab, from `start` on; for walks in steps.
    pub fn slab(&self) -> &[Entry] {
        &self.slab
    }

    /// Number of live entries.
    pub const fn live(&self) -> u32 {
        self.live
    }

    /// Slots of live entries.
    pub const fn live_slots(&self) -> u64 {
        self.live_slots
    }

    /// Number of entries, leftovers included.
    pub fn len(&self) -> usize {
        self.slab.len() - self.vacant.len()
    }

    /// Whether there is no entry at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Damaged headers whose key is not known.
    pub const fn doubtful(&self) -> u32 {
        self.doubtful
    }

    /// Memory taken, in bytes, as far as it is known.
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
