//! Collects a body for the cache while it passes: whole if it is small, in parts as it comes if not.

use crate::cache::{Cache, site};
use crate::counters::Counter;
use crate::not_kept::NotKept;
use crate::storage::{PART, part_key};
use crate::stored::{CacheKey, StoredBody};
use crate::windows::Collected;
use crate::worker::Worker;
use bytes::{Bytes, BytesMut};
use foxy_store::{Answer, PlacementHint};
use std::collections::VecDeque;
use std::rc::Rc;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// Parts of one fill the store may owe an answer for. With more it is too slow for this response: clients do not wait
/// for it.
const PARTS_WAITING: usize = 16;

const STORE_REFUSED: Kept = Kept::No(NotKept::StoreRefused);

/// Whether a keeper still keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    /// For that reason.
    No(NotKept),
}

/// Collects a body for the cache: whole if it is small, in parts as it comes if not.
pub(crate) struct Keeper {
    worker: Rc<Worker>,
    key: CacheKey,
    hint: PlacementHint,
    fill: u64,
    collected: BytesMut,
    held: Collected,
    parts: u64,
    confirmed: u64,
    length: u64,
    waiting: VecDeque<oneshot::Receiver<Answer>>,
}

impl Keeper {
    pub(crate) fn new(worker: &Rc<Worker>, base: &CacheKey, key: &CacheKey) -> Self {
        Self {
            fill: worker.shared.cache.draw(),
            hint: PlacementHint { site: site(&base.text), ..PlacementHint::default() },
            worker: Rc::clone(worker),
            key: key.clone(),
            collected: BytesMut::new(),
            held: worker.shared.flights.collected(),
            parts: 0,
            confirmed: 0,
            length: 0,
            waiting: VecDeque::new(),
        }
    }

    fn cache(&self) -> &Cache {
        &self.worker.shared.cache
    }

    /// The fill's random number, and how many bytes of its body the store has confirmed to have.
    pub(crate) const fn confirmed_so_far(&self) -> (u64, u64) {
        (self.fill, self.confirmed * PART as u64)
    }

    pub(crate) fn is_in_parts(&self) -> bool {
        self.parts > 0
    }

    pub(crate) fn take(&mut self, data: &Bytes) -> Kept {
        self.length += data.len() as u64;
        if self.length > self.cache().object_limit {
            return Kept::No(NotKept::TooLarge);
        }
        if !self.held.take(data.len()) {
            self.worker.counters.add(Counter::StoreRefusals, 1);
            return STORE_REFUSED;
        }
        self.collected.extend_from_slice(data);
        while self.collected.len() > PART {
            let part = self.collected.split_to(PART).freeze();
            self.held.give_back(PART);
            if let Kept::No(reason) = self.put(part) {
                return Kept::No(reason);
            }
        }
        Kept::Yes
    }

    /// Hands a part to the store, and looks at what it has answered so far.
    fn put(&mut self, part: Bytes) -> Kept {
        let Some(storage) = self.cache().storage().cloned() else { return STORE_REFUSED };
        let hint = PlacementHint { size: self.length, ..self.hint };
        let key = part_key(self.key.hash, self.fill, self.parts);
        self.waiting.push_back(storage.put_part(key, part, hint));
        self.parts += 1;
        while let Some(oldest) = self.waiting.front_mut() {
            match oldest.try_recv() {
                Ok(Answer::Stored) => {
                    self.confirmed += 1;
                    self.waiting.pop_front();
                }
                Err(TryRecvError::Empty) if self.waiting.len() <= PARTS_WAITING => break,
                Ok(_) | Err(_) => {
                    self.worker.counters.add(Counter::StoreRefusals, 1);
                    return STORE_REFUSED;
                }
            }
        }
        Kept::Yes
    }

    /// Waits until the store has confirmed every part.
    async fn confirmed(&mut self) -> Kept {
        let Some(patience) = self.cache().storage().map(crate::storage::Storage::patience) else {
            return STORE_REFUSED;
        };
        while let Some(answer) = self.waiting.pop_front() {
            if !matches!(tokio::time::timeout(patience, answer).await, Ok(Ok(Answer::Stored))) {
                self.worker.counters.add(Counter::StoreRefusals, 1);
                return STORE_REFUSED;
            }
        }
        Kept::Yes
    }

    /// The body as it can be found again, and its length; `None` when a part was not stored.
    pub(crate) async fn complete(mut self) -> Option<(StoredBody, u64)> {
        if self.parts == 0 {
            return Some((StoredBody::Whole(self.collected.freeze()), self.length));
        }
        let last = std::mem::take(&mut self.collected).freeze();
        let kept = self.put(last) == Kept::Yes && self.confirmed().await == Kept::Yes;
        kept.then_some((StoredBody::Parts { fill: self.fill }, self.length))
    }
}
