//! The cold tier as the proxy sees it: records that were asked for again, in a store on other
//! machines. Nodes share the cold tier, and records there survive the loss of a node's disk. No
//! request waits for it longer than its time limit.

use crate::cache::epoch::Watch;
use crate::cache::purge::{PurgeBook, Stamp, Verdict};
use crate::cache::stored::{CacheKey, Entry, Placement, Stored, StoredBody, VaryList};
use crate::cache::stored_form::{decode, encode_response, encode_varies};
use crate::cache::{Cache, Cached, Found, Target};
use crate::core::outcome::ColdMiss;
use crate::core::rules::Policies;
use crate::core::{Counters, PurgeDoubt, View};
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::Headers;
use foxy_rules::Vary;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

pub use foxy_store::{Key, KeyMap, Record};

/// The result of an offer to the cold tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferEnd {
    /// The cold tier has the record, or will never take it.
    Settled,
    /// The cold tier has no room now, but may take the record later.
    NoRoom,
}

/// Callback that receives a record of the cold tier. It may be called on any thread.
pub type ColdReply = Box<dyn FnOnce(Result<ColdRecord, ColdMiss>) + Send>;

/// A record that was read.
pub struct ColdRecord {
    /// The record.
    pub record: Record,
    /// Whether this process wrote the record, and has not removed it since. Otherwise a newer
    /// response may exist, so the origin must validate the response.
    pub is_own: bool,
}

/// The cold tier. The methods return without waiting.
pub trait ColdStore: Send + Sync {
    /// Offers a record. The cold tier may refuse it.
    fn offer(&self, key: Key, record: Record) -> OfferEnd;
    /// Removes a record, because a newer response replaces it or the response was removed.
    fn remove(&self, key: Key);
    /// Whether a read may find a record under this key.
    fn has(&self, key: Key) -> bool;
    /// Reads a record. If the callback is dropped without a call, there is no record.
    fn get(&self, key: Key, reply: ColdReply);
    /// Returns all known purge lists that concern the records of another node, whose list has the
    /// number `era`.
    fn purges_of(&self, era: u64) -> Vec<EarlierPurges>;
    /// Longest time for which a request waits for a record.
    fn patience(&self) -> Duration;
}

/// A purge list, and the number of the last purge in it that is older than every record of a node.
pub struct EarlierPurges {
    /// The purge list.
    pub book: Arc<PurgeBook>,
    /// The number of the purge.
    pub moment: u64,
}

/// A cold tier, and the policies that give its responses their lifetimes.
#[derive(Clone)]
pub(crate) struct ColdTier {
    pub(crate) store: Arc<dyn ColdStore>,
    pub(crate) policies: Policies,
}

/// Largest body of a response in the cold tier. Larger bodies have several records.
const MAX_BODY_BYTES: usize = foxy_store::settings::RECORD_BODY_LIMIT;

/// Shortest lifetime of a response in the cold tier. The write would not pay for shorter lifetimes.
const MIN_LIFETIME_SECONDS: u64 = 600;

/// Number of hexadecimal digits of a SHA-256 digest in a URL.
const DIGEST_DIGITS: usize = 64;

impl Stored {
    fn with_key(self, key: &CacheKey) -> Self {
        Self { key: key.text.clone(), ..self }
    }

    /// Whether the response comes from the cold tier and was not validated yet.
    pub(crate) fn is_from_cold(&self) -> bool {
        self.doubt == Some(PurgeDoubt::ColdTier)
    }
}

impl Cache {
    pub(crate) const fn has_cold(&self) -> bool {
        self.cold.is_some()
    }

    /// Offers a response to the cold tier after its first hit. If the cold tier has no room, offers
    /// the response again after later hits. Does nothing if a newer response may exist.
    pub(crate) fn offer(&self, base: &CacheKey, stored: &Arc<Stored>) {
        let Some(cold) = &self.cold else { return };
        let StoredBody::Whole(body) = &stored.body else { return };
        let is_worth_it = body.len() <= MAX_BODY_BYTES && stored.lifetime >= MIN_LIFETIME_SECONDS;
        if !is_worth_it || !stored.offered.is_due() {
            return;
        }
        let key = CacheKey::new(stored.key.clone());
        let list = match key.hash == base.hash {
            true => None,
            false if !key.is_variant_of(base) => return,
            false => match Vary::of(&View(&stored.head.headers)) {
                Ok(vary) => base.list_of(&key, vary),
                Err(_) => return,
            },
        };
        // Under this lock, no newer response can enter the cache.
        let _group = self.groups.lock(base.hash);
        let newest = self.memory.get(key.hash);
        if !matches!(newest, Some(Cached::Response(newest)) if Arc::ptr_eq(&newest, stored)) {
            return;
        }
        let list = list.filter(|_| !cold.store.has(base.hash)).map(|list| {
            let record = Record { head: encode_varies(base, &list), body: Bytes::new() };
            cold.store.offer(base.hash, record)
        });
        let record = Record { head: encode_response(stored), body: body.clone() };
        let ends = [list.unwrap_or(OfferEnd::Settled), cold.store.offer(key.hash, record)];
        if !ends.contains(&OfferEnd::NoRoom) {
            stored.offered.settle();
        }
    }

