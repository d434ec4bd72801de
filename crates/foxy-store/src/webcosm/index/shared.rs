//! The index as the store's thread and those who ask share it: every call takes its lock for a
//! moment and gives values, never the lock. A look can answer that nothing is stored under a key,
//! or with a small record that need not be waited for; all else is the business of the store's
//! thread.
//!
//! Why a look never lies: what is read must carry what [`crate::webcosm::format::location`] says, as for the store's
//! thread, and after it was read the index must still say that the record is there. Who replaces or
//! removes a record changes the index before saying so.

use crate::contract::{Key, Look, Lookup, ReadNow};
use crate::record::Secret;
use crate::webcosm::format::geometry::Geometry;
use crate::webcosm::format::location::{Slots, Spot, Written};
use crate::webcosm::index::{Index, Known, Tag};
use foxy_device::FileId;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are read for a look, at most: who asks serves others too, whom a longer copy would
/// hold up.
const MOST_AT_ONCE: usize = 64 << 10;

/// What it takes to read a record.
#[derive(Clone, Copy, Debug)]
pub struct Readable {
    /// What keys are hashed with.
    pub salt: u64,
    /// What records are sealed with.
    pub secret: Secret,
    /// The file they lie in.
    pub file: FileId,
}

/// The index, what waits to get into it, and where in the file what it knows lies.
pub struct SharedIndex {
    bits: u32,
    looked_at: Arc<LookedAt>,
}

struct LookedAt(Mutex<Content>);

struct Content {
    index: Index,
    /// Tags of records that wait in memory and have no entry yet.
    staged: HashSet<Tag>,
    slots: Slots,
    /// While every record there is has an entry or waits.
    complete: Option<Readable>,
    /// Whether the store's thread knows that uses are counted, so that it will write them.
    looks_count: bool,
    /// Bytes that looks found and the store's thread was not told of.
    found: u64,
}

impl Content {
    fn new(geometry: Geometry) -> Self {
        Self {
            index: Index::new(geometry.partition_bits),
            staged: HashSet::new(),
            slots: Slots::new(geometry),
            complete: None,
            looks_count: false,
            found: 0,
        }
    }
}

impl SharedIndex {
    /// An empty index for a file of that division, which says nothing to others yet.
    pub fn new(geometry: Geometry) -> Self {
        let content = Mutex::new(Content::new(geometry));
        Self { bits: geometry.partition_bits, looked_at: Arc::new(LookedAt(content)) }
    }

    /// Begins anew with another division; who holds a [`Lookup`] of it goes on, and is told nothing
    /// for now.
    pub fn begin_anew(&mut self, geometry: Geometry) {
        self.bits = geometry.partition_bits;
        *self.lock() = Content::new(geometry);
    }

    /// The file is divided in another way, and what its slots hold is not known yet.
    pub fn divide(&self, geometry: Geometry) {
        self.lock().slots = Slots::new(geometry);
    }

    /// As [`Slots::written`].
    pub fn written(&self, slot: u32) -> Written {
        self.lock().slots.written(slot)
    }

    /// As [`Slots::set_written`].
    pub fn set_written(&self, slot: u32, written: Written) {
        self.lock().slots.set_written(slot, written);
    }

    /// As [`Slots::spot`].
    pub fn spot(&self, known: Known) -> Spot {
        self.lock().slots.spot(known)
    }

    /// What others look things up in.
    pub fn lookup(&self) -> Arc<dyn Lookup> {
        Arc::clone(&self.looked_at) as Arc<dyn Lookup>
    }

    /// From now on what has no entry and does not wait is absent, and what has one can be read in
    /// that way; or, without one, not any more.
    pub fn set_complete(&self, readable: Option<Readable>) {
        self.lock().complete = readable;
    }

    /// Whether looks may count uses. They give nothing else before, so that the first one comes to
    /// the store's thread.
    pub fn let_looks_count(&self, count: bool) {
        self.lock().looks_count = count;
    }

