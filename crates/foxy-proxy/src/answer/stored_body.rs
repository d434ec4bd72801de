//! Sends stored bodies. If a client accepts nothing for a moment, a body that is one record of the
//! store leaves memory. The proxy reads the record again later. A large body is read in parts of 1
//! MiB, and requests for the same part share one read.

use crate::cache::shared_parts::{HeldPart, NoPart};
use crate::cache::{CacheKey, Cached, Entry, PART, PartKeys, Stored, StoredBody};
use crate::client::Sender;
use crate::core::Counter;
use crate::core::byte_budget::HeldBytes;
use crate::request::{Aborted, Answered, ClientTook, SendFailure, UnsentRest};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_rules::{Multipart, Span};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_128;

/// A body of up to this many bytes stays in memory until it is sent, because the request itself
/// uses about as much memory.
pub(crate) const SMALL_BODY_BYTES: usize = 16 << 10;

/// Longest time for which bytes of a body stay in memory while the client accepts nothing.
const HOLD_TIME: Duration = Duration::from_secs(1);

/// Like [`HOLD_TIME`], for times when the proxy already holds much memory for slow clients.
const HOLD_TIME_WHILE_SCARCE: Duration = Duration::from_millis(100);

pub(crate) enum StoredBodySource<'a> {
    Whole(WholeBody<'a>),
    Parts(BodyInParts),
}

impl<'a> StoredBodySource<'a> {
    /// Takes the body out of `stored`. The returned value can then free the memory of the body
    /// while the client accepts nothing.
    pub(crate) fn of(worker: &'a Worker, stored: Arc<Stored>) -> Self {
        match &stored.body {
            StoredBody::Whole(body) => Self::Whole(WholeBody {
                worker,
                key: stored.key.clone(),
                length: body.len(),
                body: Some(body.clone()),
                digest: None,
            }),
            StoredBody::Parts { fill } => Self::Parts(BodyInParts(PartKeys {
                object: stored.object(),
                fill: *fill,
                length: stored.length,
            })),
        }
    }

    pub(crate) async fn send(
        &mut self,
        worker: &Worker,
        sender: &mut Sender<'_>,
        rest: UnsentRest,
    ) -> Result<(), SendFailure> {
        match self {
            Self::Whole(body) => body.send(sender, rest).await,
            Self::Parts(body) => body.send(worker, sender, rest).await,
        }
    }

    /// Sends all ranges of a multipart answer. `key` is the key of the stored response.
    pub(crate) async fn send_ranges(
        &mut self,
        worker: &Worker,
        sender: &mut Sender<'_>,
        key: &CacheKey,
        layout: &Multipart,
        answered: Answered,
    ) -> Result<(), SendFailure> {
        for (head, span) in layout.parts() {
            let rest = UnsentRest { at: span.first, end: span.last + 1, opened: true, answered };
            sender.body(Bytes::copy_from_slice(head)).await?;
            let sent = self.send(worker, sender, rest).await;
            if sent.as_ref().is_err_and(SendFailure::is_loss) {
                // The client has already received the beginning of the answer. So the proxy aborts
                // the answer. Otherwise the client would not notice that the answer is incomplete.
                if let Self::Parts(_) = self {
                    worker.shared.cache.forget(key);
                }
                return Err(SendFailure::Aborted(Aborted::Source));
            }
            sent?;
        }
        Ok(sender.body(layout.end().into()).await?)
    }
}

/// A body that is stored in one record. `body` is `None` while the client accepts no bytes.
pub(crate) struct WholeBody<'a> {
    worker: &'a Worker,
    key: Bytes,
    length: usize,
    body: Option<Bytes>,
    digest: Option<u128>,
}

impl WholeBody<'_> {
    async fn send(
        &mut self,
        sender: &mut Sender<'_>,
        mut rest: UnsentRest,
    ) -> Result<(), SendFailure> {
        let at = |at: u64| usize::try_from(at).unwrap_or(self.length);
        let (mut from, end) = (at(rest.at), at(rest.end));
        while from < end {
            let Some(body) = self.read().await else {
                self.worker.counters.add(Counter::LostParts, 1);
                rest.at = from as u64;
                return Err(if rest.opened {
                    SendFailure::RestGone(rest)
                } else {
                    SendFailure::BodyGone
                });
            };
            let mut left = body.slice(from..end);
            self.body = Some(body);
            let held = RefCell::new(None);
            let taken = sender.part(&mut left, || self.patience(&mut held.borrow_mut())).await?;
            (from, rest.opened) = (end - left.len(), true);
            drop(left);
            if taken == ClientTook::Partly {
                self.let_go();
                drop(held);
                sender.flush().await?;
                sender.writable().await?;
            }
        }
        Ok(sender.flush().await?)
    }

    /// Returns how long the body may stay in memory while the client accepts nothing.
    fn patience(&self, held: &mut Option<HeldBytes>) -> Duration {
        let waiting = &self.worker.shared.waiting;
        if held.is_none() {
            *held = waiting.take(self.length);
        }
        match held {
            _ if self.length <= SMALL_BODY_BYTES => self.worker.settings().client_write,
            None => Duration::ZERO,
            Some(_) if waiting.is_scarce() => HOLD_TIME_WHILE_SCARCE,
            Some(_) => HOLD_TIME,
        }
    }

    fn let_go(&mut self) {
        if self.length > SMALL_BODY_BYTES
            && let Some(body) = self.body.take()
        {
            self.digest.get_or_insert_with(|| xxh3_128(&body));
            self.worker.counters.add(Counter::BodiesLetGo, 1);
        }
    }

    async fn read(&mut self) -> Option<Bytes> {
        if let Some(body) = self.body.take() {
            return Some(body);
        }
        let (cache, key) = (&self.worker.shared.cache, CacheKey::new(self.key.clone()));
        if let Some(Cached::Response(stored)) = cache.held(&key)
            && let Some(body) = self.same_body(&stored)
        {
            return Some(body);
        }
        match cache.storage()?.entry_for_answer(&key, &self.worker.counters).await {
            Some(Entry::Response(stored)) => self.same_body(&stored),
            _ => None,
        }
    }

    fn same_body(&self, found: &Stored) -> Option<Bytes> {
        match &found.body {
            StoredBody::Whole(body) if Some(xxh3_128(body)) == self.digest => Some(body.clone()),
            StoredBody::Whole(_) | StoredBody::Parts { .. } => None,
        }
    }
}

