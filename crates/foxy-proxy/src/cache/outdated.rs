//! Removes responses that a newer response replaces. From then on, earlier fetches cannot store
//! a response under the key.

use crate::cache::epoch::{LeftUnderKey, WriteVerdict};
use crate::cache::stored::CacheKey;
use crate::cache::{Cache, Watch};

impl Cache {
    /// Removes a response because a newer fetch replaces it, even if the newer response was not
    /// stored. Earlier fetches can no longer store a response under the key, but later fetches can.
    pub(crate) fn outdate(&self, base: &CacheKey, key: &CacheKey, watch: &Watch) {
        self.leave_nothing(base, key, watch, true);
    }

    /// Like [`Self::outdate`], for a key under which the look-up found nothing. Another fetch may
    /// have stored a response under the key after the look-up.
    pub(crate) fn outdate_others(&self, base: &CacheKey, key: &CacheKey, watch: &Watch) {
        self.leave_nothing(base, key, watch, false);
    }

    /// Notes that the head of a new response has arrived, and that the cache will store the
    /// response. From now on, earlier fetches cannot store a response under the key, even if the
    /// new response breaks off.
    pub(crate) fn announce(&self, base: &CacheKey, key: &CacheKey, watch: &Watch) {
        let write = watch.fetched().write(base, key, false);
        let mut group = self.groups.lock(base.hash);
        let is_first = !group.has_written(base.hash, key.hash);
        if is_first && group.judge(base.hash, &write, None) == WriteVerdict::Write {
            group.note(base.hash, &write, || LeftUnderKey::Nothing);
            self.forget_cold(key.hash);
        }
    }

    /// Removes a response from memory because a newer response will replace it. Earlier fetches can
    /// then no longer store a response under the key.
    pub(crate) fn vacate(&self, base: &CacheKey, key: &CacheKey, watch: &Watch) {
        let write = watch.fetched().write(base, key, false);
        let mut group = self.groups.lock(base.hash);
        match group.judge(base.hash, &write, None) {
            WriteVerdict::Write | WriteVerdict::WriteWithoutWhole => {
                group.note(base.hash, &write, || LeftUnderKey::Nothing);
                self.forget_copies(key.hash);
            }
            WriteVerdict::OutdatedAndGone => self.forget_copies(key.hash),
            WriteVerdict::Astray => self.forget_copies(base.hash),
            WriteVerdict::Outdated => {}
        }
    }

    fn leave_nothing(&self, base: &CacheKey, key: &CacheKey, watch: &Watch, found: bool) {
        let write = watch.fetched().write(base, key, false);
        let mut group = self.groups.lock(base.hash);
        let in_store = found || watch.late || group.has_written(base.hash, key.hash);
        match group.judge(base.hash, &write, None) {
            WriteVerdict::Write | WriteVerdict::WriteWithoutWhole => {
                group.note(base.hash, &write, || LeftUnderKey::Nothing);
                if in_store {
                    self.forget(key);
                } else {
                    // The call of `supersede` has already removed the response from the store.
                    self.forget_copies(key.hash);
                }
            }
            WriteVerdict::Astray => {
                group.note(base.hash, &write.of_list(base.hash), || LeftUnderKey::Nothing);
                self.forget(base);
            }
            // Another fetch, which began later, replaces the stored response. Its response is not
            // complete yet, so the old response is removed here.
            WriteVerdict::OutdatedAndGone => self.forget(key),
            WriteVerdict::Outdated => {}
        }
    }
}
