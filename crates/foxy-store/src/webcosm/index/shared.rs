//! The index as the store's thread shares it with lookups on other threads. Each call takes the lock
//! for a moment. A lookup answers that nothing is stored under a key, or reads a small record that
//! the system has in memory; everything else goes to the store's thread.
//!
//! Why a lookup never lies: the bytes are verified as on the store's thread, and after the read the
//! index must still name the same record. The store's thread changes the index before it answers a
//! replacement or removal.

use crate::contract::{Key, Look, Lookup, ReadNow};
use crate::record::Secret;
use crate::webcosm::format::geometry::Geometry;
use crate::webcosm::format::location::{Location, SlotContent, Slots};
use crate::webcosm::index::{Index, IndexEntry, Tag};
use foxy_device::FileId;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that a lookup reads at most: a longer copy would hold up the caller's other work.
const MAX_LOOKUP_BYTES: usize = 64 << 10;

/// What reading a record takes.
#[derive(Clone, Copy, Debug)]
pub struct Readable {
    pub salt: u64,
    pub secret: Secret,
    pub file: FileId,
}

pub struct SharedIndex {
    bits: u32,
    state: Arc<SharedState>,
}

struct SharedState(Mutex<Content>);

struct Content {
    index: Index,
    /// Tags of records in memory that have no entry yet.
    buffered: HashSet<Tag>,
    slots: Slots,
    /// Set while every record has an entry or is buffered.
    complete: Option<Readable>,
    /// Whether the store's thread knows that uses are counted, so that it will write them.
    lookups_count: bool,
    /// Bytes that lookups found since the store's thread last asked.
    found: u64,
}

impl Content {
    fn new(geometry: Geometry) -> Self {
        Self {
            index: Index::new(geometry.partition_bits),
            buffered: HashSet::new(),
            slots: Slots::new(geometry),
            complete: None,
            lookups_count: false,
            found: 0,
        }
    }
}

impl SharedIndex {
    pub fn new(geometry: Geometry) -> Self {
        let content = Mutex::new(Content::new(geometry));
        Self { bits: geometry.partition_bits, state: Arc::new(SharedState(content)) }
    }

    /// Begins empty, with another geometry. Lookups stay valid.
    pub fn begin_anew(&mut self, geometry: Geometry) {
        self.bits = geometry.partition_bits;
        *self.lock() = Content::new(geometry);
    }

    /// The store has another size; the content of its slots is not known yet.
    pub fn divide(&self, geometry: Geometry) {
        self.lock().slots = Slots::new(geometry);
    }

    pub fn slot(&self, slot: u32) -> SlotContent {
        self.lock().slots.get(slot)
    }

    pub fn set_slot(&self, slot: u32, content: SlotContent) {
        self.lock().slots.set(slot, content);
    }

    pub fn location(&self, entry: IndexEntry) -> Location {
        self.lock().slots.location(entry)
    }

    pub fn lookup(&self) -> Arc<dyn Lookup> {
        Arc::clone(&self.state) as Arc<dyn Lookup>
    }

    /// Every record has an entry or is buffered, and can be read like this; with `None` lookups
    /// answer nothing.
    pub fn set_complete(&self, readable: Option<Readable>) {
        self.lock().complete = readable;
    }

    /// Whether lookups may count uses. Before, they find no records, so that the first get comes to
    /// the store's thread.
    pub fn let_lookups_count(&self, count: bool) {
        self.lock().lookups_count = count;
    }

    /// Bytes that lookups found since the last call.
    pub fn take_found(&self) -> u64 {
        std::mem::take(&mut self.lock().found)
    }

    /// A record of this tag is in memory.
    pub fn buffer(&self, tag: Tag) {
        self.lock().buffered.insert(tag);
    }

    /// A buffered record will not be written.
    pub fn unbuffer(&self, tag: Tag) {
        self.lock().buffered.remove(&tag);
    }

    pub const fn tag(&self, hash: u64) -> Tag {
        Tag::of(hash, self.bits)
    }

    /// As [`Index::can_have`].
    pub fn can_have(&self, tag: Tag) -> bool {
        self.lock().index.can_have(tag)
    }

    pub fn len(&self) -> u64 {
        self.lock().index.len()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> u64 {
        self.lock().index.memory()
    }

    pub fn get(&self, tag: Tag) -> Option<IndexEntry> {
        self.lock().index.get(tag)
    }

    pub fn touch(&self, tag: Tag) {
        self.lock().index.touch(tag);
    }

    pub fn add_uses(&self, tag: Tag, uses: u8) {
        self.lock().index.add_uses(tag, uses);
    }

    /// As [`Index::used_from`]. `take` must not use the index.
    pub fn used_from(
        &self,
        tag: Tag,
        least: u8,
        most: usize,
        take: impl FnMut(Tag, u8) -> bool,
    ) -> Option<Tag> {
        self.lock().index.used_from(tag, least, most, take)
    }

    /// Adds an entry. The record of this tag is no longer buffered.
    pub fn insert(&self, tag: Tag, entry: IndexEntry) {
        let mut content = self.lock();
        content.index.insert(tag, entry);
        content.buffered.remove(&tag);
    }

    /// As [`Index::remove_at`].
    pub fn remove_at(&self, tag: Tag, place: u64) -> bool {
        self.lock().index.remove_at(tag, place)
    }

    /// As [`Index::remove_range`].
    pub fn remove_range(
        &self,
        places: &Range<u64>,
        from: usize,
        most: &mut usize,
    ) -> Option<usize> {
        self.lock().index.remove_range(places, from, most)
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.state.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedState {
    /// Lookups do not wait while the index changes.
    fn try_lock(&self) -> Option<MutexGuard<'_, Content>> {
        self.0.try_lock().ok()
    }

    /// Where the record of a key is to be read, or the answer if no read is needed.
    fn find(&self, key: Key) -> Result<(Readable, Tag, IndexEntry, Location), Look> {
        let content = self.try_lock().ok_or(Look::Unsure)?;
        let readable = content.complete.ok_or(Look::Unsure)?;
        let tag = content.index.tag(key.hash(readable.salt));
        if content.buffered.contains(&tag) {
            return Err(Look::Unsure);
        }
        let entry = content.index.get(tag).ok_or(Look::Absent)?;
        let location = content.slots.location(entry);
        let is_small = location.length <= MAX_LOOKUP_BYTES;
        if is_small && content.lookups_count {
            Ok((readable, tag, entry, location))
        } else {
            Err(Look::Unsure)
        }
    }

    /// Whether the record that was read is still the record of its tag. Counts its use.
    fn is_current(&self, tag: Tag, place: u64, length: usize) -> bool {
        let Some(mut content) = self.try_lock() else { return false };
        let is_same = content.index.get(tag).is_some_and(|entry| entry.place == place);
        if content.complete.is_none() || !is_same || content.buffered.contains(&tag) {
            return false;
        }
        content.index.touch(tag);
        content.found += length as u64;
        true
    }
}

impl Lookup for SharedState {
    fn look(&self, key: Key, read: &mut ReadNow<'_>) -> Look {
        let (Readable { secret, file, .. }, tag, entry, location) = match self.find(key) {
            Ok(found) => found,
            Err(look) => return look,
        };
        // The store's thread judges what cannot be read, or is not sound: it may be on its way to
        // disk.
        let record = read(file, location.offset, location.length)
            .and_then(|buffer| location.record(key, buffer, &secret).ok())
            .filter(|record| self.is_current(tag, entry.place, record.len()));
        record.map_or(Look::Unsure, Look::Found)
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
