//! Collects a body for the cache. A small body is stored whole. A large body is stored while it
//! arrives, in *parts* of 1 MiB, each as one record of the store. If the store is slow, the fetch
//! waits only for a limited time.

use crate::cache::purge::site_of;
use crate::cache::{Cache, CacheKey, NotKept, PART, Storage, StoredBody, part_key};
use crate::core::Counter;
use crate::flight::memory_budget::Collected;
use crate::flight::{Keeping, Needed};
use crate::worker::Worker;
use bytes::{Bytes, BytesMut};
use foxy_store::{Answer, PlacementHint, RefusedReason};
use std::collections::VecDeque;
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

/// Largest number of parts of one body that may wait for the store's confirmation. At this number,
/// the fetch waits for the store.
const MAX_UNCONFIRMED_PARTS: usize = 16;

/// Upper limit in bytes for the first size of the buffer. If the origin announces the length of a
/// body, the buffer starts with this length.
const MAX_FIRST_ALLOCATION_BYTES: u64 = 64 << 10;

/// Pause before the writer sends a part (1 MiB of the body) again that a busy store has refused.
const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// A fetch may wait for the store for a limited time, and each confirmed part gives some of this
/// time back. After this number of parts, the full time is back. If the full time is one second, a
/// store that writes less than 16 MiB/s cannot store a body that arrives faster than it writes.
const PARTS_FOR_FULL_PATIENCE: u32 = 16;

/// Some readers of the flight (shared fetch) may read the body from the store. The fetch then waits
/// this many times longer for each part (1 MiB of the body). If the body were not stored, the proxy
/// would have to fetch it again for each of these readers, or cut their answers off.
const PATIENCE_FACTOR_FOR_READERS: u32 = 10;

/// Tells whether the cache stored the body, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    No(NotKept),
}

/// Collects the bytes of a body, and sends them to the store in parts of 1 MiB.
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
    announced: Option<u64>,
    /// Parts that the store has not confirmed yet, oldest first.
    unconfirmed: VecDeque<UnconfirmedPart>,
    patience: Patience,
}

struct UnconfirmedPart {
    number: u64,
    part: Bytes,
    answer: StoreAnswer,
}

/// The state of a part that was sent to the store.
enum StoreAnswer {
    Pending(oneshot::Receiver<Answer>),
    /// The store was busy. At this time, the writer sends the part to the store again.
    AskAgain(Instant),
}

/// Returns the collected bytes. Copies them if their buffer is much larger than the bytes, because
/// the buffer may stay in memory for long.
fn exact(collected: BytesMut) -> Bytes {
    const UNUSED: usize = 8;
    let is_exact = collected.capacity() <= collected.len() + collected.len() / UNUSED;
    if is_exact { collected.freeze() } else { Bytes::copy_from_slice(&collected) }
}

