//! Shares the index between the store's thread and lookups, which answer `get` requests on other
//! threads. Each call locks the index briefly. A lookup can answer that a key has no record, or
//! read a small record from the page cache. All other gets go to the store's thread.
//!
//! A lookup never returns a wrong record. It verifies the bytes that it reads. After the read, it
//! checks that the index still leads to the same record. The store's thread changes the index
//! before it answers a replacement or removal, so a lookup after that answer does not find the old
//! record.

use crate::contract::{Key, Look, Lookup, ReadNow, Record};
use crate::map::LayoutView;
use crate::record::Secret;
use crate::webcosm::format::geometry::Geometry;
use crate::webcosm::format::location::{Location, SlotContent, Slots};
use crate::webcosm::index::{Index, IndexEntry, Tag};
use crate::webcosm::log_view::LogView;
use foxy_device::FileId;
use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest record in bytes that a lookup reads. A longer copy from the page cache would delay the
/// other work of the caller's thread.
const MAX_LOOKUP_BYTES: usize = 64 << 10;

/// The values with which a lookup reads and checks a record.
#[derive(Clone, Copy, Debug)]
pub struct Readable {
    pub salt: u64,
    pub secret: Secret,
    pub file: FileId,
}

pub struct SharedIndex {
    bits: u32,
    state: Arc<SharedState>,
    /// The state of both logs that `show_logs` last copied into `state`.
    shown: Cell<[LogView; 2]>,
}

pub(in crate::webcosm) struct SharedState(Mutex<Content>);

pub(in crate::webcosm) struct Content {
    pub index: Index,
    /// The state of both logs, for the layout map of the store (`map.rs`).
    pub logs: [LogView; 2],
    /// Tags (shortened keys) of records that wait in memory to be written, and have no index entry
    /// yet.
    buffered: HashSet<Tag>,
    slots: Slots,
    /// Set if the index is complete: every record of the store has an index entry, or waits in
    /// memory and has its tag in `buffered`. Otherwise lookups cannot know whether a record is
    /// absent.
    complete: Option<Readable>,
    /// The last value of `complete` that was not `None`. With this value, lookups read
    /// records after the store has closed.
    lent: Option<Readable>,
    /// Whether lookups may count uses of records. If true, the store's thread will later write the
    /// use counters to disk.
    lookups_count: bool,
    /// Number of bytes in the records that lookups found since the last call of
    /// [`SharedIndex::take_found`].
    found: u64,
}

impl Content {
    fn new(geometry: Geometry) -> Self {
        Self {
            index: Index::new(geometry.partition_bits),
            logs: Default::default(),
            buffered: HashSet::new(),
            slots: Slots::new(geometry),
            complete: None,
            lent: None,
            lookups_count: false,
            found: 0,
        }
    }

    pub const fn geometry(&self) -> &Geometry {
        self.slots.geometry()
    }

    pub fn location(&self, entry: IndexEntry) -> Location {
        self.slots.location(entry)
    }

    /// Returns the values with which records are read, as soon as the store has served.
    pub const fn readable(&self) -> Option<Readable> {
        self.lent
    }
}

impl SharedIndex {
    pub fn new(geometry: Geometry) -> Self {
        let content = Mutex::new(Content::new(geometry));
        Self {
            bits: geometry.partition_bits,
            state: Arc::new(SharedState(content)),
            shown: Cell::default(),
        }
    }

    /// Replaces the index by an empty index for a file with this layout. Existing lookups use the
    /// new index.
    pub fn begin_anew(&mut self, geometry: Geometry) {
        self.bits = geometry.partition_bits;
        *self.lock() = Content::new(geometry);
        self.shown.set(Default::default());
    }

    /// Shows the state of both logs to the layout map. Does nothing if it has not changed.
    pub fn show_logs(&self, logs: [LogView; 2]) {
        if self.shown.replace(logs) != logs {
            self.lock().logs = logs;
        }
    }

    /// Changes to the file layout of another store size. The caller must then set again which
    /// segment each slot (place for a segment) contains.
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

