//! Remembers why the proxy did not store recent responses. `foxy explain` shows these reasons. A
//! reason also affects the next fetches of the URL. If an object cannot be stored in slices
//! (aligned MiB), the proxy fetches no slices of the object. If a response could answer only one
//! request, the next requests for its URL do not share a fetch. The table has a fixed size, so an
//! entry may overwrite the entry of another URL.

use crate::cache::stored::CacheKey;
use foxy_base::WallTime;
use foxy_rules::NotStoredReason;
use foxy_store::Key;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Number of entries in the table. All entries together use 48 KiB of memory.
const MAX_REFUSALS: usize = 1024;

/// The reason why the cache does not store a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotKept {
    /// A caching rule forbids the cache to store the response.
    Rule(NotStoredReason),
    /// The origin answered with an error. The stored response stays in the cache, because the proxy
    /// may still serve it (stale-if-error).
    StaleIfError,
    /// The body is larger than the operator's setting `object-limit`.
    TooLarge,
    /// The object cannot be stored in slices: the response has no strong validator, or the origin
    /// does not support ranges.
    NoSlices,
    /// The store was full, busy or broken, or the proxy had no memory left for the body.
    StoreRefused,
    /// A request with an unsafe method, such as POST, succeeded and removed the stored responses.
    Invalidated,
}

impl NotKept {
    /// Returns a stable name of the reason, for `Cache-Status` details, logs and explanations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rule(reason) => reason.name(),
            Self::StaleIfError => "stale-if-error",
            Self::TooLarge => "too-large",
            Self::NoSlices => "no-slices",
            Self::StoreRefused => "store-refused",
            Self::Invalidated => "invalidated",
        }
    }

    /// Returns the section of the standard or document that gives the reason.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Rule(reason) => reason.section(),
            Self::StaleIfError => "RFC 5861 §4",
            Self::TooLarge => "docs/configuration.md",
            Self::NoSlices => "RFC 9111 §3.4",
            Self::StoreRefused => "docs/operation.md",
            Self::Invalidated => "RFC 9111 §4.4",
        }
    }
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rule(reason) => reason.description(),
            Self::StaleIfError => {
                "the response is an error, and the stored response may answer in its place"
            }
            Self::TooLarge => "the response is larger than object-limit",
            Self::NoSlices => {
                "the parts of the response cannot be joined: the origin sent no strong validator, \
                 or other ranges than requested"
            }
            Self::StoreRefused => "the store was full, busy or broken",
            Self::Invalidated => {
                "the response answered a request that changes the resource, such as a POST; foxy \
                 removed the stored responses"
            }
        })
    }
}

/// Time in milliseconds. For this long after a response that could answer only one request, the
/// proxy expects the next response of the URL to be alike.
const EXPECTED_FOR: u64 = 10_000;

/// A response that the cache did not store, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: u16,
    /// Time when the head of the response arrived.
    pub at: WallTime,
    pub why: NotKept,
}

impl Refused {
    /// Returns whether the response could answer only its own request. `has_authorization` tells
    /// whether the next request has the field Authorization. If the response had a status of 500 or
    /// more, returns false, because the next response may have another status.
    fn is_for_one(self, has_authorization: bool) -> bool {
        use NotStoredReason::{
            Authorization, NoFreshness, NotUnderstood, Private, ResponseNoStore, Rule, SetCookie,
            Unreadable, VaryStar, VaryTooLong,
        };
        let NotKept::Rule(why) = self.why else { return false };
        self.status < 500
            && match why {
                Rule | NotUnderstood | Unreadable | ResponseNoStore | Private | VaryStar
                | VaryTooLong | SetCookie | NoFreshness => true,
                Authorization => has_authorization,
                NotStoredReason::Method
                | NotStoredReason::Partial
                | NotStoredReason::Status
                | NotStoredReason::RequestNoStore
                | NotStoredReason::Cookie => false,
            }
    }
}

