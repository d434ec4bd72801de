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
    /// The name as the request gives it, preceded by its kind, for example `tag news`.
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

/// The stored responses that a purge request means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundByPurge {
    /// Numbers of responses that at least one name means. Each response counts once.
    pub all: PurgeMatches,
    /// Numbers of responses that each name (a URL or a tag, for instance) means.
    pub names: Vec<PurgeMatches>,
}

impl ProxyHandle {
    /// Returns the numbers of stored responses that the names mean. Responses that an earlier purge
    /// removed do not count.
    pub async fn search(&self, names: &[PurgeName]) -> FoundByPurge {
        let none = PurgeMatches { memory: 0, disk: Some(0) };
        let mut found = FoundByPurge { all: none, names: vec![none; names.len()] };
        let mut see = |stored: &Stored| {
            if self.is_gone(stored) || is_coded(&stored.key) {
                return;
            }
            let mut is_any = false;
            for (matches, name) in found.names.iter_mut().zip(names) {
                let is_meant = name.scopes.iter().any(|scope| scope.covers(stored));
                matches.memory += u64::from(is_meant);
                is_any |= is_meant;
            }
            found.all.memory += u64::from(is_any);
        };
        let mut place = Some(0);
        while let Some(from) = place {
            place = self.shared.cache.memory.visit(from, &mut see);
            tokio::task::yield_now().await;
        }
        for (number, name) in names.iter().enumerate() {
            let matches = &mut found.names[number];
            matches.disk = self.on_disk(name, matches.memory).await;
            let is_new = names[..number].iter().all(|earlier| earlier.url != name.url);
            let more = if is_new { matches.disk } else { Some(0) };
            found.all.disk = found.all.disk.zip(more).map(|(sum, more)| sum + more);
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
