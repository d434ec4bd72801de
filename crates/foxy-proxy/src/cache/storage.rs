//! The store as the proxy sees it. The *store* is the cache on disk. Each request to the store
//! passes a callback and never blocks a worker. If the store is busy, slow or broken, look-ups
//! count as misses, and the proxy still answers every request.

pub use crate::cache::part_keys::{PART, part_key};
use crate::cache::purge::Scope;
use crate::cache::stored::{CacheKey, Entry};
use crate::cache::stored_form::decode;
use crate::core::rules::Policies;
use crate::core::{Counter, Counters};
use bytes::Bytes;
use foxy_store::{AbsentReason, Answer, Key, KeyMap, PlacementHint, Record};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// Callback that receives the store's answer. The store may call it on any thread.
pub type Reply = Box<dyn FnOnce(Answer) + Send>;

/// A store of records on disk. The methods return without waiting. The store later passes its
/// answer to the callback `reply`. A store that has stopped drops `reply` and never calls it.
pub trait ObjectStore: Send + Sync {
    /// Reads a record.
    fn get(&self, key: Key, reply: Reply);
    /// Reads a record on the calling thread, if this needs little memory and no thread of the
    /// store. Otherwise returns `reply` as an error, and the caller must call [`Self::get`].
    fn get_here(&self, _key: Key, reply: Reply) -> Result<(), Reply> {
        Err(reply)
    }
    /// Returns true if the store certainly has no record under this key. Never waits.
    fn lacks(&self, _key: Key) -> bool {
        false
    }
    /// Returns true if [`Self::get_here`] may read from the disk on a thread that has a
    /// [`foxy_store::ThreadRing`] (an io_uring of the thread).
    fn is_for_rings(&self) -> bool {
        false
    }
    /// Stores a record.
    fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply);
    /// Removes a record durably.
    fn remove(&self, key: Key, reply: Reply);
}

const PATIENCE_FACTOR_FOR_BEGUN_ANSWERS: u32 = 10;

/// Lower and upper bound for the number of simultaneous reads. Between these bounds, the proxy
/// permits as many reads as parts (1 MiB each) fit in its memory budget.
const MIN_READS: usize = 8;
const MAX_READS: usize = 128;

/// The store did not answer a read, because it was too busy or too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoreSilent;

/// A store, and the longest time for which a request waits for its reply.
#[derive(Clone)]
pub(crate) struct Storage {
    store: Arc<dyn ObjectStore>,
    patience: Duration,
    policies: Policies,
    doubts: Arc<UnconfirmedRemovals>,
    reads: Arc<Semaphore>,
}

