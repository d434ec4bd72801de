//! The index as the store's thread and those who ask share it: every call takes its lock for a moment and gives values, never
//! the lock. What a look can answer is that nothing is stored under a key; all else is the business of the store's thread.

use super::index::{Index, Known, Tag};
use crate::contract::{Key, Lookup};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// The index, and what waits to get into it.
pub struct SharedIndex {
    bits: u32,
    looked_at: Arc<LookedAt>,
}

struct LookedAt(Mutex<Content>);

struct Content {
    index: Index,
    /// Tags of records that wait in memory and have no entry yet.
    staged: HashSet<Tag>,
    /// What keys are hashed with, while every record there is has an entry or waits.
    complete: Option<u64>,
}

impl SharedIndex {
    /// An empty index of two to the power of `bits` partitions, which says nothing to others yet.
    pub fn new(bits: u32) -> Self {
        let content = Content { index: Index::new(bits), staged: HashSet::new(), complete: None };
        Self { bits, looked_at: Arc::new(LookedAt(Mutex::new(content))) }
    }

    /// Begins anew with another number of partitions; who holds a [`Lookup`] of it goes on.
    pub fn begin_anew(&mut self, bits: u32) {
        self.bits = bits;
        let mut content = self.lock();
        content.index = Index::new(bits);
        content.staged.clear();
    }

    /// What others look things up in.
    pub fn lookup(&self) -> Arc<dyn Lookup> {
        Arc::clone(&self.looked_at) as Arc<dyn Lookup>
    }

    /// From now on what has no entry and does not wait is absent; keys are hashed with `salt`. Or, without one, not any more.
    pub fn set_complete(&self, salt: Option<u64>) {
        self.lock().complete = salt;
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
    pub fn remove_range(&self, places: &Range<u64>, from: usize, most: &mut usize) -> Option<usize> {
        self.lock().index.remove_range(places, from, most)
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.looked_at.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lookup for LookedAt {
    fn is_absent(&self, key: Key) -> bool {
        // Nobody waits while the index changes.
        let content = match self.0.try_lock() {
            Ok(content) => content,
            Err(TryLockError::Poisoned(_) | TryLockError::WouldBlock) => return false,
        };
        let Some(salt) = content.complete else { return false };
        let tag = content.index.tag(key.hash(salt));
        content.index.get(tag).is_none() && !content.staged.contains(&tag)
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::Extent;
    use super::*;

    #[test]
    fn a_look_finds_absent_only_what_neither_waits_nor_has_an_entry_in_a_complete_index() {
        const SALT: u64 = 7;
        let mut index = SharedIndex::new(4);
        let (key, lookup) = (Key([3; 16]), index.lookup());
        assert!(!lookup.is_absent(key));
        index.begin_anew(5);
        index.set_complete(Some(SALT));
        assert!(lookup.is_absent(key));
        let tag = index.tag(key.hash(SALT));
        index.stage(tag);
        assert!(!lookup.is_absent(key));
        index.insert(tag, Known { place: 9, extent: Extent::Packed, uses: 0 });
        assert!(!lookup.is_absent(key) && index.remove_at(tag, 9) && lookup.is_absent(key));
        index.stage(tag);
        index.unstage(tag);
        assert!(lookup.is_absent(key));
        index.set_complete(None);
        assert!(!lookup.is_absent(key));
    }
}
