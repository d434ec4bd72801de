//! What the scheme knows of its records: a slab found by key, ordered by use. Pure memory.

use super::layout::Piece;
use crate::lru::{LinkStore, Links, Lru};
use foxy_store::contract::{Key, Record, Site};
use foxy_store::layout::SLOT;
use foxy_store::record::slots_for;
use hashbrown::HashTable;
use smallvec::SmallVec;

/// Names an entry while it exists.
pub type EntryId = u32;

/// The pieces of a record; almost always one.
pub type Pieces = SmallVec<[Piece; 1]>;

/// A record on disk, or on its way there.
#[derive(Debug)]
pub struct SlotEntry {
    /// Whose.
    pub key: Key,
    /// Whose it is in turn: its origin server.
    pub site: Site,
    /// Its place in the order of puts.
    pub sequence: u64,
    /// Bytes of head and body.
    pub content: u32,
    /// Where it lies; empty while it waits in a locality buffer.
    pub pieces: Pieces,
    /// Its content, while not all of it is on disk.
    pub held: Option<Record>,
    /// Writes that still carry a part of it.
    pub writes: u32,
    /// A get may return it. What is not live goes once nothing carries it any more.
    pub live: bool,
    vacant: bool,
    links: Links,
}

impl SlotEntry {
    /// Slots it takes.
    pub const fn slots(&self) -> u32 {
        slots_for(self.content as usize)
    }
}

/// What is known of a record from the start.
#[derive(Debug)]
pub struct New {
    /// [`SlotEntry::key`].
    pub key: Key,
    /// [`SlotEntry::site`].
    pub site: Site,
    /// [`SlotEntry::sequence`].
    pub sequence: u64,
    /// [`SlotEntry::content`].
    pub content: u32,
    /// [`SlotEntry::held`].
    pub held: Option<Record>,
}

struct Slab(Vec<SlotEntry>);

impl LinkStore for Slab {
    fn links(&mut self, index: u32) -> &mut Links {
        &mut self.0[index as usize].links
    }
}

/// All entries.
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
    /// None yet. `mix` is a secret that keeps callers from choosing keys that collide.
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

    /// The live entry of a key.
    pub fn find(&self, key: Key) -> Option<EntryId> {
        let slab = &self.slab.0;
        self.by_key.find(key.hash(self.mix), |&id| slab[id as usize].key == key).copied()
    }

    /// An entry.
    pub fn get(&self, id: EntryId) -> &SlotEntry {
        &self.slab.0[id as usize]
    }

    /// An entry, to change what it holds or where it lies.
    pub fn get_mut(&mut self, id: EntryId) -> &mut SlotEntry {
        &mut self.slab.0[id as usize]
    }

    /// Adds a live entry, the hottest of all. Its key must have none.
    pub fn insert(&mut self, New { key, site, sequence, content, held }: New) -> EntryId {
        let entry = SlotEntry {
            key,
            site,
            sequence,
            content,
            pieces: Pieces::new(),
            held,
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

    /// The entry is not returned any more.
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

    /// Nothing carries the entry any more: its place in the slab is free.
    pub fn vacate(&mut self, id: EntryId) -> Pieces {
        let entry = &mut self.slab.0[id as usize];
        assert!(
            !entry.live && entry.writes == 0 && !entry.vacant,
            "something still needs the entry"
        );
        entry.vacant = true;
        entry.held = None;
        self.vacant.push(id);
        std::mem::take(&mut entry.pieces)
    }

    /// Marks a live entry as just used.
    pub fn touch(&mut self, id: EntryId) {
        self.order.touch(&mut self.slab, id);
    }

    /// The live entry unused for longest.
    pub fn coldest(&self) -> Option<EntryId> {
        self.order.coldest()
    }

    /// All live entries, coldest first.
    pub fn coldest_first(&mut self) -> Vec<EntryId> {
        let mut all = Vec::with_capacity(self.live as usize);
        let mut next = self.order.coldest();
        while let Some(id) = next {
            all.push(id);
            next = Lru::hotter(&mut self.slab, id);
        }
        all
    }

    /// Number of live entries.
    pub const fn live(&self) -> u32 {
        self.live
    }

    /// Slots of live entries.
    pub const fn live_slots(&self) -> u64 {
        self.live_slots
    }

    /// Bytes of disk that live entries take.
    pub const fn live_bytes(&self) -> u64 {
        self.live_slots * SLOT as u64
    }

    /// Memory taken, in bytes, as far as it is known.
    pub fn memory(&self) -> usize {
        self.slab.0.capacity() * size_of::<SlotEntry>()
            + self.vacant.capacity() * size_of::<EntryId>()
            + self.by_key.capacity() * (size_of::<EntryId>() + 1)
    }
}
