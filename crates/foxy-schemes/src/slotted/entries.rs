//! The records of a slotted storage scheme: an array of entries, a hash table by key, and an LRU
//! list.

use super::layout::Piece;
use crate::lru::{LinkStore, Links, Lru};
use foxy_store::contract::{Key, Record, Site};
use foxy_store::layout::SLOT;
use foxy_store::record::slots_for;
use hashbrown::HashTable;
use smallvec::SmallVec;

pub type EntryId = u32;

/// The pieces of a record on disk. A piece is a run of slots (512 bytes each). Almost every record
/// has one piece.
pub type Pieces = SmallVec<[Piece; 1]>;

#[derive(Debug)]
pub struct SlotEntry {
    pub key: Key,
    /// The origin server of the record.
    pub site: Site,
    /// Sequence number of the put that wrote the record.
    pub sequence: u64,
    /// Length of the record's head and body together, in bytes.
    pub content: u32,
    /// The record's place on disk. Empty while the record waits in the write buffer that the store
    /// has for the record's origin server.
    pub pieces: Pieces,
    /// The record itself, until its write has finished.
    pub in_memory: Option<Record>,
    /// Number of writes in flight that contain a part of the record.
    pub writes: u32,
    /// Whether a get may return the record. If false, the entry stays only while a write in flight
    /// contains the record.
    pub live: bool,
    vacant: bool,
    links: Links,
}

impl SlotEntry {
    pub const fn slots(&self) -> u32 {
        slots_for(self.content as usize)
    }
}

#[derive(Debug)]
pub struct NewEntry {
    pub key: Key,
    pub site: Site,
    pub sequence: u64,
    pub content: u32,
    pub in_memory: Option<Record>,
}

struct Slab(Vec<SlotEntry>);

impl LinkStore for Slab {
    fn links(&mut self, index: u32) -> &mut Links {
        &mut self.0[index as usize].links
    }
}

pub struct Entries {
    slab: Slab,
    vacant: Vec<EntryId>,
    by_key: HashTable<EntryId>,
    order: Lru,
    mix: u64,
    live: u32,
    live_slots: u64,
}

impl Entries {
    /// Creates an empty table. `mix` is a secret that is part of each key's hash, so that outsiders
    /// cannot choose keys that collide.
    pub fn new(mix: u64) -> Self {
        Self {
            slab: Slab(Vec::new()),
            vacant: Vec::new(),
            by_key: HashTable::new(),
            order: Lru::default(),
            mix,
            live: 0,
            live_slots: 0,
        }
    }

    pub fn find(&self, key: Key) -> Option<EntryId> {
        let slab = &self.slab.0;
        self.by_key.find(key.hash(self.mix), |&id| slab[id as usize].key == key).copied()
    }

    pub fn get(&self, id: EntryId) -> &SlotEntry {
        &self.slab.0[id as usize]
    }

    /// Returns the length of the array, including vacant places.
    pub fn places(&self) -> usize {
        self.slab.0.len()
    }

    pub fn get_mut(&mut self, id: EntryId) -> &mut SlotEntry {
        &mut self.slab.0[id as usize]
    }

    /// Adds a live entry as the most recently used. No other live entry may have its key.
    pub fn insert(
        &mut self,
        NewEntry { key, site, sequence, content, in_memory }: NewEntry,
    ) -> EntryId {
        let entry = SlotEntry {
            key,
            site,
            sequence,
            content,
            pieces: Pieces::new(),
            in_memory,
            writes: 0,
            live: true,
            vacant: false,
            links: Links::default(),
        };
        self.live += 1;
        self.live_slots += u64::from(entry.slots());
        let id = match self.vacant.pop() {
            Some(id) => {
                self.slab.0[id as usize] = entry;
                id
            }
            None => {
                self.slab.0.push(entry);
                EntryId::try_from(self.slab.0.len() - 1).expect("fewer records than slots")
            }
        };
        let (slab, mix) = (&self.slab.0, self.mix);
        self.by_key.insert_unique(key.hash(mix), id, |&other| slab[other as usize].key.hash(mix));
        self.order.push(&mut self.slab, id);
        id
    }

    /// Marks an entry as not live, so that a get no longer finds it.
    pub fn unlist(&mut self, id: EntryId) {
        let entry = &mut self.slab.0[id as usize];
        assert!(entry.live, "a record is dropped once");
        entry.live = false;
        self.live -= 1;
        self.live_slots -= u64::from(entry.slots());
        let hash = entry.key.hash(self.mix);
        self.order.remove(&mut self.slab, id);
        if let Ok(found) = self.by_key.find_entry(hash, |&other| other == id) {
            found.remove();
        }
    }

    /// Frees the place of an entry in the array, and returns the record's slots on disk. No write
    /// in flight may contain the entry.
    pub fn vacate(&mut self, id: EntryId) -> Pieces {
        let entry = &mut self.slab.0[id as usize];
        assert!(
            !entry.live && entry.writes == 0 && !entry.vacant,
            "something still needs the entry"
        );
        entry.vacant = true;
        entry.in_memory = None;
        self.vacant.push(id);
        std::mem::take(&mut entry.pieces)
    }

    pub fn touch(&mut self, id: EntryId) {
        self.order.touch(&mut self.slab, id);
    }

    pub fn coldest(&self) -> Option<EntryId> {
        self.order.coldest()
    }

    pub fn coldest_first(&mut self) -> Vec<EntryId> {
        self.order.coldest_first(&mut self.slab)
    }

    pub const fn live(&self) -> u32 {
        self.live
    }

    pub const fn live_slots(&self) -> u64 {
        self.live_slots
    }

    pub const fn live_bytes(&self) -> u64 {
        self.live_slots * SLOT as u64
    }

    /// Returns the approximate memory of the entries in bytes.
    pub fn memory(&self) -> usize {
        self.slab.0.capacity() * size_of::<SlotEntry>()
            + self.vacant.capacity() * size_of::<EntryId>()
            + self.by_key.capacity() * (size_of::<EntryId>() + 1)
    }
}