    /// Bytes that looks found since this was last called.
    pub fn take_found(&self) -> u64 {
        std::mem::take(&mut self.lock().found)
    }

    /// A record of this tag waits in memory.
    pub fn stage(&self, tag: Tag) {
        self.lock().staged.insert(tag);
    }

    /// It waits no more, and will not be written.
    pub fn unstage(&self, tag: Tag) {
        self.lock().staged.remove(&tag);
    }

    /// As [`Index::tag`].
    pub const fn tag(&self, hash: u64) -> Tag {
        Tag::of(hash, self.bits)
    }

    /// As [`Index::can_have`].
    pub fn can_have(&self, tag: Tag) -> bool {
        self.lock().index.can_have(tag)
    }

    /// As [`Index::len`].
    pub fn len(&self) -> u64 {
        self.lock().index.len()
    }

    /// As [`Index::memory`].
    pub fn memory(&self) -> u64 {
        self.lock().index.memory()
    }

    /// As [`Index::get`].
    pub fn get(&self, tag: Tag) -> Option<Known> {
        self.lock().index.get(tag)
    }

    /// As [`Index::touch`].
    pub fn touch(&self, tag: Tag) {
        self.lock().index.touch(tag);
    }

    /// As [`Index::add_uses`].
    pub fn add_uses(&self, tag: Tag, uses: u8) {
        self.lock().index.add_uses(tag, uses);
    }

    /// As [`Index::used_from`]; `take` must not use the index.
    pub fn used_from(
        &self,
        tag: Tag,
        least: u8,
        most: usize,
        take: impl FnMut(Tag, u8) -> bool,
    ) -> Option<Tag> {
        self.lock().index.used_from(tag, least, most, take)
    }

    /// As [`Index::insert`]; a record of this tag does not wait any more.
    pub fn insert(&self, tag: Tag, known: Known) {
        let mut content = self.lock();
        content.index.insert(tag, known);
        content.staged.remove(&tag);
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
        self.looked_at.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LookedAt {
    /// Nobody waits while the index changes.
    fn try_lock(&self) -> Option<MutexGuard<'_, Content>> {
        self.0.try_lock().ok()
    }

    /// Where the record of a key is to be read, or what can be said without reading.
    fn find(&self, key: Key) -> Result<(Readable, Tag, Known, Spot), Look> {
        let content = self.try_lock().ok_or(Look::Unsure)?;
        let readable = content.complete.ok_or(Look::Unsure)?;
        let tag = content.index.tag(key.hash(readable.salt));
        if content.staged.contains(&tag) {
            return Err(Look::Unsure);
        }
        let known = content.index.get(tag).ok_or(Look::Absent)?;
        let spot = content.slots.spot(known);
        let small = spot.length <= MOST_AT_ONCE;
        if small && content.looks_count {
            Ok((readable, tag, known, spot))
        } else {
            Err(Look::Unsure)
        }
    }

    /// Whether a record that was read is still the one of its tag; if so, it was used once more.
    fn is_used(&self, tag: Tag, place: u64, length: usize) -> bool {
        let Some(mut content) = self.try_lock() else { return false };
        let still = content.index.get(tag).is_some_and(|known| known.place == place);
        if content.complete.is_none() || !still || content.staged.contains(&tag) {
            return false;
        }
        content.index.touch(tag);
        content.found += length as u64;
        true
    }
}

impl Lookup for LookedAt {
    fn look(&self, key: Key, read: &mut ReadNow<'_>) -> Look {
        let (Readable { secret, file, .. }, tag, known, spot) = match self.find(key) {
            Ok(found) => found,
            Err(look) => return look,
        };
        // What cannot be read so, or is not what it should be, is for the store's thread to judge:
        // it may be on its way to disk.
        let buffer = read(file, spot.offset, spot.length);
        let record = buffer.and_then(|buffer| spot.record(key, buffer, &secret).ok());
        let record = record.filter(|record| self.is_used(tag, known.place, record.len()));
        record.map_or(Look::Unsure, Look::Found)
    }
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