impl BodyWriter {
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
            collected: BytesMut::with_capacity(
                announced.unwrap_or(0).min(MAX_FIRST_ALLOCATION_BYTES) as usize,
            ),
            held: worker.shared.flights.collected(),
            parts: 0,
            confirmed: 0,
            length: 0,
            announced,
            unconfirmed: VecDeque::new(),
            patience: Patience::new(most),
        }
    }

    fn cache(&self) -> &Cache {
        &self.worker.shared.cache
    }

    /// Returns what readers can read from the cache: the bytes from the start of the body up to the
    /// last byte that the store has confirmed.
    pub(crate) const fn keeping(&self) -> Keeping {
        Keeping::Parts { fill: self.fill, bytes: self.confirmed * PART as u64 }
    }

    pub(crate) fn is_in_parts(&self) -> bool {
        self.parts > 0
    }

    /// Adds more of the body. If too many parts (1 MiB each) are unconfirmed, waits for the store.
    /// If the wait exceeds its time limit, returns a refusal.
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
        while self.unconfirmed.len() > MAX_UNCONFIRMED_PARTS || !self.held.is_within_budget() {
            let begun = Instant::now();
            if self.unconfirmed.is_empty() {
                return self.refused();
            }
            let patience = match needed {
                Needed::Later => self.patience.left,
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

    fn put(&mut self, part: Bytes) -> Kept {
        let number = self.parts;
        self.parts += 1;
        let Some(answer) = self.ask(number, &part) else { return self.refused() };
        self.unconfirmed.push_back(UnconfirmedPart {
            number,
            part,
            answer: StoreAnswer::Pending(answer),
        });
        Kept::Yes
    }

    fn ask(&self, number: u64, part: &Bytes) -> Option<oneshot::Receiver<Answer>> {
        let size = self.announced.unwrap_or(0).max(self.length);
        let hint = PlacementHint { size, ..self.hint };
        let key = part_key(self.key.hash, self.fill, number);
        Some(self.cache().storage()?.put_part(key, part.clone(), hint))
    }

    /// Waits until the store confirms the oldest unconfirmed part (1 MiB of the body). If no part
    /// is unconfirmed, waits for ever. If the store is busy, sends the part again after a pause.
    pub(crate) async fn answer(&mut self) -> Kept {
        loop {
            let Some(oldest) = self.unconfirmed.front_mut() else { return pending().await };
            let answer = match &mut oldest.answer {
                StoreAnswer::Pending(answer) => answer.await,
                StoreAnswer::AskAgain(when) => {
                    sleep_until(*when).await;
                    let (number, part) = (oldest.number, oldest.part.clone());
                    let asked = self.ask(number, &part).map(StoreAnswer::Pending);
                    let (Some(asked), Some(oldest)) = (asked, self.unconfirmed.front_mut()) else {
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
                    self.unconfirmed.pop_front();
                    self.patience.earn();
                    return Kept::Yes;
                }
                Ok(Answer::Refused(RefusedReason::Busy)) => {
                    oldest.answer = StoreAnswer::AskAgain(Instant::now() + BUSY_PAUSE);
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

    async fn confirmed(&mut self, needed: Needed) -> Kept {
        let patience = match needed {
            Needed::Later => self.patience.most,
            Needed::ByReaders => self.patience.for_readers(),
        };
        while !self.unconfirmed.is_empty() {
            if let Kept::No(reason) = self.answer_within(patience).await {
                return Kept::No(reason);
            }
        }
        Kept::Yes
    }

    /// Waits until the store has confirmed every part (1 MiB of the body). Returns the body in its
    /// stored form and the body's length in bytes. Returns `None` if a part was not stored.
    pub(crate) async fn complete(mut self, needed: Needed) -> Option<(StoredBody, u64)> {
        if self.parts == 0 {
            return Some((StoredBody::Whole(exact(self.collected)), self.length));
        }
        let last = std::mem::take(&mut self.collected).freeze();
        let kept = self.put(last) == Kept::Yes && self.confirmed(needed).await == Kept::Yes;
        kept.then_some((StoredBody::Parts { fill: self.fill }, self.length))
    }
}

/// The time for which a fetch may still wait for the store. Waiting uses this time up, and each
/// confirmed part (1 MiB of the body) adds time.
#[derive(Clone, Copy, Debug)]
struct Patience {
    left: Duration,
    most: Duration,
}

impl Patience {
    const fn new(most: Duration) -> Self {
        Self { left: most, most }
    }

    /// Returns the timeout for a part (1 MiB of the body) that readers of the flight (shared fetch)
    /// need from the store.
    fn for_readers(&self) -> Duration {
        self.most * PATIENCE_FACTOR_FOR_READERS
    }

    fn spend(&mut self, waited: Duration) {
        self.left = self.left.saturating_sub(waited);
    }

    fn earn(&mut self) {
        self.left = (self.left + self.most / PARTS_FOR_FULL_PATIENCE).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many of at most `parts` parts (1 MiB each) a slow store confirms before the
    /// fetch stops waiting for it. The store confirms one part per `pace`.
    fn confirmed(pace: Duration, parts: u32) -> u32 {
        let mut patience = Patience::new(Duration::from_secs(1));
        let mut waits = || {
            let in_time = pace < patience.left;
            patience.spend(pace);
            patience.earn();
            in_time
        };
        (0..parts).take_while(|_| waits()).count() as u32
    }

    #[test]
    fn a_body_waits_for_a_store_of_sixteen_mebibytes_a_second_however_long_it_is() {
        assert_eq!(confirmed(Duration::from_millis(60), 10_000), 10_000);
        assert_eq!(
            confirmed(Duration::from_millis(200), 10_000),
            6,
            "it waits two seconds at most"
        );
        assert_eq!(confirmed(Duration::from_secs(2), 10_000), 0);
    }
}
