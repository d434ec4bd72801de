//! Stored forms of a response that the proxy derives from the response, such as a compressed form.
//! The key of a form depends on the response's body, and a look-up finds a form only through its
//! response. So no request finds a form after its response is gone. The order in which forms are
//! written does not matter.

use crate::cache::stored_form::encode_response;
use crate::cache::{Cache, CacheKey, Cached, Entry, Stored, StoredBody, hint};
use crate::core::Counters;
use bytes::Bytes;
use foxy_store::Record;
use std::sync::Arc;

impl Cache {
    /// Looks for another form of a response, such as the compressed response. Searches memory
    /// first, then the store.
    pub(crate) async fn derived(&self, key: &CacheKey, counters: &Counters) -> Option<Arc<Stored>> {
        if let Some(Cached::Response(stored)) = self.held(key) {
            return Some(stored);
        }
        let Ok(Some(Entry::Response(stored))) = self.storage()?.entry(key, counters).await else {
            return None;
        };
        let stored = self.unpurged(key, Arc::new(*stored))?;
        self.hold_derived(key, &stored);
        Some(stored)
    }

    /// Stores another form, such as the compressed response, of a response of the URL `base`.
    pub(crate) fn add_derived(
        &self,
        base: &CacheKey,
        key: &CacheKey,
        stored: &Arc<Stored>,
        counters: &Arc<Counters>,
    ) {
        self.hold_derived(key, stored);
        if let Some(storage) = self.storage() {
            let body = match &stored.body {
                StoredBody::Whole(body) => body.clone(),
                StoredBody::Parts { .. } => Bytes::new(),
            };
            let record = Record { head: encode_response(stored), body };
            storage.put(key.hash, record, hint(base, stored), counters, None);
        }
    }

    fn hold_derived(&self, key: &CacheKey, stored: &Arc<Stored>) {
        let is_small = match &stored.body {
            _ if stored.doubt.is_some() => false,
            StoredBody::Whole(body) => body.len() as u64 <= self.memory_object_limit,
            StoredBody::Parts { .. } => true,
        };
        if is_small {
            self.memory.put(key.hash, Cached::Response(Arc::clone(stored)));
        }
    }
}
