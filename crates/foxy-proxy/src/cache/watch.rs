//! Watches on URLs: while a look-up or fetch of a URL has a watch, the cache remembers what is
//! written for that URL. What follows from that for a write is decided in `epoch`.

use crate::cache::epoch::{Brings, Epoch, EpochScope, Group, Turn};
use crate::cache::purge::Stamp;
use crate::cache::stored::CacheKey;
use foxy_store::Key;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Locks that the URLs are divided over.
const GROUPS: usize = 1024;

/// All URLs, by groups that share a lock.
#[derive(Debug)]
pub(crate) struct Groups(Vec<Mutex<Group>>);

impl Default for Groups {
    fn default() -> Self {
        Self((0..GROUPS).map(|_| Mutex::default()).collect())
    }
}

impl Groups {
    pub(crate) fn lock(&self, base: Key) -> MutexGuard<'_, Group> {
        let group = usize::from(u16::from_le_bytes([base.0[2], base.0[3]])) % GROUPS;
        self.0[group].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A watch on a URL. Clones share it; it ends with the last of them.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    on: Arc<On>,
    /// When the fetch began.
    pub(crate) epoch: Epoch,
    /// When the look-up before it began.
    looked: u64,
    /// Whether writes may have come between the look-up and the watch.
    pub(crate) late: bool,
    /// Whether something may be stored for the URL already, or be under way.
    pub(crate) renews: bool,
}

#[derive(Debug)]
struct On {
    groups: Arc<Groups>,
    base: Key,
}

impl Drop for On {
    fn drop(&mut self) {
        self.groups.lock(self.base).unwatch(self.base);
    }
}

impl Watch {
    /// Watches a URL that was looked up in memory from `since` on, or is about to be.
    pub(crate) fn begin(groups: &Arc<Groups>, base: Key, since: Epoch) -> Self {
        let mut group = groups.lock(base);
        let late = !group.is_unchanged_since(since.order);
        let renews = group.watch(base);
        let epoch = Epoch { order: group.next(), ..since };
        drop(group);
        let on = Arc::new(On { groups: Arc::clone(groups), base });
        Self { on, epoch, looked: since.order, late, renews }
    }

    /// The same watch for a fetch that begins now.
    pub(crate) fn again(&self) -> Self {
        let order = self.on.groups.lock(self.on.base).next();
        Self { epoch: Epoch { order, ..self.epoch }, ..self.clone() }
    }

    /// The same watch for a flight, which has the order of its fetch.
    pub(crate) fn of_flight(&self, epoch: Epoch) -> Self {
        Self { epoch, ..self.clone() }
    }

    /// The same for what belongs to that place among the purges.
    pub(crate) fn begun(self, begun: Stamp) -> Self {
        Self { epoch: Epoch { begun, ..self.epoch }, ..self }
    }

    /// The same for what may be in the place of something that is stored.
    pub(crate) fn renewing(self, renews: bool) -> Self {
        Self { renews: self.renews || renews, ..self }
    }

    /// When the look-up began.
    pub(crate) const fn looked(&self) -> Epoch {
        Epoch { order: self.looked, begun: self.epoch.begun }
    }

    /// A write of what an origin sent.
    pub(crate) const fn fetched(&self) -> WriteSource<'_> {
        WriteSource { watch: self, brings: Brings::Fetched }
    }

    /// A write of what the look-up found.
    pub(crate) const fn found(&self) -> WriteSource<'_> {
        WriteSource {
            watch: self,
            brings: if self.late { Brings::FoundEarlier } else { Brings::Found },
        }
    }
}

/// Whose write it is.
#[derive(Clone, Copy)]
pub(crate) struct WriteSource<'a> {
    pub(crate) watch: &'a Watch,
    brings: Brings,
}

impl WriteSource<'_> {
    /// A write of a response of `base` under `key`, with a new list or without.
    pub(crate) fn turn(self, base: &CacheKey, key: &CacheKey, has_new_list: bool) -> Turn {
        let place = match () {
            () if has_new_list => EpochScope::NewList,
            () if key.hash == base.hash => EpochScope::Whole,
            () if key.is_variant_of(base) => EpochScope::Variant,
            () => EpochScope::Part,
        };
        let Watch { epoch, looked, .. } = *self.watch;
        Turn { key: key.hash, place, order: epoch.order, looked, brings: self.brings }
    }

    /// A write of the list that the store has under a URL. It stays in force when variants are
    /// written.
    pub(crate) fn list(self, base: &CacheKey) -> Turn {
        Turn { place: EpochScope::Variant, ..self.turn(base, base, false) }
    }
}