/// The last reason for not storing a response, for each URL. The hash of a URL selects its entry in
/// the table.
pub(crate) struct Refusals {
    places: Mutex<Vec<Option<(Key, Refused)>>>,
}

impl Default for Refusals {
    fn default() -> Self {
        Self { places: Mutex::new(vec![None; MAX_REFUSALS]) }
    }
}

impl Refusals {
    /// Remembers a refusal. If another URL has the same entry in the table, overwrites the refusal
    /// of the other URL.
    pub(crate) fn remember(&self, url: &CacheKey, refused: Refused) {
        self.with(url, |place| *place = Some((url.hash, refused)));
    }

    pub(crate) fn forget(&self, url: &CacheKey) {
        self.with(url, |place| *place = place.filter(|(key, _)| *key != url.hash));
    }

    /// Returns why the last response of the URL was not stored. Returns `None` if it was stored, or
    /// if the entry was overwritten.
    pub(crate) fn last(&self, url: &CacheKey) -> Option<Refused> {
        self.with(url, |place| {
            place.filter(|(key, _)| *key == url.hash).map(|(_, refused)| refused)
        })
    }

    /// Returns true if the next response of the URL can probably answer only its own request. Other
    /// requests then need not wait for it. `now` is a time on the steady clock.
    pub(crate) fn expect_for_one(
        &self,
        url: &CacheKey,
        has_authorization: bool,
        now: WallTime,
    ) -> bool {
        self.last(url).is_some_and(|refused| {
            now.0.saturating_sub(refused.at.0) < EXPECTED_FOR
                && refused.is_for_one(has_authorization)
        })
    }

    fn with<T>(&self, url: &CacheKey, act: impl FnOnce(&mut Option<(Key, Refused)>) -> T) -> T {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let number = u16::from_le_bytes([url.hash.0[0], url.hash.0[1]]);
        act(&mut places[usize::from(number) % MAX_REFUSALS])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16) -> Refused {
        Refused { status, at: WallTime::from_seconds(7), why: NotKept::TooLarge }
    }

    #[test]
    fn the_last_answer_is_remembered_until_one_is_kept() {
        let (refusals, url) = (Refusals::default(), CacheKey::new("http://a.test/"));
        assert_eq!(refusals.last(&url), None);
        refusals.remember(&url, refused(200));
        refusals.remember(&url, refused(404));
        assert_eq!(refusals.last(&url), Some(refused(404)));
        refusals.forget(&url);
        assert_eq!(refusals.last(&url), None);
    }

    #[test]
    fn a_private_response_is_expected_for_some_seconds() {
        let (refusals, url) = (Refusals::default(), CacheKey::new("http://a.test/"));
        let expect = |status, why, has_authorization, seconds: u64| {
            let at = WallTime::from_seconds(100);
            refusals.remember(&url, Refused { status, at, why: NotKept::Rule(why) });
            let now = WallTime::from_seconds(100 + seconds);
            refusals.expect_for_one(&url, has_authorization, now)
        };
        use NotStoredReason::{Authorization, Private, RequestNoStore};
        assert!(expect(200, Private, false, 9) && expect(404, Private, false, 0));
        assert!(!expect(200, Private, false, 10) && !expect(503, Private, false, 0));
        assert!(expect(200, Authorization, true, 0) && !expect(200, Authorization, false, 0));
        assert!(!expect(200, RequestNoStore, false, 0));
    }

    #[test]
    fn another_url_in_the_same_place_is_never_mistaken_for_it() {
        let (refusals, url) = (Refusals::default(), CacheKey::new("http://a.test/"));
        let mut other = CacheKey::new("http://b.test/");
        other.hash.0[..2].copy_from_slice(&url.hash.0[..2]);
        refusals.remember(&url, refused(200));
        assert_eq!(refusals.last(&other), None);
        refusals.forget(&other);
        assert_eq!(refusals.last(&url), Some(refused(200)));
        refusals.remember(&other, refused(404));
        assert_eq!(refusals.last(&url), None);
    }
}
