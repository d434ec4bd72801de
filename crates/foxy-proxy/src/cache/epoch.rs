//! Keeps outdated responses out of the cache when look-ups, fetches and writes of a URL overlap.
//!
//! An *epoch* tells when a look-up or fetch of a URL began. It is a pair of numbers: one number
//! orders the events of the URL, such as look-ups, fetches and writes. The other number is that of
//! the last purge. A *watch* is a note that a look-up or fetch of a URL is in progress. While a
//! watch exists, the cache records all writes to the URL. Before a fetch stores its response, the
//! cache searches these records. They show whether a newer response was stored after the fetch
//! began.
//!
//! A *variant* is one of several responses of a URL, chosen by request headers. The *Vary list* of
//! the URL names these headers. The store has the list under the key of the URL. The list leads to
//! the keys of the variants. A *flight* is a fetch that several requests share.

use crate::cache::purge::Stamp;
use crate::cache::stored::{CacheKey, Stored};
use foxy_store::{Key, KeyMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    /// Value of the URL's event counter when the look-up or fetch began. The counter belongs to the
    /// [`Group`] of the URL, and counts look-ups, fetches and writes.
    pub(crate) order: u64,
    /// The number of the last purge before the look-up or fetch began.
    pub(crate) begun: Stamp,
}

impl Epoch {
    /// Returns true if this epoch is later than `other`. Both epochs must belong to the same URL.
    pub(crate) const fn is_after(self, other: Self) -> bool {
        self.order > other.order
    }
}

/// Number of recent writes that the cache records for each URL with a watch (a look-up or fetch in
/// progress). If the cache forgets the oldest write, fetches that began before this write may no
/// longer store their responses.
const MAX_REMEMBERED_WRITES: usize = 16;

/// A write of a response or Vary list to the cache, under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheWrite {
    pub(crate) key: Key,
    pub(crate) place: WritePlace,
    /// Value of the URL's event counter when the fetch of the response began. The counter counts
    /// look-ups, fetches and writes.
    pub(crate) order: u64,
    /// Value of the URL's event counter when the look-up of the request began.
    pub(crate) looked: u64,
    pub(crate) origin: WriteOrigin,
}

/// The kind of key under which an entry is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WritePlace {
    /// The entry is stored under the key of the URL, and applies to every request for the URL.
    Whole,
    /// The response is stored under the URL's key for partial content. It answers range requests.
    Part,
    /// The response is stored under the key of a variant. The current Vary list of the URL leads to
    /// this key.
    Variant,
    /// The response is stored under the key of a variant. A new Vary list is stored under the key
    /// of the URL at the same time.
    NewList,
}

