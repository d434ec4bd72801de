//! Stored bodies of one record, sent without holding them for a client that takes nothing: within
//! the budget of what waits a body is held for a moment; then it is dropped, and read again when
//! the client goes on.

use crate::cache::memory::Cached;
use crate::cache::stored::{CacheKey, Entry, Stored, StoredBody};
use crate::client::sender::Sender;
use crate::core::counters::Counter;
use crate::core::waiting::HeldBytes;
use crate::request::sent::ClientTook;
use crate::request::sent::{Short, UnsentRest};
use crate::worker::Worker;
use bytes::Bytes;
use std::cell::RefCell;
use std::time::Duration;
use xxhash_rust::xxh3::xxh3_128;

/// A body up to this length is not read again: a request takes as much in other ways.
pub(crate) const SMALL: usize = 16 << 10;

/// How long a body is held for a client that takes nothing.
const HELD: Duration = Duration::from_secs(1);

/// The same while the budget is scarce.
const HELD_WHILE_SCARCE: Duration = Duration::from_millis(100);

/// A body that may be let go.
pub(crate) struct WholeBody<'a> {
    worker: &'a Worker,
    key: Bytes,
    length: usize,
    body: Option<Bytes>,
    /// Tells whether what is read again is the same body.
    digest: Option<u128>,
}

impl<'a> WholeBody<'a> {
    /// The body stored under the key text `key`.
    pub(crate) const fn new(worker: &'a Worker, key: Bytes, body: Bytes) -> Self {
        Self { worker, key, length: body.len(), body: Some(body), digest: None }
    }

    /// Sends what `rest` names. After the first wait for the client nothing else may hold the body.
    pub(crate) async fn send(
        &mut self,
        sender: &mut Sender<'_>,
        mut rest: UnsentRest,
    ) -> Result<(), Short> {
        let at = |at: u64| usize::try_from(at).unwrap_or(self.length);
        let (mut from, end) = (at(rest.at), at(rest.end));
        while from < end {
            let Some(body) = self.read().await else {
                self.worker.counters.add(Counter::LostParts, 1);
                rest.at = from as u64;
                return Err(if rest.opened { Short::Rest(rest) } else { Short::Gone });
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

    /// How long the body may be held from now on.
    fn patience(&self, held: &mut Option<HeldBytes>) -> Duration {
        let waiting = &self.worker.shared.waiting;
        if held.is_none() {
            *held = waiting.take(self.length);
        }
        match held {
            _ if self.length <= SMALL => self.worker.settings().client_write,
            None => Duration::ZERO,
            Some(_) if waiting.is_scarce() => HELD_WHILE_SCARCE,
            Some(_) => HELD,
        }
    }

    fn let_go(&mut self) {
        if self.length > SMALL
            && let Some(body) = self.body.take()
        {
            self.digest.get_or_insert_with(|| xxh3_128(&body));
            self.worker.counters.add(Counter::BodiesLetGo, 1);
        }
    }

    /// The body: as it is held, or once more from memory or store.
    async fn read(&mut self) -> Option<Bytes> {
        if let Some(body) = self.body.take() {
            return Some(body);
        }
        let (cache, key) = (&self.worker.shared.cache, CacheKey::new(self.key.clone()));
        if let Some(Cached::Response(stored)) = cache.held(&key)
            && let Some(body) = self.same(&stored)
        {
            return Some(body);
        }
        match cache.storage()?.entry_for_answer(&key, &self.worker.counters).await {
            Some(Entry::Response(stored)) => self.same(&stored),
            _ => None,
        }
    }

    /// The body of what was found, if it is this one.
    fn same(&self, found: &Stored) -> Option<Bytes> {
        match &found.body {
            StoredBody::Whole(body) if Some(xxh3_128(body)) == self.digest => Some(body.clone()),
            StoredBody::Whole(_) | StoredBody::Parts { .. } => None,
        }
    }
}
