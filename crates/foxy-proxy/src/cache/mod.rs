//! The cache combines memory and the store. The *store* is the cache on disk. The cache orders
//! look-ups, additions and invalidations so that an outdated response never comes back.
//!
//! Every fetch has a *watch* on its URL: the cache records all writes to the URL during the fetch.
//! The cache does not store a response if the URL was invalidated after the response's fetch began.
//! It also does not store a response if a later fetch has already written a response (see `epoch`).
//!
//! A large body is stored in *parts* of 1 MiB. A *slice* is such a part of an object that was never
//! fetched whole.

pub mod cold;
pub(crate) mod compressions;
mod derived;
pub(crate) mod epoch;
pub(crate) mod memory;
mod outdated;
mod part_keys;
pub mod purge;
pub(crate) mod refusals;
pub(crate) mod shared_parts;
pub mod storage;
pub(crate) mod stored;
pub(crate) mod stored_form;

use crate::cache::cold::ColdTier;
pub(crate) use crate::cache::epoch::{Epoch, Watch, WriteSource};
use crate::cache::epoch::{Groups, LeftUnderKey, WriteVerdict};
pub use crate::cache::memory::SHARDS as MEMORY_SHARDS;
pub(crate) use crate::cache::memory::{Cached, MemoryTier};
pub use crate::cache::part_keys::PartKeys;
use crate::cache::purge::{PurgeBook, Scope, Verdict, site_of};
pub(crate) use crate::cache::refusals::{NotKept, Refused};
use crate::cache::storage::StoreSilent;
pub(crate) use crate::cache::storage::{PART, Storage, part_key};
pub use crate::cache::stored::CacheKey;
pub(crate) use crate::cache::stored::{Entry, Placement, Stored, StoredBody, VaryList, strip};
pub use crate::cache::stored_form::{Describer, PurgeEffect, RecordDescription};
use crate::cache::stored_form::{encode_response, encode_varies};
use crate::core::{Counter, Counters, HitSource, View};
use bytes::Bytes;
use foxy_base::{Random, clock};
use foxy_http::Headers;
use foxy_rules::Vary;
use foxy_store::{Key, Lifetime, PlacementHint, Record};
use std::sync::{Arc, Mutex, PoisonError};

/// The result of a look-up in memory and in the store.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    Response(Arc<Stored>, CacheKey),
    Varies(VaryList),
    Nothing,
    /// Memory has no entry, and the store did not reply. So it is unknown whether a response is
    /// stored.
    Unknown,
}

/// A stored partial response, and the tier (memory or store) that contained it.
pub(crate) struct FoundPart {
    pub(crate) stored: Arc<Stored>,
    pub(crate) source: HitSource,
}

/// The result of a look-up in memory alone.
pub(crate) enum InMemory {
    Found(Found),
    /// The caller must read the store under this key. If there is a Vary list, the key belongs to
    /// the variant that this list selects for the request.
    Ask(CacheKey, Option<VaryList>),
}

pub(crate) struct Cache {
    pub(crate) memory: MemoryTier,
    pub(crate) memory_object_limit: u64,
    pub(crate) object_limit: u64,
    storage: Option<Storage>,
    pub(crate) groups: Arc<Groups>,
    random: Mutex<Random>,
    pub(crate) purges: Arc<PurgeBook>,
    cold: Option<ColdTier>,
}

/// The places that receive a response, besides memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    Store,
    /// The store, for a response that the cold tier keeps.
    StoreFromCold,
    MemoryOnly,
}

impl Cache {
    pub(crate) fn new(
        memory: MemoryTier,
        limits: (u64, u64),
        storage: Option<Storage>,
        purges: Arc<PurgeBook>,
        cold: Option<ColdTier>,
        seed: u64,
    ) -> Self {
        let (memory_object_limit, mut object_limit) = limits;
        if storage.is_none() {
            object_limit = object_limit.min(memory_object_limit).min(memory.largest_body());
        }
        Self {
            memory,
            memory_object_limit,
            object_limit,
            storage,
            groups: Arc::default(),
            random: Mutex::new(Random::new(seed)),
            purges,
            cold,
        }
    }

    pub(crate) fn storage(&self) -> Option<&Storage> {
        self.storage.as_ref()
    }