/// A body that is stored in parts of 1 MiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyInParts(pub(crate) PartKeys);

impl BodyInParts {
    /// Returns the body of `stored`. Returns `None` if one record contains the whole body.
    pub(crate) fn of(stored: &Stored) -> Option<Self> {
        stored.part_keys().map(Self)
    }

    /// Returns whether the cache seems to have all bytes of `span`. Reads none of them.
    pub(crate) fn has(self, worker: &Worker, span: Span) -> bool {
        let cache = &worker.shared.cache;
        let Some(storage) = cache.storage() else { return false };
        (span.first / PART as u64..=span.last / PART as u64).all(|number| {
            let key = self.0.key(number);
            cache.memory.part(key).is_some() || !storage.lacks(key)
        })
    }

    /// Sends bytes of a body that is stored in parts of 1 MiB.
    pub(crate) async fn send(
        self,
        worker: &Worker,
        sender: &mut Sender<'_>,
        rest: UnsentRest,
    ) -> Result<(), SendFailure> {
        let sent = self.send_stored(worker, sender, rest).await;
        if sent.as_ref().is_err_and(SendFailure::is_loss) {
            worker.counters.add(Counter::LostParts, 1);
        }
        sent
    }

    /// Sends the unsent bytes `rest`, up to the first part (1 MiB of the body) that is not stored.
    /// If the head of the answer is not sent yet, first reads a part. If that part is missing, the
    /// proxy can still choose another answer.
    pub(crate) async fn send_stored(
        self,
        worker: &Worker,
        sender: &mut Sender<'_>,
        mut rest: UnsentRest,
    ) -> Result<(), SendFailure> {
        let parts = &worker.shared.parts;
        let patience = || if parts.is_full() { HOLD_TIME_WHILE_SCARCE } else { HOLD_TIME };
        let mut nothing_sent = true;
        while rest.at < rest.end {
            let Some(part) = self.read(worker, rest.at / PART as u64, rest.opened).await else {
                return Err(if nothing_sent {
                    SendFailure::BodyGone
                } else {
                    SendFailure::RestGone(rest)
                });
            };
            let mut left = wanted_of(part.bytes(), &rest);
            let stop = rest.at + left.len() as u64;
            (nothing_sent, rest.opened) = (false, true);
            let taken = sender.part(&mut left, patience).await?;
            rest.at = stop - left.len() as u64;
            drop((left, part));
            if taken == ClientTook::Partly {
                sender.flush().await?;
                sender.writable().await?;
            }
        }
        Ok(sender.flush().await?)
    }

    /// Returns a whole part (1 MiB) of the body. If another request is sending this part, shares
    /// its copy. Otherwise reads the part from memory or from the store. If `begun`, the client has
    /// already received the beginning of the answer. The function then waits longer for the store.
    async fn read(self, worker: &Worker, number: u64, begun: bool) -> Option<HeldPart> {
        let memory = &worker.shared.cache.memory;
        let storage = worker.shared.cache.storage()?;
        let key = self.0.key(number);
        let read = async {
            if let Some(part) = memory.part(key) {
                worker.counters.add(Counter::MemoryParts, 1);
                return Some(part);
            }
            worker.counters.add(Counter::StoreParts, 1);
            storage.part(key).await
        };
        let patience = storage.patience_for_part(begun);
        let part = match worker.shared.parts.get(key, patience, read).await {
            Ok(part) => part,
            Err(NoPart::Absent) => return None,
            Err(NoPart::Late) => {
                worker.counters.add(Counter::StoreTimeouts, 1);
                return None;
            }
        };
        memory.offer_part(key, part.bytes());
        let expected = (PART as u64).min(self.0.length - number * PART as u64);
        (part.bytes().len() as u64 == expected).then_some(part)
    }
}

fn wanted_of(part: &Bytes, rest: &UnsentRest) -> Bytes {
    let before = rest.at / PART as u64 * PART as u64;
    let position =
        |at: u64| usize::try_from(at - before).map_or(part.len(), |at| at.min(part.len()));
    part.slice(position(rest.at)..position(rest.end))
}
