//! Finds the stored responses to which a purge would apply. A search covers memory. It covers the
//! store only for a URL, because the index of the store contains no URLs.

use crate::cache::CacheKey;
use crate::cache::purge::{Scope, Verdict};
use crate::cache::stored::{Entry, Stored};
use crate::request::coded::is_coded;
use crate::server::handle::ProxyHandle;

/// One name of a purge request, such as a URL or a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeName {
    /// The name as the request gives it, with its kind, such as `tag news`.
    pub text: String,
    /// The stored responses that the name means.
    pub scopes: Vec<Scope>,
    /// The cache key, if the name is a URL.
    pub url: Option<CacheKey>,
}

/// Numbers of stored responses that a name means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeMatches {
    /// Responses in memory.
    pub memory: u64,
    /// Responses that only the store has. `None` if the number is unknown.
    pub disk: Option<u64>,
}

impl ProxyHandle {
    /// Returns the numbers of stored responses that each name means. Responses that an earlier
    /// purge removed do not count.
    pub async fn search(&self, names: &[PurgeName]) -> Vec<PurgeMatches> {
        let mut found = vec![PurgeMatches::default(); names.len()];
        let mut see = |stored: &Stored| {
            if self.is_gone(stored) || is_coded(&stored.key) {
                return;
            }
            for (matches, name) in found.iter_mut().zip(names) {
                matches.memory += u64::from(name.scopes.iter().any(|scope| scope.covers(stored)));
            }
        };
        let mut place = Some(0);
        while let Some(from) = place {
            place = self.shared.cache.memory.visit(from, &mut see);
            tokio::task::yield_now().await;
        }
        for (matches, name) in found.iter_mut().zip(names) {
            matches.disk = self.on_disk(name, matches.memory).await;
        }
        found
    }

    async fn on_disk(&self, name: &PurgeName, in_memory: u64) -> Option<u64> {
        let Some(storage) = self.shared.cache.storage() else { return Some(0) };
        let key = name.url.as_ref()?;
        match storage.entry(key, &self.counters).await.ok()? {
            None => Some(0),
            Some(Entry::Response(stored)) if in_memory > 0 || self.is_gone(&stored) => Some(0),
            Some(Entry::Response(_)) => Some(1),
            Some(Entry::Varies(..)) => None,
        }
    }

    fn is_gone(&self, stored: &Stored) -> bool {
        self.shared.purges.book.judge(stored) == Verdict::Gone
    }
}