impl Storage {
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        patience: Duration,
        policies: Policies,
        budget: usize,
    ) -> Self {
        let reads = Arc::new(Semaphore::new((budget / PART).clamp(MIN_READS, MAX_READS)));
        Self { store, patience, policies, doubts: Arc::default(), reads }
    }

    /// Reads an entry. Returns `Ok(None)` if the store has no entry, or if the proxy has removed
    /// the entry and the store has not confirmed the removal yet.
    pub(crate) async fn entry(
        &self,
        key: &CacheKey,
        counters: &Counters,
    ) -> Result<Option<Entry>, StoreSilent> {
        self.entry_within(self.patience, key, counters).await
    }

    pub(crate) async fn entry_for_answer(
        &self,
        key: &CacheKey,
        counters: &Counters,
    ) -> Option<Entry> {
        self.entry_within(self.patience_for_part(true), key, counters).await.ok()?
    }

    async fn entry_within(
        &self,
        patience: Duration,
        key: &CacheKey,
        counters: &Counters,
    ) -> Result<Option<Entry>, StoreSilent> {
        if !self.doubts.believes(key.hash) {
            return Ok(None);
        }
        let Some(record) = self.record(patience, key.hash, counters).await? else {
            return Ok(None);
        };
        if !self.doubts.believes(key.hash) {
            return Ok(None);
        }
        Ok(decode(key, &record.head, record.body, &self.policies))
    }

    pub(crate) async fn part(&self, key: Key) -> Option<Bytes> {
        match self.ask(key).await {
            Ok(Answer::Found(record)) => Some(record.body),
            _ => None,
        }
    }

    /// Returns the longest time for which the proxy waits for a part of a stored body. It waits
    /// longer if the client has already received the beginning of the answer. Without the part, the
    /// proxy would have to fetch the rest from the origin or cut the answer off.
    pub(crate) fn patience_for_part(&self, begun: bool) -> Duration {
        if begun { PATIENCE_FACTOR_FOR_BEGUN_ANSWERS * self.patience } else { self.patience }
    }

    pub(crate) fn is_for_rings(&self) -> bool {
        self.store.is_for_rings()
    }

    /// Returns true if the store certainly has no entry under this key. Costs much less than
    /// [`Self::entry`].
    pub(crate) fn lacks(&self, key: Key) -> bool {
        self.store.lacks(key)
    }

    fn ask(&self, key: Key) -> oneshot::Receiver<Answer> {
        let (reply, receiver) = waiting();
        self.store.get(key, reply);
        receiver
    }

    /// Reads a record. If this thread can read the record itself, reads at once. Otherwise first
    /// waits until the number of reads in progress is below its limit.
    async fn ask_in_turn(&self, key: Key) -> Option<Answer> {
        let (reply, receiver) = waiting();
        if let Err(reply) = self.store.get_here(key, reply) {
            let _place = self.reads.acquire().await.ok()?;
            self.store.get(key, reply);
            return receiver.await.ok();
        }
        receiver.await.ok()
    }

    async fn record(
        &self,
        patience: Duration,
        key: Key,
        counters: &Counters,
    ) -> Result<Option<Record>, StoreSilent> {
        let Ok(answer) = tokio::time::timeout(patience, self.ask_in_turn(key)).await else {
            counters.add(Counter::StoreTimeouts, 1);
            return Err(StoreSilent);
        };
        match answer {
            Some(Answer::Found(record)) => Ok(Some(record)),
            Some(Answer::Absent(AbsentReason::Busy)) | None => Err(StoreSilent),
            Some(_) => Ok(None),
        }
    }

    /// Stores a record. If the old record under the key is outdated, `replaces` is the purge scope
    /// of its URL. If the store refuses the new record, this function removes the outdated record,
    /// so that it is not served again.
    pub(crate) fn put(
        &self,
        key: Key,
        record: Record,
        hint: PlacementHint,
        counters: &Arc<Counters>,
        replaces: Option<Scope>,
    ) {
        let (storage, counted) = (self.clone(), Arc::clone(counters));
        counters.add(Counter::StorePuts, 1);
        let doubt = self.doubts.about(key);
        let reply = Box::new(move |answer| {
            if answer == Answer::Stored {
                storage.doubts.settle(key, doubt);
                return;
            }
            counted.add(Counter::StoreRefusals, 1);
            if let Some(url) = replaces {
                drop(storage.remove(key, url));
            }
        });
        self.store.put(key, record, hint, reply);
    }

    pub(crate) fn put_part(
        &self,
        key: Key,
        body: Bytes,
        hint: PlacementHint,
    ) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let record = Record { head: Bytes::new(), body };
        self.store.put(key, record, hint, Box::new(move |answer| drop(sender.send(answer))));
        receiver
    }

    /// Removes a record of `url`. From now on, look-ups do not find the record. The returned
    /// receiver yields the store's answer when the removal is durable.
    pub(crate) fn remove(&self, key: Key, url: Scope) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let (doubts, doubt) = (Arc::clone(&self.doubts), self.doubts.raise(key, url));
        let reply = Box::new(move |answer| {
            if answer == Answer::Removed {
                doubts.settle(key, Some(doubt));
            }
            drop(sender.send(answer));
        });
        self.store.remove(key, reply);
        receiver
    }

    /// Returns the URLs, as purge scopes, of all removals that the store has not confirmed. The
    /// caller must purge these scopes before the process ends. Otherwise the next process could
    /// serve the removed responses.
    pub(crate) fn in_doubt(&self) -> Vec<Scope> {
        self.doubts.left()
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }
}

/// Returns a callback, and a receiver that yields the answer given to the callback.
fn waiting() -> (Reply, oneshot::Receiver<Answer>) {
    let (sender, receiver) = oneshot::channel();
    (Box::new(move |answer| drop(sender.send(answer))), receiver)
}

impl ObjectStore for foxy_store::StoreHandle {
    fn get(&self, key: Key, reply: Reply) {
        Self::get(self, key, reply);
    }

