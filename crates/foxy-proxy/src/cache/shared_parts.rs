//! Shares parts of stored bodies while they are read or sent. A *part* is up to 1 MiB of a body,
//! and is one record of the store. Requests for the same part share one read and one copy in
//! memory. The number of parts in memory is limited: each part occupies a *place*.

use crate::cache::storage::PART;
use bytes::Bytes;
use foxy_store::Key;
use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// The parts in memory, and the number of further parts that may enter memory.
pub(crate) struct SharedParts {
    places: Arc<Semaphore>,
    table: Arc<PartTable>,
}

/// The parts in memory, by key. A part leaves memory when its last user drops it.
#[derive(Debug, Default)]
struct PartTable(Mutex<HashMap<Key, Weak<SharedPart>>>);

/// A part that several requests may use. Empty until a read delivers the part.
struct SharedPart {
    key: Key,
    table: Arc<PartTable>,
    was_late: AtomicBool,
    part: OnceCell<(Bytes, OwnedSemaphorePermit)>,
}

/// The use of a shared part by one request. The part stays in memory until this value is dropped.
pub(crate) struct HeldPart(Arc<SharedPart>);

/// The reason why a part cannot be used: its read found nothing, or took too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPart {
    Absent,
    Late,
}

impl SharedParts {
    /// Limits the memory for parts (1 MiB each) to `budget` bytes. At least one part is always
    /// permitted.
    pub(crate) fn new(budget: usize) -> Self {
        let places = Semaphore::new((budget / PART).clamp(1, Semaphore::MAX_PERMITS));
        Self { places: Arc::new(places), table: Arc::default() }
    }

    /// Returns true if no further part (1 MiB) may enter memory until another part leaves memory.
    pub(crate) fn is_full(&self) -> bool {
        self.places.available_permits() == 0
    }

    /// Returns the part `key`. If another request already uses the part, returns that copy.
    /// Otherwise one of the callers takes a place and runs its `read`, for at most `patience`. All
    /// callers that wait for the part share the result. If a `read` returns no part, the next
    /// caller runs its own `read`. If a `read` takes longer than `patience`, the callers that have
    /// waited equally long give up.
    pub(crate) async fn get(
        &self,
        key: Key,
        patience: Duration,
        read: impl Future<Output = Option<Bytes>>,
    ) -> Result<HeldPart, NoPart> {
        let (shared, entered) = (self.table.enter(key), Instant::now());
        let read = async {
            if shared.was_late.load(Relaxed) && entered.elapsed() >= patience {
                return Err(NoPart::Late);
            }
            let place = Arc::clone(&self.places).acquire_owned().await.expect("nobody closes it");
            match timeout(patience, read).await {
                Ok(part) => part.map(|part| (part, place)).ok_or(NoPart::Absent),
                Err(_) => {
                    shared.was_late.store(true, Relaxed);
                    Err(NoPart::Late)
                }
            }
        };
        shared.part.get_or_try_init(|| read).await?;
        Ok(HeldPart(shared))
    }
}

impl PartTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Weak<SharedPart>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(self: &Arc<Self>, key: Key) -> Arc<SharedPart> {
        let mut table = self.lock();
        if let Some(shared) = table.get(&key).and_then(Weak::upgrade) {
            return shared;
        }
        let shared = Arc::new(SharedPart {
            key,
            table: Arc::clone(self),
            was_late: AtomicBool::new(false),
            part: OnceCell::new(),
        });
        table.insert(key, Arc::downgrade(&shared));
        shared
    }
}

impl Drop for SharedPart {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        if table.get(&self.key).is_some_and(|shared| shared.strong_count() == 0) {
            table.remove(&self.key);
        }
    }
}

