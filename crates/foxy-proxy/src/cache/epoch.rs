//! Orders the look-ups, fetches and writes of a URL. While a look-up or fetch watches a URL, the
//! cache remembers the writes under this URL. From these writes, the cache decides whether it may
//! still store a late response.

use crate::cache::purge::Stamp;
use crate::cache::stored::{CacheKey, Stored};
use foxy_store::{Key, KeyMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    /// Position in the order of events. Every URL belongs to a group of URLs that share one order.
    pub(crate) order: u64,
    /// Identifies the last purge before the fetch began.
    pub(crate) begun: Stamp,
}

impl Epoch {
    /// Returns true if this epoch is later than `other`. Both epochs must belong to the same URL.
    pub(crate) const fn is_after(self, other: Self) -> bool {
        self.order > other.order
    }
}

/// Number of remembered writes per URL. Once the cache has forgotten a write, fetches that began
/// before this write may no longer write.
const MAX_REMEMBERED_WRITES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheWrite {
    pub(crate) key: Key,
    pub(crate) place: WritePlace,
    /// The `order` of the epoch in which the fetch began.
    pub(crate) order: u64,
    /// The `order` of the epoch in which the look-up began.
    pub(crate) looked: u64,
    pub(crate) origin: WriteOrigin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WritePlace {
    /// The entry is stored under the URL itself and applies to every request for the URL.
    Whole,
    /// The response is stored under the URL's key for partial content. It answers range requests.
    Part,
    /// The response is stored under the key of a variant. The current Vary list of the URL leads to
    /// this key.
    Variant,
    /// The response is stored under the key of a variant. A new Vary list is stored under the URL.
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
    /// The look-up found this response in the cache. The origin has confirmed the response, or the
    /// response is written under another key.
    Found,
    /// The look-up found this response in the cache. Other writes may have happened between the
    /// look-up and the start of the watch.
    FoundEarlier,
}

#[derive(Clone, Debug)]
pub(crate) enum LeftUnderKey {
    /// The key has no response. The response was removed, or a newer response will replace it.
    Nothing,
    List,
    Response(Arc<Stored>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteVerdict {
    Write,
    /// Write the part. Also remove the whole response under the URL, because the whole response is
    /// older and belongs to another representation.
    WriteWithoutWhole,
    Outdated,
    /// Do not write, because a newer response is known. Also remove the stored response under the
    /// key, because it may be older than the newer response.
    OutdatedAndGone,
    /// Do not write, because no request would find the response. Either an older fetch replaced the
    /// Vary list that leads to it, or a newer fetch wrote another variant of the current list. The
    /// current list may lead to an older response, so remove the list.
    Astray,
}

#[derive(Clone, Debug)]
struct Written {
    key: Key,
    place: WritePlace,
    order: u64,
    at: u64,
    left: LeftUnderKey,
}

impl Written {
    /// Returns true if this written response can answer a request for the response in `write`.
    fn concerns(&self, write: &CacheWrite) -> bool {
        write.place != WritePlace::Variant
            || self.key == write.key
            || self.place == WritePlace::Whole
    }

    /// Returns true if one write is a whole response and the other write is a part of it. Both must
    /// belong to the same representation and be equally fresh.
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
    /// Position in the order of events at which the newest forgotten write happened.
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
            // An earlier fetch wrote `other` after the look-up.
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
        // For the same request, the current Vary list may lead to a response that is older than
        // `write` and `other`.
        (WritePlace::Whole | WritePlace::NewList, WritePlace::Variant) => WriteVerdict::Astray,
        (WritePlace::Whole | WritePlace::Variant | WritePlace::NewList, _) => {
            WriteVerdict::Outdated
        }
    }
}

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

    /// Starts to remember the writes of a URL. Returns true if other watches on the URL exist.
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

    /// Returns true if no write or invalidation happened in this group since `moment`.
    pub(crate) const fn is_unchanged_since(&self, moment: u64) -> bool {
        self.changed < moment
    }

    /// Returns true if the watched URL was not invalidated after `order`.
    pub(crate) fn is_of_now(&self, base: Key, order: u64) -> bool {
        match self.watched.get(&base) {
            Some(watched) => watched.invalidated < order,
            None => self.changed < order,
        }
    }

    /// Returns true if a request for `key` may join a fetch that began at `order`. The request may
    /// join if no later fetch wrote a response that could answer the request. Without a key, the
    /// request may join only if no later fetch wrote anything.
    pub(crate) fn may_join(&self, base: Key, key: Option<Key>, order: u64) -> bool {
        let Some(watched) = self.watched.get(&base) else { return self.changed < order };
        let may_answer = |other: &Written| {
            other.place != WritePlace::Variant || key.is_none_or(|key| other.key == key)
        };
        watched.invalidated < order
            && watched.forgotten < order
            && !watched.written.iter().any(|other| other.order > order && may_answer(other))
    }

    /// Returns true if any fetch wrote a response under `key` while the URL was watched.
    pub(crate) fn has_written(&self, base: Key, key: Key) -> bool {
        let is_there =
            |other: &Written| other.key == key && !matches!(other.left, LeftUnderKey::Nothing);
        self.watched.get(&base).is_some_and(|watched| watched.written.iter().any(is_there))
    }

    /// Decides whether a response may be written, so that the cache uses the most recent response
    /// (RFC 9111 §4).
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

/// A watch on a URL. Clones share the watch, which ends when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Watch {
    on: Arc<On>,
    pub(crate) epoch: Epoch,
    /// The `order` of the epoch in which the look-up began.
    looked: u64,
    /// True if writes may have happened between the look-up and the start of the watch.
    pub(crate) late: bool,
    /// True if an older response may be stored or in flight, so that a new response replaces it.
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

    /// Clones the watch for a fetch that begins now.
    pub(crate) fn again(&self) -> Self {
        let order = self.on.groups.lock(self.on.base).next();
        Self { epoch: Epoch { order, ..self.epoch }, ..self.clone() }
    }

    /// Returns a copy of this watch that has the given epoch, which is the epoch of a flight (a
    /// fetch that several requests share).
    pub(crate) fn of_flight(&self, epoch: Epoch) -> Self {
        Self { epoch, ..self.clone() }
    }

    /// Replaces the stamp of the last purge.
    pub(crate) fn begun(self, begun: Stamp) -> Self {
        Self { epoch: Epoch { begun, ..self.epoch }, ..self }
    }

    /// Marks that the response may replace a stored response. A mark that is already set stays.
    pub(crate) fn renewing(self, renews: bool) -> Self {
        Self { renews: self.renews || renews, ..self }
    }

    pub(crate) const fn looked(&self) -> Epoch {
        Epoch { order: self.looked, begun: self.epoch.begun }
    }

    /// Returns the source for writing a response that was fetched from the origin.
    pub(crate) const fn fetched(&self) -> WriteSource<'_> {
        WriteSource { watch: self, origin: WriteOrigin::Fetched }
    }

    /// Returns the source for writing the response that the look-up found.
    pub(crate) const fn found(&self) -> WriteSource<'_> {
        WriteSource {
            watch: self,
            origin: if self.late { WriteOrigin::FoundEarlier } else { WriteOrigin::Found },
        }
    }
}

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

    /// Creates a write of the Vary list that the store has under a URL. The place is `Variant`,
    /// because the list stays valid when variants are written.
    pub(crate) fn list(self, base: &CacheKey) -> CacheWrite {
        CacheWrite { place: WritePlace::Variant, ..self.write(base, base, false) }
    }
}

/// Creates an epoch for tests that only compare epochs.
#[cfg(test)]
pub(crate) const fn test_epoch(order: u64) -> Epoch {
    Epoch { order, begun: Stamp { era: 0, moment: 0 } }
}

#[cfg(test)]
#[path = "epoch_tests.rs"]
mod tests;
