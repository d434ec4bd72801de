//! Memory and store together: look-ups, additions and invalidation, in an order that lets nothing
//! old come back.
//!
//! Every fetch has a watch on its URL. An addition is dropped where the URL was invalidated since
//! its fetch began, or where a fetch that began later has written in its place (see `epoch`).

pub(crate) mod epoch;
pub mod memory;
pub mod purge;
pub mod refusals;
pub(crate) mod shared_parts;
pub mod storage;
pub mod stored;
pub mod stored_form;
pub(crate) mod unconfirmed_removals;
pub(crate) mod watch;

use crate::cache::epoch::{Epoch, Judged, Left};
use crate::cache::memory::{Cached, MemoryTier};
use crate::cache::purge::{PurgeBook, Scope, site_of};
use crate::cache::storage::{PART, Silent, Storage};
use crate::cache::stored::{CacheKey, Entry, Placement, Stored, StoredBody, VaryList};
use crate::cache::stored_form::{encode_response, encode_varies};
use crate::cache::watch::{Groups, Watch, WriteSource};
use crate::core::View;
use crate::core::counters::{Counter, Counters};
use crate::core::outcome::HitSource;
use bytes::Bytes;
use foxy_base::Random;
use foxy_http::Headers;
use foxy_rules::Vary;
use foxy_store::{Lifetime, PlacementHint, Record};
use std::sync::{Arc, Mutex, PoisonError};

/// What a look-up found.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// A response that fits the request, and the key it is stored under.
    Response(Arc<Stored>, CacheKey),
    /// Responses for other request headers.
    Varies(VaryList),
    /// Nothing.
    Nothing,
    /// Nothing in memory; the store did not say what it has.
    Unknown,
}

/// The stored part of a URL's response.
pub(crate) struct FoundPart {
    pub(crate) stored: Arc<Stored>,
    pub(crate) source: HitSource,
}

/// A look-up in memory alone.
pub(crate) enum InMemory {
    /// Settled.
    Found(Found),
    /// The store must be asked for this key, a variant of that list.
    Ask(CacheKey, Option<VaryList>),
}

/// The cache.
pub(crate) struct Cache {
    pub(crate) memory: MemoryTier,
    pub(crate) memory_object_limit: u64,
    pub(crate) object_limit: u64,
    storage: Option<Storage>,
    pub(crate) groups: Arc<Groups>,
    random: Mutex<Random>,
    pub(crate) purges: Arc<PurgeBook>,
}