impl CacheWrite {
    pub(crate) const fn of_list(self, base: Key) -> Self {
        Self { key: base, place: WritePlace::Whole, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteOrigin {
    Fetched,
    /// The look-up found this response in the cache. It is written again, because the origin
    /// confirmed it or because it gets another key.
    Found,
    /// Like `Found`, but the URL may have been written after the look-up began and before the
    /// [`Watch`] began to record writes.
    FoundEarlier,
}

/// The content of the cache under a key after a write.
#[derive(Clone, Debug)]
pub(crate) enum LeftUnderKey {
    /// The cache has no response under the key. The response was removed, or a newer response will
    /// replace it.
    Nothing,
    List,
    Response(Arc<Stored>),
}

/// The decision of the cache whether a write may happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteVerdict {
    Write,
    /// Write the partial response. Also remove the whole response under the URL, because it is
    /// older and belongs to another representation.
    WriteWithoutWhole,
    Outdated,
    /// Do not write, because a newer response is known. Also remove the response that is stored
    /// under the key, because it may be older than the newer response.
    OutdatedAndGone,
    /// Do not write, because no request would find the response. Either an older fetch replaced the
    /// Vary list that leads to the response, or a newer fetch wrote another variant of the current
    /// list. Remove the current list, because it may lead to an older response.
    Astray,
}

/// The record of an earlier write to a URL with a watch (a look-up or fetch in progress).
#[derive(Clone, Debug)]
struct Written {
    key: Key,
    place: WritePlace,
    order: u64,
    at: u64,
    left: LeftUnderKey,
}

impl Written {
    /// Returns true if the two writes compete. Then a request that looks for the response in
    /// `write` could find the response of `self` instead.
    fn concerns(&self, write: &CacheWrite) -> bool {
        write.place != WritePlace::Variant
            || self.key == write.key
            || self.place == WritePlace::Whole
    }

    /// Returns true if one of the two writes is a whole response, and the other is a partial
    /// response of the same representation. Both responses must be equally fresh.
    fn is_other_part_of(&self, write: &CacheWrite, response: Option<&Stored>) -> bool {
        let both = [WritePlace::Whole, WritePlace::Part];
        let (LeftUnderKey::Response(left), Some(response)) = (&self.left, response) else {
            return false;
        };
        self.place != write.place
            && both.contains(&self.place)
            && both.contains(&write.place)
            && left.is_of_one_with(response)
    }
}

#[derive(Debug, Default)]
struct Watched {
    watches: usize,
    invalidated: u64,
    /// Value of the URL's event counter at the newest write that the cache has forgotten.
    forgotten: u64,
    written: Vec<Written>,
}

impl Watched {
    fn judge(&self, write: &CacheWrite, response: Option<&Stored>) -> WriteVerdict {
        let began = if write.origin == WriteOrigin::Fetched { write.order } else { write.looked };
        if self.invalidated > began {
            return WriteVerdict::Outdated;
        }
        if self.forgotten > began {
            return WriteVerdict::OutdatedAndGone;
        }
        let mut judged = WriteVerdict::Write;
        for other in self.written.iter().filter(|other| other.concerns(write)) {
            if other.is_other_part_of(write, response) {
                continue;
            }
            if other.order > write.order {
                match outdated_by(other, write) {
                    WriteVerdict::Astray => judged = WriteVerdict::Astray,
                    outdated => return outdated,
                }
                continue;
            }
            if other.at < write.looked || other.order == write.order {
                continue;
            }
            // The fetch of `other` began before the fetch of `write`, but the response of `other`
            // was written after this look-up began.
            match (write.place, other.place) {
                (WritePlace::Variant, WritePlace::Whole) => judged = WriteVerdict::Astray,
                (WritePlace::Part, WritePlace::Whole)
                    if judged == WriteVerdict::Write
                        && matches!(other.left, LeftUnderKey::Response(_)) =>
                {
                    judged = WriteVerdict::WriteWithoutWhole;
                }
                _ if write.origin != WriteOrigin::Fetched => return WriteVerdict::Outdated,
                _ => {}
            }
        }
        judged
    }

    fn note(&mut self, written: Written) {
        self.written.retain(|other| other.key != written.key);
        self.written.push(written);
        if self.written.len() > MAX_REMEMBERED_WRITES {
            self.forgotten = self.written.remove(0).at;
        }
    }
}

fn outdated_by(other: &Written, write: &CacheWrite) -> WriteVerdict {
    match (write.place, other.place) {
        _ if other.key == write.key => match other.left {
            LeftUnderKey::Nothing => WriteVerdict::OutdatedAndGone,
            LeftUnderKey::List | LeftUnderKey::Response(_) => WriteVerdict::Outdated,
        },
        (WritePlace::Part, _) | (WritePlace::Whole, WritePlace::Part) => {
            WriteVerdict::OutdatedAndGone
        }
        // `write` and `other` belong to requests with different headers. For a request like that of
        // `write`, the current Vary list may lead to an older response.
        (WritePlace::Whole | WritePlace::NewList, WritePlace::Variant) => WriteVerdict::Astray,
        (WritePlace::Whole | WritePlace::Variant | WritePlace::NewList, _) => {
            WriteVerdict::Outdated
        }
    }
}

/// URLs whose keys have the same hash bits. These URLs share a lock and one counter of events
/// (writes, invalidations, starts of fetches).
#[derive(Debug, Default)]
pub(crate) struct Group {
    moment: u64,
    changed: u64,
    watched: KeyMap<Watched>,
}

impl Group {
    pub(crate) fn next(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// Begins a watch: from now on, records all writes to a URL. Returns true if the URL already
    /// has another watch, of another look-up or fetch.
    pub(crate) fn watch(&mut self, base: Key) -> bool {
        let watched = self.watched.entry(base).or_default();
        watched.watches += 1;
        watched.watches > 1
    }

    pub(crate) fn unwatch(&mut self, base: Key) {
        if let Some(watched) = self.watched.get_mut(&base) {
            watched.watches -= 1;
            if watched.watches == 0 {
                self.watched.remove(&base);
            }
        }
    }

    /// Returns true if no URL of this group was written or invalidated since the group's event
    /// counter had the value `moment`.
    pub(crate) const fn is_unchanged_since(&self, moment: u64) -> bool {
        self.changed < moment
    }

    /// Returns true if the URL was not invalidated since its event counter had the value `order`.
    /// If the URL has no watch, the cache has no record of its writes. Then the result is true only
    /// if no URL of the group was written or invalidated since then.
    pub(crate) fn is_of_now(&self, base: Key, order: u64) -> bool {
        match self.watched.get(&base) {
            Some(watched) => watched.invalidated < order,
            None => self.changed < order,
        }
    }

    /// Returns true if a request for `key` may join a fetch that began when the URL's event counter
    /// had the value `order`. The request may not join if a later fetch wrote a response that could
    /// answer the request. If `key` is `None`, any later write prevents the request from joining.
    pub(crate) fn may_join(&self, base: Key, key: Option<Key>, order: u64) -> bool {
        let Some(watched) = self.watched.get(&base) else { return self.changed < order };
        let may_answer = |other: &Written| {
            other.place != WritePlace::Variant || key.is_none_or(|key| other.key == key)
        };
        watched.invalidated < order
            && watched.forgotten < order
            && !watched.written.iter().any(|other| other.order > order && may_answer(other))
    }

    /// Returns true if the cache has a record of a response written under `key`. The cache has
    /// records only while the URL has a watch. `base` is the key of the URL.
    pub(crate) fn has_written(&self, base: Key, key: Key) -> bool {
        let is_there =
            |other: &Written| other.key == key && !matches!(other.left, LeftUnderKey::Nothing);
        self.watched.get(&base).is_some_and(|watched| watched.written.iter().any(is_there))
    }

    /// Decides whether `write` may happen. An outdated response must not replace a newer response,
    /// because the cache must use the most recent response (RFC 9111 §4).
    pub(crate) fn judge(
        &self,
        base: Key,
        write: &CacheWrite,
        response: Option<&Stored>,
    ) -> WriteVerdict {
        match self.watched.get(&base) {
            _ if write.origin == WriteOrigin::FoundEarlier => WriteVerdict::Outdated,
            Some(watched) => watched.judge(write, response),
            None => WriteVerdict::Outdated,
        }
    }

    pub(crate) fn note(
        &mut self,
        base: Key,
        write: &CacheWrite,
        left: impl FnOnce() -> LeftUnderKey,
    ) {
        let at = self.next();
        self.changed = at;
        if let Some(watched) = self.watched.get_mut(&base).filter(|watched| watched.watches > 1) {
            let place =
                if write.place == WritePlace::NewList { WritePlace::Variant } else { write.place };
            watched.note(Written { key: write.key, place, order: write.order, at, left: left() });
        }
    }

    pub(crate) fn invalidate(&mut self, base: Key) {
        let at = self.next();
        self.changed = at;
        if let Some(watched) = self.watched.get_mut(&base) {
            watched.invalidated = at;
            watched.written.clear();
        }
    }
}

const GROUPS: usize = 1024;

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

/// A note that a look-up or fetch of a URL is in progress. While it exists, the cache records all
/// writes to the URL. The watch ends when its last clone is dropped.
#[derive(Clone)]
pub(crate) struct Watch {
    on: Arc<On>,
    pub(crate) epoch: Epoch,
    /// Value of the URL's event counter when the look-up of the request began.
    looked: u64,
    /// True if the URL may have been written after the look-up began and before this watch began.
    /// The cache has no record of such writes.
    pub(crate) late: bool,
    /// True if an older response may be stored or in flight. The new response then has to replace
    /// the older response.
    pub(crate) renews: bool,
}

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
    pub(crate) fn begin(groups: &Arc<Groups>, base: Key, since: Epoch) -> Self {
        let mut group = groups.lock(base);
        let late = !group.is_unchanged_since(since.order);
        let renews = group.watch(base);
        let epoch = Epoch { order: group.next(), ..since };
        drop(group);
        let on = Arc::new(On { groups: Arc::clone(groups), base });
        Self { on, epoch, looked: since.order, late, renews }
    }

    /// Returns a clone of the watch for another fetch of the same request. The fetch begins now.
    pub(crate) fn again(&self) -> Self {
        let order = self.on.groups.lock(self.on.base).next();
        Self { epoch: Epoch { order, ..self.epoch }, ..self.clone() }
    }

    /// Returns a clone of the watch for a flight (a fetch that several requests share). `epoch`
    /// tells when the flight began.
    pub(crate) fn of_flight(&self, epoch: Epoch) -> Self {
        Self { epoch, ..self.clone() }
    }

    /// Sets the number of the last purge before the fetch to `begun`.
    pub(crate) fn begun(self, begun: Stamp) -> Self {
        Self { epoch: Epoch { begun, ..self.epoch }, ..self }
    }

    /// If `renews` is true, notes that the new response must replace an older response. If `renews`
    /// is false, changes nothing.
    pub(crate) fn renewing(self, renews: bool) -> Self {
        Self { renews: self.renews || renews, ..self }
    }

    pub(crate) const fn looked(&self) -> Epoch {
        Epoch { order: self.looked, begun: self.epoch.begun }
    }

    /// Returns the origin server as the source of the response that a request will write to the
    /// cache.
    pub(crate) const fn fetched(&self) -> WriteSource<'_> {
        WriteSource { watch: self, origin: WriteOrigin::Fetched }
    }

    /// Returns the cache as the source of the response that a request will write to the cache
    /// again.
    pub(crate) const fn found(&self) -> WriteSource<'_> {
        WriteSource {
            watch: self,
            origin: if self.late { WriteOrigin::FoundEarlier } else { WriteOrigin::Found },
        }
    }
}