    /// Draws a random number that identifies a fetch or a Vary list. The number has 64 bits, so two
    /// equal numbers are practically impossible.
    pub(crate) fn draw(&self) -> u64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).next_u64().max(1)
    }

    pub(crate) fn epoch(&self, base: &CacheKey) -> Epoch {
        let begun = self.purges.stamp();
        Epoch { order: self.groups.lock(base.hash).next(), begun }
    }

    pub(crate) fn watch(&self, base: &CacheKey) -> Watch {
        self.watch_since(base, self.epoch(base))
    }

    /// Starts a watch on a URL, after a look-up in memory that began at `since`. The cache records
    /// all writes to a watched URL. The watch notes in `late` whether the URL may have been written
    /// between `since` and now.
    pub(crate) fn watch_since(&self, base: &CacheKey, since: Epoch) -> Watch {
        Watch::begin(&self.groups, base.hash, since)
    }

    pub(crate) fn is_of_now(&self, base: &CacheKey, epoch: Epoch) -> bool {
        self.groups.lock(base.hash).is_of_now(base.hash, epoch.order)
    }

    pub(crate) fn in_memory(&self, key: &CacheKey, request: &Headers) -> InMemory {
        match self.held(key) {
            Some(Cached::Response(stored)) => InMemory::Found(Found::Response(stored, key.clone())),
            Some(Cached::Varies(list)) => self.variant_in_memory(key, &list.1, request),
            None if self.storage.is_some() => InMemory::Ask(key.clone(), None),
            None => InMemory::Found(Found::Nothing),
        }
    }

    fn variant_in_memory(&self, key: &CacheKey, list: &VaryList, request: &Headers) -> InMemory {
        let variant = key.variant(list, &list.vary.key(&View(request)));
        match self.held(&variant) {
            Some(Cached::Response(stored)) => InMemory::Found(Found::Response(stored, variant)),
            _ if self.storage.is_some() => InMemory::Ask(variant, Some(list.clone())),
            _ => InMemory::Found(Found::Varies(list.clone())),
        }
    }

    /// Searches the store under the key `asked`, and puts the found entry into memory. `base` is
    /// the key of the URL. `watch` is a watch on this URL: the cache records all writes to it.
    pub(crate) async fn in_store(
        &self,
        base: &CacheKey,
        watch: &Watch,
        mut asked: CacheKey,
        mut list: Option<VaryList>,
        request: &Headers,
        counters: &Counters,
    ) -> Found {
        let Some(storage) = &self.storage else { return Found::Nothing };
        loop {
            match storage.entry(&asked, counters).await {
                Ok(Some(Entry::Response(stored))) => {
                    let stored = Arc::new(*stored);
                    let Some(usable) = self.unpurged(&asked, Arc::clone(&stored)) else {
                        return list.map_or(Found::Nothing, Found::Varies);
                    };
                    self.remember(base, &asked, &stored, watch);
                    return Found::Response(usable, asked);
                }
                Ok(Some(Entry::Varies(text, found))) if list.is_none() => {
                    let group = self.groups.lock(base.hash);
                    let write = watch.found().list(base);
                    if group.judge(base.hash, &write, None) == WriteVerdict::Write {
                        self.memory.put(base.hash, Cached::Varies(Arc::new((text, found.clone()))));
                    }
                    drop(group);
                    if let InMemory::Found(found) = self.variant_in_memory(base, &found, request) {
                        return found;
                    }
                    asked = base.variant(&found, &found.vary.key(&View(request)));
                    list = Some(found);
                }
                Ok(_) => return list.map_or(Found::Nothing, Found::Varies),
                Err(StoreSilent) => return list.map_or(Found::Unknown, Found::Varies),
            }
        }
    }

    pub(crate) async fn part(&self, base: &CacheKey, counters: &Counters) -> Option<FoundPart> {
        let key = base.part();
        if let Some(found) = self.held(&key) {
            let Cached::Response(stored) = found else { return None };
            return Some(FoundPart { stored, source: HitSource::Memory });
        }
        let storage = self.storage.as_ref()?;
        // Nearly all URLs have no stored partial response. This test costs less than a read.
        if storage.lacks(key.hash) {
            return None;
        }
        let watch = self.watch(base);
        let Ok(Some(Entry::Response(stored))) = storage.entry(&key, counters).await else {
            return None;
        };
        let stored = Arc::new(*stored);
        let usable = self.unpurged(&key, Arc::clone(&stored))?;
        self.remember(base, &key, &stored, &watch);
        Some(FoundPart { stored: usable, source: HitSource::Disk })
    }

    fn remember(&self, base: &CacheKey, key: &CacheKey, stored: &Arc<Stored>, watch: &Watch) {
        let small = match &stored.body {
            StoredBody::Whole(body) => body.len() as u64 <= self.memory_object_limit,
            StoredBody::Parts { .. } => true,
        };
        let write = watch.found().write(base, key, false);
        let group = self.groups.lock(base.hash);
        if small && group.judge(base.hash, &write, Some(stored)) == WriteVerdict::Write {
            self.memory.put(key.hash, Cached::Response(Arc::clone(stored)));
        }
    }

    /// Stores a response of a URL. Drops the response if the URL was invalidated after the fetch
    /// began, or if a later fetch has written a response. Purges after the start of the fetch also
    /// apply to the stored response.
    pub(crate) fn add(
        &self,
        base: &CacheKey,
        placement: &Placement,
        stored: &Arc<Stored>,
        source: WriteSource<'_>,
        counters: &Arc<Counters>,
    ) {
        self.add_to(Target::Store, (base, placement), stored, source, counters);
        self.offer_by_digest(base, &placement.key);
    }

    /// Stores a response like [`Self::add`], but in memory only, because another node of the fleet
    /// owns the key. Removes an older response from the store.
    pub(crate) fn add_copy(
        &self,
        base: &CacheKey,
        placement: &Placement,
        stored: &Arc<Stored>,
        source: WriteSource<'_>,
        counters: &Arc<Counters>,
    ) {
        stored.offered.settle();
        self.add_to(Target::MemoryOnly, (base, placement), stored, source, counters);
    }

    fn add_to(
        &self,
        target: Target,
        (base, placement): (&CacheKey, &Placement),
        stored: &Arc<Stored>,
        source: WriteSource<'_>,
        counters: &Arc<Counters>,
    ) {
        let Placement { key, list, has_new_list } = placement;
        let Watch { epoch, renews, .. } = source.watch;
        let stored = if stored.begun == epoch.begun {
            Arc::clone(stored)
        } else {
            Arc::new(Stored::clone(stored).begun(epoch.begun))
        };
        let hint = hint(base, &stored);
        let write = source.write(base, key, *has_new_list);
        let mut group = self.groups.lock(base.hash);
        match group.judge(base.hash, &write, Some(&stored)) {
            WriteVerdict::Write => {}
            WriteVerdict::WriteWithoutWhole => self.forget(base),
            WriteVerdict::Outdated => return,
            WriteVerdict::OutdatedAndGone => return self.forget(key),
            WriteVerdict::Astray => {
                group.note(base.hash, &write.of_list(base.hash), || LeftUnderKey::Nothing);
                return self.forget(base);
            }
        }
        group.note(base.hash, &write, || LeftUnderKey::Response(Arc::new(stored.without_body())));
        if target != Target::StoreFromCold {
            let keys = [Some(key.hash), has_new_list.then_some(base.hash)];
            keys.into_iter().flatten().for_each(|key| self.forget_cold(key));
        }
        let storage = self.storage.as_ref().filter(|_| target != Target::MemoryOnly);
        let replaces = renews.then(|| Scope::url(base));
        if let Some(list) = list.as_ref().filter(|_| *has_new_list) {
            group.note(base.hash, &write.of_list(base.hash), || LeftUnderKey::List);
            self.memory.put(base.hash, Cached::Varies(Arc::new((base.text.clone(), list.clone()))));
            if let Some(storage) = storage {
                let record = Record { head: encode_varies(base, list), body: Bytes::new() };
                storage.put(base.hash, record, hint, counters, replaces);
            }
        }
        let body = match &stored.body {
            StoredBody::Whole(body) => body.clone(),
            StoredBody::Parts { .. } => Bytes::new(),
        };
        if body.len() as u64 <= self.memory_object_limit {
            self.memory.put(key.hash, Cached::Response(Arc::clone(&stored)));
        } else {
            self.memory.remove(key.hash);
        }
        if let Some(storage) = storage {
            let record = Record { head: encode_response(&stored), body };
            storage.put(key.hash, record, hint, counters, replaces);
        } else if let Some(storage) =
            self.storage.as_ref().filter(|storage| !storage.lacks(key.hash))
        {
            drop(storage.remove(key.hash, Scope::url_of(key)));
        }
    }

    /// Removes all responses of a URL: the whole response, its variants and its partial responses.
    /// Fetches of the URL that are in progress can then no longer store their responses.
    pub(crate) async fn invalidate(&self, key: &CacheKey, counters: &Counters) {
        counters.add(Counter::Invalidations, 1);
        let url = Scope::url(key);
        let removed = {
            let mut group = self.groups.lock(key.hash);
            group.invalidate(key.hash);
            let both = [key.hash, key.part().hash];
            both.iter().for_each(|hash| self.forget_copies(*hash));
            let removals = |storage: &Storage| {
                (both.map(|hash| storage.remove(hash, url)), storage.patience())
            };
            self.storage.as_ref().map(removals)
        };
        if let Some(([one, other], patience)) = removed {
            // The store executes the removals before any later read, so correctness does not need
            // this wait. With the wait, the removals are durable before the client receives its
            // answer.
            let _ = tokio::time::timeout(patience, async { (one.await, other.await) }).await;
        }
    }

    pub(crate) fn was_written(&self, base: &CacheKey, key: &CacheKey) -> bool {
        self.groups.lock(base.hash).has_written(base.hash, key.hash)
    }

    /// Removes a response from the store because a newer response will replace it. Does nothing if
    /// an even newer response is known. Waits until the removal is durable, but not longer than the
    /// store's timeout. Memory keeps the old response until the newer response is complete. From
    /// now on, fetches that began before the fetch of the newer response cannot store a response
    /// under the key.
    pub(crate) async fn supersede(&self, base: &CacheKey, key: &CacheKey, watch: &Watch) {
        let Some(storage) = &self.storage else { return };
        let write = watch.fetched().write(base, key, false);
        let removed = {
            let mut group = self.groups.lock(base.hash);
            if !matches!(
                group.judge(base.hash, &write, None),
                WriteVerdict::Write | WriteVerdict::WriteWithoutWhole
            ) {
                return;
            }
            group.note(base.hash, &write, || LeftUnderKey::Nothing);
            self.forget_cold(key.hash);
            storage.remove(key.hash, Scope::url_of(key))
        };
        // If the removal exceeds this time limit, it may not be durable yet. The proxy sends its
        // answer nevertheless.
        let _ = tokio::time::timeout(storage.patience(), removed).await;
    }

    /// Returns true if a request for a URL may join a fetch that began at `epoch`. `key` is the key
    /// of the variant that the request selects. `key` is `None` if the URL's Vary list is unknown.
    pub(crate) fn may_join(&self, base: &CacheKey, key: Option<Key>, epoch: Epoch) -> bool {
        let may_join = self.groups.lock(base.hash).may_join(base.hash, key, epoch.order);
        may_join && !self.purges.may_touch(&base.text, epoch.begun)
    }

    /// Returns the entry that memory has under the key, unless a purge removed it. After a soft
    /// purge, the returned response is marked as stale.
    pub(crate) fn held(&self, key: &CacheKey) -> Option<Cached> {
        match self.memory.get(key.hash).filter(|cached| cached.key() == key.text)? {
            Cached::Response(stored) => self.unpurged(key, stored).map(Cached::Response),
            list @ Cached::Varies(_) => Some(list),
        }
    }

    pub(crate) fn unpurged(&self, key: &CacheKey, stored: Arc<Stored>) -> Option<Arc<Stored>> {
        match self.purges.judge(&stored) {
            Verdict::Untouched => Some(stored),
            Verdict::Stale { since } => Some(Arc::new(stored.stale_since(since, clock::steady()))),
            Verdict::InDoubt(doubt) => Some(Arc::new(stored.in_doubt(doubt))),
            Verdict::Gone => {
                self.forget(key);
                None
            }
        }
    }

    /// Removes an outdated or incomplete response from memory and the store, so that the next
    /// request fetches it again. If another request has just stored a newer response under this
    /// key, removes this newer response too.
    pub(crate) fn forget(&self, key: &CacheKey) {
        self.forget_record(key.hash, Scope::url_of(key));
    }

    /// Removes an outdated or purged record from memory and the store, to free its space. `key` is
    /// the hash of its cache key.
    pub(crate) fn forget_record(&self, key: Key, url: Scope) {
        self.forget_copies(key);
        if let Some(storage) = self.storage() {
            drop(storage.remove(key, url));
        }
    }

    /// Removes a response from memory and from the cold tier.
    fn forget_copies(&self, key: Key) {
        self.memory.remove(key);
        self.forget_cold(key);
    }

    /// Returns the Vary list for a new response, and whether the list is new. Reuses the URL's
    /// current list if it names the same headers. Otherwise creates a new list.
    pub(crate) fn list_for(&self, vary: Vary, in_force: Option<&VaryList>) -> (VaryList, bool) {
        match in_force {
            Some(list) if list.vary == vary => (list.clone(), false),
            _ => (VaryList { vary, salt: self.draw() }, true),
        }
    }
}

pub(crate) fn hint(base: &CacheKey, stored: &Stored) -> PlacementHint {
    let lifetime = match stored.lifetime {
        0..=600 => Lifetime::Short,
        86_400.. => Lifetime::Long,
        _ => Lifetime::Unknown,
    };
    // `size` must be the number of bytes that the store reads at a time. If the object is stored as
    // slices (aligned MiB), the store reads at most one slice at a time.
    let size = if stored.is_of_slices() { stored.length.min(PART as u64) } else { stored.length };
    PlacementHint { site: site_of(&base.text), size, lifetime }
}

#[cfg(test)]
mod tests;