impl Cache {
    pub(crate) fn new(
        memory: MemoryTier,
        limits: (u64, u64),
        storage: Option<Storage>,
        purges: Arc<PurgeBook>,
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
        }
    }

    pub(crate) fn storage(&self) -> Option<&Storage> {
        self.storage.as_ref()
    }

    /// A number no other fill or list of this process has.
    pub(crate) fn draw(&self) -> u64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).next_u64().max(1)
    }

    /// The epoch of a request for a URL that comes now.
    pub(crate) fn epoch(&self, base: &CacheKey) -> Epoch {
        let begun = self.purges.stamp();
        Epoch { order: self.groups.lock(base.hash).next(), begun }
    }

    /// Watches a URL from now on.
    pub(crate) fn watch(&self, base: &CacheKey) -> Watch {
        self.watch_since(base, self.epoch(base))
    }

    /// Watches a URL that was looked up in memory from `since` on.
    pub(crate) fn watch_since(&self, base: &CacheKey, since: Epoch) -> Watch {
        Watch::begin(&self.groups, base.hash, since)
    }

    /// Whether a URL was not invalidated since.
    pub(crate) fn is_of_now(&self, base: &CacheKey, epoch: Epoch) -> bool {
        self.groups.lock(base.hash).is_of_now(base.hash, epoch.order)
    }

    /// Looks in memory.
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

    /// Looks in the store, after memory had nothing, and keeps in memory what it finds. `base` is
    /// the URL's own key, which is watched.
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
                    let turn = watch.found().list(base);
                    if group.judge(base.hash, &turn, None) == Judged::Write {
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
                Err(Silent) => return list.map_or(Found::Unknown, Found::Varies),
            }
        }
    }

    /// The part of a URL's response that is stored, if one is, and where it was found.
    pub(crate) async fn part(&self, base: &CacheKey, counters: &Counters) -> Option<FoundPart> {
        let (key, watch) = (base.part(), self.watch(base));
        if let Some(found) = self.held(&key) {
            let Cached::Response(stored) = found else { return None };
            return Some(FoundPart { stored, source: HitSource::Memory });
        }
        let Ok(Some(Entry::Response(stored))) = self.storage.as_ref()?.entry(&key, counters).await
        else {
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
        let turn = watch.found().turn(base, key, false);
        let group = self.groups.lock(base.hash);
        if small && group.judge(base.hash, &turn, Some(stored)) == Judged::Write {
            self.memory.put(key.hash, Cached::Response(Arc::clone(stored)));
        }
    }

    /// Adds a response of a URL, unless that was invalidated since the fetch began, or has a
    /// response of a fetch that began after it; purges since then hold for it.
    pub(crate) fn add(
        &self,
        base: &CacheKey,
        placement: &Placement,
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
        let turn = source.turn(base, key, *has_new_list);
        let mut group = self.groups.lock(base.hash);
        match group.judge(base.hash, &turn, Some(&stored)) {
            Judged::Write => {}
            Judged::WriteWithoutWhole => self.forget(base),
            Judged::Outdated => return,
            Judged::OutdatedAndGone => return self.forget(key),
            Judged::Astray => {
                group.note(base.hash, &turn.of_list(base.hash), || Left::Nothing);
                return self.forget(base);
            }
        }
        group.note(base.hash, &turn, || Left::Response(Arc::new(stored.without_body())));
        let replaces = renews.then(|| Scope::url(base));
        if let Some(list) = list.as_ref().filter(|_| *has_new_list) {
            group.note(base.hash, &turn.of_list(base.hash), || Left::List);
            self.memory.put(base.hash, Cached::Varies(Arc::new((base.text.clone(), list.clone()))));
            if let Some(storage) = &self.storage {
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
        if let Some(storage) = &self.storage {
            let record = Record { head: encode_response(&stored), body };
            storage.put(key.hash, record, hint, counters, replaces);
        }
    }

    /// Forgets what is stored under a URL, all variants and parts of it, and what is being fetched
    /// for it.
    pub(crate) async fn invalidate(&self, key: &CacheKey, counters: &Counters) {
        counters.add(Counter::Invalidations, 1);
        let url = Scope::url(key);
        let removed = {
            let mut group = self.groups.lock(key.hash);
            group.invalidate(key.hash);
            let both = [key.hash, key.part().hash];
            both.iter().for_each(|hash| self.memory.remove(*hash));
            let removals = |storage: &Storage| {
                (both.map(|hash| storage.remove(hash, url)), storage.patience())
            };
            self.storage.as_ref().map(removals)
        };
        if let Some(([one, other], patience)) = removed {
            // Later gets come after the removals in the store's queue; waiting only makes them
            // durable before the answer.
            let _ = tokio::time::timeout(patience, async { (one.await, other.await) }).await;
        }
    }

    /// Whether another fetch of a URL has written under a key since that URL is watched.
    pub(crate) fn was_written(&self, base: &CacheKey, key: &CacheKey) -> bool {
        self.groups.lock(base.hash).has_written(base.hash, key.hash)
    }

    /// Forgets the stored form of a response that a newer one is about to replace, and waits until
    /// that is durable, or as long as clients wait for the store. Memory keeps it until the newer
    /// one is whole. What a fetch brings that began before that of the newer one is not kept any
    /// more.
    pub(crate) async fn supersede(&self, base: &CacheKey, key: &CacheKey, watch: &Watch) {
        let Some(storage) = &self.storage else { return };
        let turn = watch.fetched().turn(base, key, false);
        let removed = {
            let mut group = self.groups.lock(base.hash);
            if !matches!(
                group.judge(base.hash, &turn, None),
                Judged::Write | Judged::WriteWithoutWhole
            ) {
                return;
            }
            group.note(base.hash, &turn, || Left::Nothing);
            storage.remove(key.hash, Scope::url_of(key))
        };
        // A store that does not say so in time costs this promise, not the answer.
        let _ = tokio::time::timeout(storage.patience(), removed).await;
    }

    /// The list of names for a new response: the one in force if it has the same names, else a new
    /// one.
    pub(crate) fn list_for(&self, vary: Vary, in_force: Option<&VaryList>) -> (VaryList, bool) {
        match in_force {
            Some(list) if list.vary == vary => (list.clone(), false),
            _ => (VaryList { vary, salt: self.draw() }, true),
        }
    }
}

/// What the store learns of a response: its site, its size, and roughly how long it is good for.
pub(crate) fn hint(base: &CacheKey, stored: &Stored) -> PlacementHint {
    let lifetime = match stored.lifetime {
        0..=600 => Lifetime::Short,
        86_400.. => Lifetime::Long,
        _ => Lifetime::Unknown,
    };
    // What is known of an object by slices takes the place of one of them, however large the object
    // is.
    let size = if stored.is_of_slices() { stored.length.min(PART as u64) } else { stored.length };
    PlacementHint { site: site_of(&base.text), size, lifetime }
}

#[cfg(test)]
mod tests;
