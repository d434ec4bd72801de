//! The store as the proxy uses it: requests with a callback, waited for without blocking a worker.
//! A store that is busy, slow or broken costs hits and nothing else.

use crate::cache::purge::Scope;
use crate::cache::stored::{CacheKey, Entry};
use crate::cache::stored_form::decode;
use crate::cache::unconfirmed_removals::UnconfirmedRemovals;
use crate::core::counters::{Counter, Counters};
use bytes::Bytes;
use foxy_store::{AbsentReason, Answer, Key, PlacementHint, Record};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use xxhash_rust::xxh3::xxh3_128;

/// Takes a store's answer; called on any thread.
pub type Reply = Box<dyn FnOnce(Answer) + Send>;

/// A store, whatever it is made of. Calls return at once; the reply comes later, or is dropped
/// unused when the store has ended.
pub trait ObjectStore: Send + Sync {
    /// Asks for a record.
    fn get(&self, key: Key, reply: Reply);
    /// Stores a record.
    fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply);
    /// Forgets a record, durably.
    fn remove(&self, key: Key, reply: Reply);
}

/// Body bytes in one record; larger bodies are stored in parts of this size.
pub const PART: usize = foxy_store::settings::RECORD_BODY_LIMIT;

/// How many times as long an answer that has begun waits for the store.
const TIMES_WITHIN_AN_ANSWER: u32 = 10;

/// Records that may be read at a time, or have been read and wait for their worker: as many as the
/// budget has room for, but enough to keep disks busy.
const READS: (usize, usize) = (8, 128);

/// The key of one part of a body. The fill's random number is in it, so parts of two fills never
/// mix.
pub fn part_key(object: Key, fill: u64, number: u64) -> Key {
    let mut text = [0; 32];
    text[..16].copy_from_slice(&object.0);
    text[16..24].copy_from_slice(&fill.to_le_bytes());
    text[24..].copy_from_slice(&number.to_le_bytes());
    Key(xxh3_128(&text).to_le_bytes())
}

/// Why it is not known what a store has: it was too busy to say, or too slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Silent;

/// A store with the patience that clients have.
#[derive(Clone)]
pub(crate) struct Storage {
    store: Arc<dyn ObjectStore>,
    patience: Duration,
    negative_lifetime: u64,
    doubts: Arc<UnconfirmedRemovals>,
    /// Places for records that are read.
    reads: Arc<Semaphore>,
}

impl Storage {
    /// Records that are read take about `budget` bytes.
    pub(crate) fn new(
        store: Arc<dyn ObjectStore>,
        patience: Duration,
        negative_lifetime: u64,
        budget: usize,
    ) -> Self {
        let reads = Arc::new(Semaphore::new((budget / PART).clamp(READS.0, READS.1)));
        Self { store, patience, negative_lifetime, doubts: Arc::default(), reads }
    }

    /// What is stored under `key`, if no removal of it is in doubt.
    ///
    /// # Errors
    /// [`Silent`]: the store does not say it in time.
    pub(crate) async fn entry(
        &self,
        key: &CacheKey,
        counters: &Counters,
    ) -> Result<Option<Entry>, Silent> {
        self.entry_within(self.patience, key, counters).await
    }

    /// The same for an answer that has begun.
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
    ) -> Result<Option<Entry>, Silent> {
        if !self.doubts.believes(key.hash) {
            return Ok(None);
        }
        let Some(record) = self.record(patience, key.hash, counters).await? else {
            return Ok(None);
        };
        if !self.doubts.believes(key.hash) {
            return Ok(None);
        }
        Ok(decode(key, &record.head, record.body, self.negative_lifetime))
    }

    /// One part of a body, however long that takes.
    pub(crate) async fn part(&self, key: Key) -> Option<Bytes> {
        match self.ask(key).await {
            Ok(Answer::Found(record)) => Some(record.body),
            _ => None,
        }
    }

    /// How long an answer waits for a part. One that has `begun` waits longer: all that is left
    /// besides is to ask the origin for the rest, and without a strong validator to be cut.
    pub(crate) fn patience_for_part(&self, begun: bool) -> Duration {
        if begun { TIMES_WITHIN_AN_ANSWER * self.patience } else { self.patience }
    }

    /// Asks; whoever does not want the answer any more drops the receiver.
    fn ask(&self, key: Key) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        self.store.get(key, Box::new(move |answer| drop(sender.send(answer))));
        receiver
    }

    async fn record(
        &self,
        patience: Duration,
        key: Key,
        counters: &Counters,
    ) -> Result<Option<Record>, Silent> {
        let answer = async {
            let _place = self.reads.acquire().await.ok()?;
            self.ask(key).await.ok()
        };
        let Ok(answer) = tokio::time::timeout(patience, answer).await else {
            counters.add(Counter::StoreTimeouts, 1);
            return Err(Silent);
        };
        match answer {
            Some(Answer::Found(record)) => Ok(Some(record)),
            Some(Answer::Absent(AbsentReason::Busy)) | None => Err(Silent),
            Some(_) => Ok(None),
        }
    }

    /// Stores a record; the answer is counted when it comes. One in the place of an older record of
    /// the URL `replaces`, and refused, has that forgotten: it does not answer again only because
    /// the newer one could not be kept.
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

    /// Stores a part of a body; the receiver learns whether it was.
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

    /// Forgets a record of `url`: from now on it is not found, whatever the store makes of it.
    /// Whoever needs to know that it is gone for good waits for the receiver.
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

    /// What must be purged for nothing to come back that the store has not confirmed to have
    /// forgotten.
    pub(crate) fn in_doubt(&self) -> Vec<Scope> {
        self.doubts.left()
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }
}

impl ObjectStore for foxy_store::StoreHandle {
    fn get(&self, key: Key, reply: Reply) {
        Self::get(self, key, reply);
    }

    fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply) {
        Self::put(self, key, record, hint, reply);
    }

    fn remove(&self, key: Key, reply: Reply) {
        Self::remove(self, key, reply);
    }
}
