//! Shares the index between the store's thread and lookups, which answer `get` requests on other
//! threads. Each call locks the index briefly. A lookup can answer that a key has no record, or
//! let its caller read a small record. All other gets go to the store's thread.
//!
//! A lookup never returns a wrong record. After the read, it searches the index again, and verifies
//! the bytes against the segment that the place now contains. So it does not matter how long the
//! read took. The store's thread changes the index before it answers a replacement or removal, so a
//! lookup after that answer does not find the old record.

use crate::contract::{Find, Key, Lookup, ReadNow, Record, RecordPlace};
use crate::map::LayoutView;
use crate::record::Secret;
use crate::webcosm::format::geometry::Geometry;
use crate::webcosm::format::location::{Location, SlotContent, Slots};
use crate::webcosm::index::{Index, IndexEntry, Tag};
use crate::webcosm::log_view::LogView;
use foxy_device::{FileId, IoBuffer};
use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest record in bytes that a lookup reads. A longer copy from the page cache would delay the
/// other work of the caller's thread.
const MAX_LOOKUP_BYTES: usize = 64 << 10;

/// The secrets and the file with which a lookup reads and checks a record.
#[derive(Clone, Copy, Debug)]
pub struct Readable {
    pub salt: u64,
    pub secret: Secret,
    pub file: FileId,
}

/// The index as the store's thread uses it. Lookups on other threads share its state.
pub struct SharedIndex {
    bits: u32,
    state: Arc<SharedState>,
    /// The state of both logs that `show_logs` last copied into `state`.
    shown: Cell<[LogView; 2]>,
}

pub(in crate::webcosm) struct SharedState {
    content: Mutex<Content>,
    /// Number of bytes in the records that lookups found since the last call of
    /// [`SharedIndex::take_found`].
    found: AtomicU64,
}

pub(in crate::webcosm) struct Content {
    pub index: Index,
    /// The state of both logs, for the layout map of the store (module `crate::map`).
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
        }
    }

    pub const fn geometry(&self) -> &Geometry {
        self.slots.geometry()
    }

    pub fn location(&self, entry: IndexEntry) -> Location {
        self.slots.location(entry)
    }

    /// Returns the values with which records are read, or `None` if the store has never served
    /// requests.
    pub const fn readable(&self) -> Option<Readable> {
        self.lent
    }
}

impl SharedIndex {
    pub fn new(geometry: Geometry) -> Self {
        let content = Mutex::new(Content::new(geometry));
        Self {
            bits: geometry.partition_bits,
            state: Arc::new(SharedState { content, found: AtomicU64::new(0) }),
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

    /// Shows the state of both logs to the layout map. Does nothing if the state has not changed.
    pub fn show_logs(&self, logs: [LogView; 2]) {
        if self.shown.replace(logs) != logs {
            self.lock().logs = logs;
        }
    }

    /// Replaces the file layout by the layout for another store size. The caller must then set
    /// again which segment each slot (place for a segment) contains.
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
        self.state.found.swap(0, Relaxed)
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

    /// Returns whether any key can have this tag (see [`Index::can_have`]).
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

    /// Adds the entry of a record, unless the tag has an entry (see [`Index::insert_if_absent`]).
    pub fn insert_if_absent(&self, tag: Tag, entry: IndexEntry) {
        self.lock().index.insert_if_absent(tag, entry);
    }

    /// Removes the entry of a tag if it leads to the granule `place` (see [`Index::remove_at`]).
    pub fn remove_at(&self, tag: Tag, place: u64) -> bool {
        self.lock().index.remove_at(tag, place)
    }

    /// Removes all records that start in a range of granules (see [`Index::remove_range`]).
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
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the index. Returns `None` if another thread has the lock, because lookups never wait
    /// before a read.
    fn try_lock(&self) -> Option<MutexGuard<'_, Content>> {
        self.content.try_lock().ok()
    }
}

impl Content {
    /// Returns where the record of a key is. If the record is absent, or lookups must not read it,
    /// returns the result of the lookup as `Err`.
    fn find(&self, key: Key) -> Result<(Readable, Tag, Location), Find> {
        let readable = self.complete.ok_or(Find::Unsure)?;
        let tag = self.index.tag(key.hash(readable.salt));
        if self.buffered.contains(&tag) {
            return Err(Find::Unsure);
        }
        let location = self.slots.location(self.index.get(tag).ok_or(Find::Absent)?);
        let is_small = location.length <= MAX_LOOKUP_BYTES;
        if is_small { Ok((readable, tag, location)) } else { Err(Find::Unsure) }
    }
}

impl Lookup for SharedState {
    fn find(&self, key: Key) -> Find {
        let Some(content) = self.try_lock() else { return Find::Unsure };
        match content.find(key) {
            Ok(_) if !content.lookups_count => Find::Unsure,
            Ok((Readable { file, .. }, _, Location { offset, length, .. })) => {
                Find::At(RecordPlace { file, offset, length })
            }
            Err(find) => find,
        }
    }

    /// If the index still leads to `place`, counts a use and returns the record. Returns `None`
    /// otherwise, or if the bytes are wrong. The write of the record may still be in flight, so the
    /// store's thread must then answer the get.
    fn verify(&self, key: Key, place: RecordPlace, buffer: IoBuffer) -> Option<Record> {
        let mut content = self.lock();
        let (Readable { secret, file, .. }, tag, location) = content.find(key).ok()?;
        if place != (RecordPlace { file, offset: location.offset, length: location.length }) {
            return None;
        }
        content.index.touch(tag);
        drop(content);
        let record = location.record(key, buffer, &secret).ok()?;
        self.found.fetch_add(record.len() as u64, Relaxed);
        Some(record)
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