impl HeldPart {
    pub(crate) fn bytes(&self) -> &Bytes {
        self.0.part.get().map(|(part, _)| part).expect("it was read before it was handed out")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::{pending, ready};
    use tokio::join;
    use tokio::task::yield_now;

    const KEY: Key = Key([1; 16]);
    const OTHER: Key = Key([2; 16]);
    const PATIENCE: Duration = Duration::from_secs(1);

    fn bytes() -> Option<Bytes> {
        Some(Bytes::from_static(b"part"))
    }

    async fn slow(reads: &Cell<u32>) -> Option<Bytes> {
        reads.set(reads.get() + 1);
        yield_now().await;
        bytes()
    }

    #[tokio::test]
    async fn those_who_want_a_part_at_the_same_time_share_one_read_and_one_place() {
        let (parts, reads) = (SharedParts::new(3 * PART), Cell::new(0));
        let get = || parts.get(KEY, PATIENCE, slow(&reads));
        let (one, two, three) = join!(get(), get(), get());
        for part in [&one, &two, &three] {
            assert_eq!(part.as_ref().map(|part| &part.bytes()[..]), Ok(&b"part"[..]));
        }
        assert_eq!(parts.places.available_permits(), 2, "a place for each");
        let late = get().await;
        assert!(late.is_ok() && reads.get() == 1, "read {} times", reads.get());
        drop((one, two, three, late));
        assert_eq!((parts.places.available_permits(), parts.table.lock().len()), (3, 0));
        assert!(get().await.is_ok() && reads.get() == 2, "held by nobody");
    }

    #[tokio::test]
    async fn a_reader_that_leaves_or_finds_nothing_leaves_the_read_to_the_next() {
        let (parts, reads) = (SharedParts::new(4 * PART), Cell::new(0));
        for first in [None, Some(Duration::from_millis(1))] {
            let broken = async {
                match first {
                    None => None,
                    Some(_) => pending().await,
                }
            };
            let patience = first.unwrap_or(PATIENCE);
            let (broken, next) =
                join!(parts.get(KEY, patience, broken), parts.get(KEY, PATIENCE, slow(&reads)));
            let expected = if first.is_some() { NoPart::Late } else { NoPart::Absent };
            assert_eq!(broken.err(), Some(expected));
            assert!(next.is_ok());
        }
        assert_eq!((reads.get(), parts.places.available_permits()), (2, 4));
    }

    #[tokio::test]
    async fn another_part_waits_for_a_place_in_turn() {
        let parts = SharedParts::new(PART);
        let held = parts.get(KEY, PATIENCE, ready(bytes())).await;
        assert!(held.is_ok() && parts.is_full());
        let waits = async {
            timeout(Duration::from_millis(5), parts.get(OTHER, PATIENCE, ready(bytes())))
                .await
                .is_err()
        };
        assert!(waits.await, "two parts in the place of one");
        drop(held);
        assert!(parts.get(OTHER, PATIENCE, ready(bytes())).await.is_ok());
    }

    #[tokio::test]
    async fn those_who_wait_for_parts_that_others_hold_get_them_when_places_are_used_up() {
        let parts = SharedParts::new(2 * PART);
        let keys = [Key([1; 16]), Key([2; 16])];
        // These two parts use all the memory for parts. So the 20 requests below wait for a place.
        let stalled =
            [Key([3; 16]), Key([4; 16])].map(|key| parts.get(key, PATIENCE, ready(bytes())));
        let stalled = futures_util::future::join_all(stalled).await;
        assert!(parts.is_full());
        let wanting = (0..20).map(|number| parts.get(keys[number % 2], PATIENCE, ready(bytes())));
        let wanting =
            futures_util::future::join_all(wanting.map(|get| async { get.await.map(drop) }));
        let goes_on = async {
            yield_now().await;
            drop(stalled);
        };
        let (got, ()) =
            timeout(PATIENCE, async { join!(wanting, goes_on) }).await.expect("they wait for ever");
        assert!(got.iter().all(Result::is_ok));
        assert_eq!(parts.places.available_permits(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_does_not_answer_is_waited_for_once() {
        let parts = SharedParts::new(4 * PART);
        let begun = Instant::now();
        let silent = (0..20).map(|_| parts.get(KEY, PATIENCE, pending()));
        let all = futures_util::future::join_all(silent).await;
        assert!(all.iter().all(|got| matches!(got, Err(NoPart::Late))));
        assert!(begun.elapsed() < 2 * PATIENCE, "{:?}", begun.elapsed());
    }
}