    /// Offers a response that was just stored, if its URL contains the digest of its content.
    pub(super) fn offer_by_digest(&self, base: &CacheKey, key: &CacheKey) {
        if self.cold.is_some()
            && is_named_by_digest(&base.text)
            && let Some(Cached::Response(stored)) = self.memory.get(key.hash)
        {
            self.offer(base, &stored);
        }
    }

    /// Removes a record from the cold tier, because the response is outdated or removed.
    pub(super) fn forget_cold(&self, key: Key) {
        if let Some(cold) = &self.cold {
            cold.store.remove(key);
        }
    }

    /// Removes the record that [`Self::in_cold`] would find, because the proxy now asks the origin
    /// for another response.
    pub(crate) fn outdate_cold(&self, base: &CacheKey, list: Option<&VaryList>, request: &Headers) {
        let variant = |list: &VaryList| base.variant(list, &list.vary.key(&View(request))).hash;
        self.forget_cold(list.map_or(base.hash, variant));
    }

    /// Searches the cold tier for a response to `request`. If this process wrote the response
    /// there, stores it on this node again. Otherwise the response must be validated. `list` is the
    /// Vary list that the look-up in the store found. Returns `None` if the cold tier has no
    /// response.
    pub(crate) async fn in_cold(
        &self,
        base: &CacheKey,
        watch: &Watch,
        list: Option<&VaryList>,
        request: &Headers,
        counters: &Arc<Counters>,
    ) -> Result<Option<Found>, ColdMiss> {
        let Some(cold) = &self.cold else { return Ok(None) };
        let variant = |list: &VaryList| base.variant(list, &list.vary.key(&View(request)));
        let mut key = list.map_or_else(|| base.clone(), variant);
        let (mut found_list, mut is_own) = (None, true);
        loop {
            if !cold.store.has(key.hash) {
                return Ok(None);
            }
            let found = read(&*cold.store, key.hash).await?;
            is_own &= found.is_own;
            match decode(&key, &found.record.head, found.record.body, &cold.policies) {
                Some(Entry::Response(stored)) if is_own => {
                    let placement =
                        Placement { key, has_new_list: found_list.is_some(), list: found_list };
                    let found = self.thaw(cold, (base, placement), *stored, watch, counters);
                    return found.map(Some);
                }
                Some(Entry::Response(stored)) => {
                    if self.verdict(&*cold.store, &stored) == Verdict::Gone {
                        return Err(ColdMiss::Purged);
                    }
                    // Under the old list, this node may have variants that were removed.
                    let renew = |list: VaryList| variant(&VaryList { salt: self.draw(), ..list });
                    let key = found_list.map_or(key, renew);
                    let doubtful = stored.in_doubt(PurgeDoubt::ColdTier).with_key(&key);
                    return Ok(Some(Found::Response(Arc::new(doubtful), key)));
                }
                Some(Entry::Varies(_, found)) if list.is_none() && found_list.is_none() => {
                    key = variant(&found);
                    found_list = Some(found);
                }
                _ => return Err(ColdMiss::Damaged),
            }
        }
    }

    /// Applies the purges to a response that this process wrote. Stores the response on this node
    /// if it may answer without validation.
    fn thaw(
        &self,
        cold: &ColdTier,
        (base, placement): (&CacheKey, Placement),
        stored: Stored,
        watch: &Watch,
        counters: &Arc<Counters>,
    ) -> Result<Found, ColdMiss> {
        let key = placement.key.clone();
        let changed = match self.verdict(&*cold.store, &stored) {
            Verdict::Gone => return Err(ColdMiss::Purged),
            Verdict::InDoubt(doubt) => stored.in_doubt(doubt),
            Verdict::Stale { since } => stored.stale_since(since, clock::steady()),
            Verdict::Untouched => {
                let stored = Arc::new(stored.begun(watch.epoch.begun));
                stored.offered.settle();
                let target = Target::StoreFromCold;
                self.add_to(target, (base, &placement), &stored, watch.found(), counters);
                return Ok(Found::Response(stored, key));
            }
        };
        Ok(Found::Response(Arc::new(changed), key))
    }

    /// Decides how all known purges affect a response from the cold tier. For a response of another
    /// node, each purge counts that did not certainly come before the fetch.
    fn verdict(&self, cold: &dyn ColdStore, stored: &Stored) -> Verdict {
        let Stamp { era, moment } = stored.begun;
        if era == self.purges.era() {
            return self.purges.judge(stored);
        }
        let judge = |list: EarlierPurges| {
            // The other node may have purged since its list was read.
            let known = moment.min(list.book.latest());
            let moment = if list.book.era() == era { known } else { list.moment };
            let begun = Stamp { era: list.book.era(), moment };
            list.book.judge(&stored.clone().begun(begun))
        };
        cold.purges_of(era).into_iter().map(judge).fold(Verdict::Untouched, strongest)
    }
}

