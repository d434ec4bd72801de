//! What purges leave of what the cache holds and of what is being fetched for it; and letting go of
//! the rest.

use crate::cache::Cache;
use crate::cache::epoch::{Epoch, Judged, Left};
use crate::cache::memory::Cached;
use crate::cache::purge::{Scope, Verdict};
use crate::cache::stored::{CacheKey, Stored};
use crate::cache::watch::Watch;
use foxy_base::clock;
use foxy_store::Key;
use std::sync::Arc;

impl Cache {
    /// Whether a request for a URL may join a fetch that began in `epoch`, as far as can be said
    /// before the response is known. `key` is the variant's key, where the request's list is known.
    pub(crate) fn may_join(&self, base: &CacheKey, key: Option<Key>, epoch: Epoch) -> bool {
        let may_join = self.groups.lock(base.hash).may_join(base.hash, key, epoch.order);
        may_join && !self.purges.may_touch(&base.text, epoch.begun)
    }

    /// What memory holds under a key, as far as purges leave it.
    pub(crate) fn held(&self, key: &CacheKey) -> Option<Cached> {
        match self.memory.get(key.hash).filter(|cached| cached.key() == key.text)? {
            Cached::Response(stored) => self.unpurged(key, stored).map(Cached::Response),
            list @ Cached::Varies(_) => Some(list),
        }
    }

    /// What purges leave of a stored response.
    pub(crate) fn unpurged(&self, key: &CacheKey, stored: Arc<Stored>) -> Option<Arc<Stored>> {
        match self.purges.judge(&stored) {
            Verdict::Untouched => Some(stored),
            Verdict::Stale { since } => Some(Arc::new(stored.stale_since(since, clock::steady()))),
            Verdict::Gone => {
                self.forget(key);
                None
            }
        }
    }

    /// Lets go of a response that is no longer what its URL has, or no longer whole, so that the
    /// next request fetches it. If a new one was put in its place meanwhile, that is fetched again
    /// too.
    pub(crate) fn forget(&self, key: &CacheKey) {
        self.give_back(key.hash, Scope::url_of(key));
    }

    /// The same by its name, so that what was purged takes no room.
    pub(crate) fn give_back(&self, key: Key, url: Scope) {
        self.memory.remove(key);
        if let Some(storage) = self.storage() {
            drop(storage.remove(key, url));
        }
    }

    /// Lets go of a response in whose place a newer fetch has brought another one, kept or not:
    /// what was asked for before that takes the place no more. What was asked for after it stays.
    pub(crate) fn outdate(&self, base: &CacheKey, key: &CacheKey, watch: &Watch) {
        self.leave_nothing(base, key, watch, true);
    }

    /// The same for a key under which the look-up found nothing: another fetch may have written
    /// there since.
    pub(crate) fn outdate_others(&self, base: &CacheKey, key: &CacheKey, watch: &Watch) {
        self.leave_nothing(base, key, watch, false);
    }

    /// Notes that the head of a response has come that is to be stored. A fetch that began earlier
    /// writes nothing under that key any more, even if the newer response breaks off.
    pub(crate) fn announce(&self, base: &CacheKey, key: &CacheKey, watch: &Watch) {
        let turn = watch.fetched().turn(base, key, false);
        let mut group = self.groups.lock(base.hash);
        let is_first = !group.has_written(base.hash, key.hash);
        if is_first && group.judge(base.hash, &turn, None) == Judged::Write {
            group.note(base.hash, &turn, || Left::Nothing);
        }
    }

    /// Takes out of memory what a newer response is about to replace there.
    pub(crate) fn vacate(&self, base: &CacheKey, key: &CacheKey, watch: &Watch) {
        let turn = watch.fetched().turn(base, key, false);
        let mut group = self.groups.lock(base.hash);
        match group.judge(base.hash, &turn, None) {
            Judged::Write | Judged::WriteWithoutWhole => {
                group.note(base.hash, &turn, || Left::Nothing);
                self.memory.remove(key.hash);
            }
            Judged::OutdatedAndGone => self.memory.remove(key.hash),
            Judged::Astray => self.memory.remove(base.hash),
            Judged::Outdated => {}
        }
    }

    fn leave_nothing(&self, base: &CacheKey, key: &CacheKey, watch: &Watch, found: bool) {
        let turn = watch.fetched().turn(base, key, false);
        let mut group = self.groups.lock(base.hash);
        let in_store = found || watch.late || group.has_written(base.hash, key.hash);
        match group.judge(base.hash, &turn, None) {
            Judged::Write | Judged::WriteWithoutWhole => {
                group.note(base.hash, &turn, || Left::Nothing);
                if in_store {
                    self.forget(key);
                } else {
                    // `supersede` took the stored form alone.
                    self.memory.remove(key.hash);
                }
            }
            Judged::Astray => {
                group.note(base.hash, &turn.of_list(base.hash), || Left::Nothing);
                self.forget(base);
            }
            // A fetch that began later let go of it too, but has not come whole yet.
            Judged::OutdatedAndGone => self.forget(key),
            Judged::Outdated => {}
        }
    }
}