    fn get_here(&self, key: Key, reply: Reply) -> Result<(), Reply> {
        Self::get_here(self, key, reply)
    }

    fn lacks(&self, key: Key) -> bool {
        Self::lacks(self, key)
    }

    fn is_for_rings(&self) -> bool {
        Self::is_for_rings(self)
    }

    fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply) {
        Self::put(self, key, record, hint, reply);
    }

    fn remove(&self, key: Key, reply: Reply) {
        Self::remove(self, key, reply);
    }
}

/// Number of unconfirmed removals whose keys the proxy remembers. If there are more, the proxy no
/// longer uses any record of the store.
const MAX_UNCONFIRMED: usize = 64 << 10;

/// The number of an unconfirmed removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Doubt(u64);

/// Removals that the store has not confirmed. The proxy ignores the records under these keys,
/// because a busy store may still return the removed records. Before the process ends, these keys
/// must be purged.
#[derive(Default)]
struct UnconfirmedRemovals {
    state: Mutex<UnconfirmedState>,
}

#[derive(Debug, Default)]
struct UnconfirmedState {
    open: KeyMap<(Doubt, Scope)>,
    asked: u64,
    about_all: bool,
}

impl UnconfirmedRemovals {
    fn lock(&self) -> MutexGuard<'_, UnconfirmedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn raise(&self, key: Key, url: Scope) -> Doubt {
        let mut state = self.lock();
        state.asked += 1;
        let doubt = Doubt(state.asked);
        if state.open.len() < MAX_UNCONFIRMED || state.open.contains_key(&key) {
            state.open.insert(key, (doubt, url));
        } else {
            state.about_all = true;
        }
        doubt
    }

    fn about(&self, key: Key) -> Option<Doubt> {
        self.lock().open.get(&key).map(|(doubt, _)| *doubt)
    }

    fn believes(&self, key: Key) -> bool {
        let state = self.lock();
        !state.about_all && !state.open.contains_key(&key)
    }

    /// Forgets the unconfirmed removal `doubt`, because the store has confirmed it or has stored a
    /// newer record. If the same key was removed again later, the later removal stays unconfirmed.
    fn settle(&self, key: Key, doubt: Option<Doubt>) {
        let mut state = self.lock();
        if doubt.is_some() && state.open.get(&key).map(|(last, _)| *last) == doubt {
            state.open.remove(&key);
        }
    }

    /// Returns the URLs, as purge scopes, that the caller must purge before the process ends. The
    /// next process then ignores the records whose removal the store has not confirmed.
    fn left(&self) -> Vec<Scope> {
        let state = self.lock();
        if state.about_all {
            return vec![Scope::All];
        }
        let urls: HashSet<Scope> = state.open.values().map(|(_, url)| *url).collect();
        urls.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_store::Site;

    fn key(number: usize) -> Key {
        Key((number as u128).to_le_bytes())
    }

    fn url(number: usize) -> Scope {
        Scope::Url { key: key(number), site: Site(1) }
    }

    #[test]
    fn a_doubt_lasts_until_it_is_settled_itself() {
        let doubts = UnconfirmedRemovals::default();
        assert!(doubts.believes(key(1)));
        let first = doubts.raise(key(1), url(1));
        let second = doubts.raise(key(1), url(1));
        doubts.settle(key(1), Some(first));
        assert_eq!(doubts.left(), [url(1)]);
        assert!(
            !doubts.believes(key(1)),
            "an answer to an earlier request says nothing of a later one"
        );
        doubts.settle(key(1), None);
        assert!(!doubts.believes(key(1)));
        doubts.settle(key(1), Some(second));
        assert!(doubts.believes(key(1)) && doubts.about(key(1)).is_none());
        assert_eq!(doubts.left(), []);
    }

    #[test]
    fn too_many_doubts_are_doubts_about_everything() {
        let doubts = UnconfirmedRemovals::default();
        for number in 0..MAX_UNCONFIRMED {
            doubts.raise(key(number), url(1));
        }
        assert!(doubts.believes(key(MAX_UNCONFIRMED + 1)));
        assert_eq!(doubts.left(), [url(1)], "each URL once");
        doubts.raise(key(MAX_UNCONFIRMED), url(1));
        assert!(!doubts.believes(key(MAX_UNCONFIRMED + 1)));
        assert_eq!(doubts.left(), [Scope::All]);
    }
}
