//! Collects a body for the cache while it passes: whole if it is small, in parts as it comes if
//! not.

use crate::cache::Cache;
use crate::cache::purge::site_of;
use crate::cache::refusals::NotKept;
use crate::cache::storage::{PART, Storage, part_key};
use crate::cache::stored::{CacheKey, StoredBody};
use crate::core::counters::Counter;
use crate::fill::patience::Patience;
use crate::flight::keeping::Needed;
use crate::flight::memory_budget::Collected;
use crate::worker::Worker;
use bytes::{Bytes, BytesMut};
use foxy_store::{Answer, PlacementHint, RefusedReason};
use std::collections::VecDeque;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

/// Parts of one fill the store may owe an answer for before its body waits for the store.
const PARTS_WAITING: usize = 16;

/// Bytes that are set aside at once for a body whose length is known.
const SET_ASIDE: u64 = 64 << 10;

/// How long a busy store is left alone.
const BUSY: Duration = Duration::from_millis(5);

/// Whether a writer still keeps the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    /// For that reason.
    No(NotKept),
}

/// Collects a body for the cache: whole if it is small, in parts as it comes if not.
pub(crate) struct BodyWriter {
    worker: Rc<Worker>,
    key: CacheKey,
    hint: PlacementHint,
    fill: u64,
    collected: BytesMut,
    held: Collected,
    parts: u64,
    confirmed: u64,
    length: u64,
    /// Bytes of the whole body, where the origin said so.
    announced: Option<u64>,
    /// Parts in their order that the store has not confirmed.
    waiting: VecDeque<Owed>,
    patience: Patience,
}

/// A part that the store owes an answer for.
struct Owed {
    number: u64,
    part: Bytes,
    answer: Asked,
}

/// Whether the store has been asked to take a part.
enum Asked {
    Waits(oneshot::Receiver<Answer>),
    /// It was busy, and is to be asked again then.
    Again(Instant),
}

/// The bytes in memory of about their length, since they may be kept for long.
fn exact(collected: BytesMut) -> Bytes {
    const UNUSED: usize = 8;
    let is_exact = collected.capacity() <= collected.len() + collected.len() / UNUSED;
    if is_exact { collected.freeze() } else { Bytes::copy_from_slice(&collected) }
}

impl BodyWriter {
    /// Keeps a body of `announced` bytes, where that is known.
    pub(crate) fn new(
        worker: &Rc<Worker>,
        base: &CacheKey,
        key: &CacheKey,
        announced: Option<u64>,
    ) -> Self {
        let most = worker.shared.cache.storage().map(Storage::patience).unwrap_or_default();
        Self {
            fill: worker.shared.cache.draw(),
            hint: PlacementHint { site: site_of(&base.text), ..PlacementHint::default() },
            worker: Rc::clone(worker),
            key: key.clone(),
            collected: BytesMut::with_capacity(announced.unwrap_or(0).min(SET_ASIDE) as usize),
            held: worker.shared.flights.collected(),
            parts: 0,
            confirmed: 0,
            length: 0,
            announced,
            waiting: VecDeque::new(),
            patience: Patience::new(most),
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

    /// Takes more of the body. It waits for the store where that owes too much, as long as clients
    /// wait for it.
    pub(crate) async fn take(&mut self, data: &Bytes, needed: Needed) -> Kept {
        self.length += data.len() as u64;
        if self.length > self.cache().object_limit {
            return Kept::No(NotKept::TooLarge);
        }
        self.collected.extend_from_slice(data);
        self.held.take(data.len());
        while self.collected.len() > PART && self.cache().storage().is_some() {
            let part = self.collected.split_to(PART).freeze();
            if let Kept::No(reason) = self.put(part) {
                return Kept::No(reason);
            }
        }
        while self.waiting.len() > PARTS_WAITING || !self.held.is_within_budget() {
            let begun = Instant::now();
            if self.waiting.is_empty() {
                return self.refused();
            }
            let patience = match needed {
                Needed::Later => self.patience.left(),
                Needed::ByReaders => self.patience.for_readers(),
            };
            if let Kept::No(reason) = self.answer_within(patience).await {
                return Kept::No(reason);
            }
            if needed == Needed::Later {
                self.patience.spend(begun.elapsed());
            }
        }
        Kept::Yes
    }

    /// Hands a part to the store.
    fn put(&mut self, part: Bytes) -> Kept {
        let number = self.parts;
        self.parts += 1;
        let Some(answer) = self.ask(number, &part) else { return self.refused() };
        self.waiting.push_back(Owed { number, part, answer: Asked::Waits(answer) });
        Kept::Yes
    }

    fn ask(&self, number: u64, part: &Bytes) -> Option<oneshot::Receiver<Answer>> {
        let size = self.announced.unwrap_or(0).max(self.length);
        let hint = PlacementHint { size, ..self.hint };
        let key = part_key(self.key.hash, self.fill, number);
        Some(self.cache().storage()?.put_part(key, part.clone(), hint))
    }

    /// Waits until the store has the oldest part that it owes an answer for; without one, for ever.
    /// A store that is busy is asked again after a while.
    pub(crate) async fn answer(&mut self) -> Kept {
        loop {
            let Some(oldest) = self.waiting.front_mut() else { return pending().await };
            let answer = match &mut oldest.answer {
                Asked::Waits(answer) => answer.await,
                Asked::Again(when) => {
                    sleep_until(*when).await;
                    let (number, part) = (oldest.number, oldest.part.clone());
                    let asked = self.ask(number, &part).map(Asked::Waits);
                    let (Some(asked), Some(oldest)) = (asked, self.waiting.front_mut()) else {
                        return self.refused();
                    };
                    oldest.answer = asked;
                    continue;
                }
            };
            match answer {
                Ok(Answer::Stored) => {
                    self.held.give_back(oldest.part.len());
                    self.confirmed += 1;
                    self.waiting.pop_front();
                    self.patience.earn();
                    return Kept::Yes;
                }
                Ok(Answer::Refused(RefusedReason::Busy)) => {
                    oldest.answer = Asked::Again(Instant::now() + BUSY);
                }
                Ok(_) | Err(_) => return self.refused(),
            }
        }
    }

    async fn answer_within(&mut self, patience: Duration) -> Kept {
        match timeout(patience, self.answer()).await {
            Ok(kept) => kept,
            Err(_) => self.refused(),
        }
    }

    fn refused(&self) -> Kept {
        self.worker.counters.add(Counter::StoreRefusals, 1);
        Kept::No(NotKept::StoreRefused)
    }

    /// Waits until the store has confirmed every part.
    async fn confirmed(&mut self, needed: Needed) -> Kept {
        let patience = match needed {
            Needed::Later => self.patience.most(),
            Needed::ByReaders => self.patience.for_readers(),
        };
        while !self.waiting.is_empty() {
            if let Kept::No(reason) = self.answer_within(patience).await {
                return Kept::No(reason);
            }
        }
        Kept::Yes
    }

    /// The body as it can be found again, and its length; `None` when a part was not stored.
    pub(crate) async fn complete(mut self, needed: Needed) -> Option<(StoredBody, u64)> {
        if self.parts == 0 {
            return Some((StoredBody::Whole(exact(self.collected)), self.length));
        }
        let last = std::mem::take(&mut self.collected).freeze();
        let kept = self.put(last) == Kept::Yes && self.confirmed(needed).await == Kept::Yes;
        kept.then_some((StoredBody::Parts { fill: self.fill }, self.length))
    }
}