fn strongest(one: Verdict, other: Verdict) -> Verdict {
    match (one, other) {
        (Verdict::Gone, _) | (_, Verdict::Gone) => Verdict::Gone,
        (Verdict::InDoubt(doubt), _) | (_, Verdict::InDoubt(doubt)) => Verdict::InDoubt(doubt),
        (Verdict::Stale { since: one }, Verdict::Stale { since: other }) => {
            Verdict::Stale { since: one.min(other) }
        }
        (Verdict::Stale { since }, _) | (_, Verdict::Stale { since }) => Verdict::Stale { since },
        (Verdict::Untouched, Verdict::Untouched) => Verdict::Untouched,
    }
}

async fn read(store: &dyn ColdStore, key: Key) -> Result<ColdRecord, ColdMiss> {
    let (sender, receiver) = oneshot::channel();
    store.get(key, Box::new(move |answer| drop(sender.send(answer))));
    match timeout(store.patience(), receiver).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(ColdMiss::Away),
        Err(_) => Err(ColdMiss::Slow),
    }
}

/// Whether a URL contains a SHA-256 digest, as in `/blobs/sha256:…`. Its response never changes.
fn is_named_by_digest(url: &[u8]) -> bool {
    let is_digest = |rest: &[u8]| {
        rest.get(..DIGEST_DIGITS).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let names: [&[u8]; 2] = [b"sha256:", b"sha256%3A"];
    let found = |name: &[u8]| {
        let place = url.windows(name.len()).position(|part| part.eq_ignore_ascii_case(name));
        place.is_some_and(|place| is_digest(&url[place + name.len()..]))
    };
    names.into_iter().any(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::memory::MemoryTier;
    use crate::cache::purge::Purges;
    use foxy_base::WallTime;
    use foxy_http::ResponseHead;
    use foxy_rules::{Policy, StoredTimes};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A cold tier that refuses a number of offers, because it has no room.
    struct CrowdedTier {
        refusals: AtomicU32,
        offers: AtomicU32,
    }

    impl ColdStore for CrowdedTier {
        fn offer(&self, _: Key, _: Record) -> OfferEnd {
            let number = self.offers.fetch_add(1, Ordering::Relaxed);
            let has_room = number >= self.refusals.load(Ordering::Relaxed);
            if has_room { OfferEnd::Settled } else { OfferEnd::NoRoom }
        }

        fn remove(&self, _: Key) {}

        fn has(&self, _: Key) -> bool {
            false
        }

        fn get(&self, _: Key, _: ColdReply) {}

        fn purges_of(&self, _: u64) -> Vec<EarlierPurges> {
            Vec::new()
        }

        fn patience(&self) -> Duration {
            Duration::ZERO
        }
    }

    #[test]
    fn a_hot_response_is_offered_again_when_the_cold_tier_had_no_room() {
        for (refusals, offers) in [(0, 1), (2, 3), (u32::MAX, 8)] {
            let refusals = AtomicU32::new(refusals);
            let tier = Arc::new(CrowdedTier { refusals, offers: AtomicU32::new(0) });
            let store = Arc::clone(&tier) as _;
            let cold = Some(ColdTier { store, policies: Policies::default() });
            let book = Arc::clone(&Purges::in_memory().book);
            let memory = MemoryTier::new(1 << 20);
            let cache = Cache::new(memory, (1 << 20, 1 << 20), None, book, cold, 1);
            let url = CacheKey::new("http://a.test/");
            let times = StoredTimes { received: WallTime(0), initial_age: 0 };
            let (head, body) = (ResponseHead::new(200), StoredBody::Whole(Bytes::new()));
            let policy = Policy::default();
            let stored = Stored::new(url.text.clone(), &head, policy, times, 0, body);
            let stored = Arc::new(Stored { lifetime: MIN_LIFETIME_SECONDS, ..stored });
            cache.memory.put(url.hash, Cached::Response(Arc::clone(&stored)));
            (0..200).for_each(|_| cache.offer(&url, &stored));
            assert_eq!(tier.offers.load(Ordering::Relaxed), offers, "no offers without end");
        }
    }

    #[test]
    fn a_digest_in_a_url_names_its_content() {
        let digits = "0a".repeat(32);
        for (url, expected) in [
            (format!("https://a.test/v2/x/blobs/sha256:{digits}"), true),
            (format!("https://a.test/v2/x/blobs/sha256%3a{digits}?x"), true),
            (format!("https://a.test/v2/x/blobs/sha256:{}", &digits[1..]), false),
            (format!("https://a.test/{digits}"), false),
            ("https://a.test/sha256:".into(), false),
        ] {
            assert_eq!(is_named_by_digest(url.as_bytes()), expected, "{url}");
        }
    }
}