    /// Allows lookups to answer `get` requests, because every record now has an index entry or
    /// waits in memory. With `None`, lookups leave every get to the store's thread.
    pub fn set_complete(&self, readable: Option<Readable>) {
        let mut content = self.lock();
        content.complete = readable;
        content.lent = readable.or(content.lent);
    }

    /// Sets whether lookups may count uses of records. If not, lookups return no records. The next
    /// get then reaches the store's thread, which starts to write the counters to disk.
    pub fn let_lookups_count(&self, count: bool) {
        self.lock().lookups_count = count;
    }

    /// Returns the number of bytes in the records that lookups found since the last call of this
    /// method.
    pub fn take_found(&self) -> u64 {
        std::mem::take(&mut self.lock().found)
    }

    /// Notes that a record with this tag (shortened key) waits in memory to be written.
    pub fn buffer(&self, tag: Tag) {
        self.lock().buffered.insert(tag);
    }

    /// Notes that no record with this tag (shortened key) waits in memory any more, because the
    /// waiting record was dropped.
    pub fn unbuffer(&self, tag: Tag) {
        self.lock().buffered.remove(&tag);
    }

    pub const fn tag(&self, hash: u64) -> Tag {
        Tag::of(hash, self.bits)
    }

    /// See [`Index::can_have`].
    pub fn can_have(&self, tag: Tag) -> bool {
        self.lock().index.can_have(tag)
    }

    pub fn len(&self) -> u64 {
        self.lock().index.len()
    }

    /// Returns the size of the index in bytes of memory.
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

    /// Does the same as [`Index::used_from`] while it holds the lock. `take` must not call methods
    /// of this index, because they would deadlock.
    pub fn used_from(
        &self,
        tag: Tag,
        least: u8,
        most: usize,
        take: impl FnMut(Tag, u8) -> bool,
    ) -> Option<Tag> {
        self.lock().index.used_from(tag, least, most, take)
    }

    /// Adds the index entry of a record. The record counts as written, and no longer as waiting in
    /// memory.
    pub fn insert(&self, tag: Tag, entry: IndexEntry) {
        let mut content = self.lock();
        content.index.insert(tag, entry);
        content.buffered.remove(&tag);
    }

    /// See [`Index::insert_if_absent`].
    pub fn insert_if_absent(&self, tag: Tag, entry: IndexEntry) {
        self.lock().index.insert_if_absent(tag, entry);
    }

    /// See [`Index::remove_at`].
    pub fn remove_at(&self, tag: Tag, place: u64) -> bool {
        self.lock().index.remove_at(tag, place)
    }

    /// See [`Index::remove_range`].
    pub fn remove_range(
        &self,
        places: &Range<u64>,
        from: usize,
        most: &mut usize,
    ) -> Option<usize> {
        self.lock().index.remove_range(places, from, most)
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.state.lock()
    }
}

impl SharedState {
    pub fn lock(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the index. Returns `None` if another thread has the lock, because lookups never wait.
    fn try_lock(&self) -> Option<MutexGuard<'_, Content>> {
        self.0.try_lock().ok()
    }

    /// Returns where to read the record of a key from the file. If no read is needed or allowed,
    /// returns the result of the lookup as `Err`.
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

    /// Returns whether the index still leads to the record that was read. If so, counts a use of
    /// the record.
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
        // If the read or a check fails, the store's thread must answer the get. The write of the
        // record may still be in flight.
        let record = read(file, location.offset, location.length)
            .and_then(|buffer| location.record(key, buffer, &secret).ok())
            .filter(|record| self.is_current(tag, entry.place, record.len()));
        record.map_or(Look::Unsure, Look::Found)
    }

    fn read_lent(&self, key: Key, read: &mut ReadNow<'_>) -> Option<Record> {
        let content = self.lock();
        let Readable { salt, secret, file } = content.lent?;
        let tag = content.index.tag(key.hash(salt));
        let entry = content.index.get(tag).filter(|_| !content.buffered.contains(&tag))?;
        let location = content.slots.location(entry);
        drop(content);
        let buffer = read(file, location.offset, location.length)?;
        location.record(key, buffer, &secret).ok()
    }

    fn layout(&self) -> Option<&dyn LayoutView> {
        Some(self)
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