/// The source of a response (origin or cache) that will be written to the cache, and the watch on
/// its URL. Makes a [`CacheWrite`] for each key under which the response is written.
#[derive(Clone, Copy)]
pub(crate) struct WriteSource<'a> {
    pub(crate) watch: &'a Watch,
    origin: WriteOrigin,
}

impl WriteSource<'_> {
    pub(crate) fn write(self, base: &CacheKey, key: &CacheKey, has_new_list: bool) -> CacheWrite {
        let place = match () {
            () if has_new_list => WritePlace::NewList,
            () if key.hash == base.hash => WritePlace::Whole,
            () if key.is_variant_of(base) => WritePlace::Variant,
            () => WritePlace::Part,
        };
        let Watch { epoch, looked, .. } = *self.watch;
        CacheWrite { key: key.hash, place, order: epoch.order, looked, origin: self.origin }
    }

    /// Returns the write that copies the Vary list of a URL from the store to memory. The place of
    /// the write is `Variant`, so that a later write of a variant does not make the list outdated.
    pub(crate) fn list(self, base: &CacheKey) -> CacheWrite {
        CacheWrite { place: WritePlace::Variant, ..self.write(base, base, false) }
    }
}

/// Creates an epoch for tests that only compare epochs. `order` is its place among the URL's
/// events.
#[cfg(test)]
pub(crate) const fn test_epoch(order: u64) -> Epoch {
    Epoch { order, begun: Stamp { era: 0, moment: 0 } }
}

#[cfg(test)]
#[path = "epoch_tests.rs"]
mod tests;
