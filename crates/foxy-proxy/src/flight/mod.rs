//! A *flight* is a fetch that several requests share. The *fill* of a flight receives the response
//! from the origin and writes it to the flight. Any number of *readers*, on any worker, read the
//! response from the flight. Usually, each reader serves one client.
//!
//! Received bytes stay in memory while a reader needs them. A *window* is the number of bytes, at
//! most 1 MiB, that the memory budget allows the flight. The fill pauses while the slowest reader
//! is more than a window behind. Until more than a window has arrived, all bytes stay in memory, so
//! that other requests can join the flight. A reader that joins later first reads the beginning
//! from the store (`answer::rest`). A reader that was too slow reads the remaining bytes from the
//! store. If no reader is left, the fill decides whether to continue.

pub(crate) mod event;
pub(crate) mod memory_budget;
pub(crate) mod state;

use crate::cache::{Epoch, Stored};
pub(crate) use crate::flight::event::{
    FlightEvent, FlightHead, FlightOutcome, Keeping, Needed, Piece,
};
use crate::flight::memory_budget::{Collected, MemoryBudget};
use crate::flight::state::FlightState;
use crate::upstream::{Responder, UpstreamError};
use bytes::Bytes;
use foxy_base::WallTime;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::RequestControl;
use foxy_store::{Key, KeyMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Longest time for which one slow reader may delay the other readers of a flight (shared fetch).
const SLOW_READER_PATIENCE: Duration = Duration::from_secs(2);

/// A fetch from the origin whose response several requests share.
pub(crate) struct Flight {
    state: Mutex<FlightState>,
    progress: Notify,
    room: Notify,
    pub(crate) epoch: Epoch,
    /// True if the request that started the flight had a `Cookie` or `Authorization` field.
    is_personal: AtomicBool,
    /// For the access log: the server and the parent proxy (if any) from which the first final head
    /// came. Empty until then.
    pub(crate) responder: OnceLock<Responder>,
    keeping: Mutex<Keeping>,
    kept: Notify,
    /// Limits the bytes of the body that the flight has in memory.
    memory_budget: Arc<MemoryBudget>,
}

/// A reader of a flight: one request that receives the response. Dropping this value makes the
/// reader leave the flight.
pub(crate) struct Reader {
    flight: Arc<Flight>,
    number: u64,
}

impl Flight {
    pub(crate) fn new(epoch: Epoch, memory_budget: Arc<MemoryBudget>) -> Arc<Self> {
        memory_budget.open();
        let (state, keeping) = (Mutex::default(), Mutex::default());
        let (progress, room, kept) = (Notify::new(), Notify::new(), Notify::new());
        let (responder, is_personal) = (OnceLock::new(), AtomicBool::new(false));
        Arc::new(Self {
            state,
            progress,
            room,
            epoch,
            is_personal,
            responder,
            keeping,
            kept,
            memory_budget,
        })
    }

    /// Notes that the request that started the flight had a `Cookie` or `Authorization` field.
    pub(crate) fn set_personal(&self) {
        self.is_personal.store(true, Ordering::Relaxed);
    }

    fn state(&self) -> MutexGuard<'_, FlightState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state of the flight. Then tells the memory budget how many bytes the flight now
    /// has in memory.
    fn change<T>(&self, change: impl FnOnce(&mut FlightState) -> T) -> T {
        let mut state = self.state();
        let before = state.held();
        let result = change(&mut state);
        self.memory_budget.moved(before, state.held());
        result
    }

    fn keeping(&self) -> MutexGuard<'_, Keeping> {
        self.keeping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn keep(&self, keeping: Keeping) {
        *self.keeping() = keeping;
        self.kept.notify_waiters();
    }

    /// Applies `change` to the record of which bytes of the body are in the store. If `change`
    /// returns true, wakes the readers that wait for stored bytes.
    pub(crate) fn keep_if(&self, change: impl FnOnce(&mut Keeping) -> bool) {
        if change(&mut self.keeping()) {
            self.kept.notify_waiters();
        }
    }

    async fn kept_beyond(&self, at: u64) -> Keeping {
        loop {
            let kept = self.kept.notified();
            tokio::pin!(kept);
            kept.as_mut().enable();
            let keeping = self.keeping().clone();
            if !matches!(keeping, Keeping::Parts { bytes, .. } if bytes <= at) {
                return keeping;
            }
            kept.await;
        }
    }

    /// Adds a reader, which starts at the first byte of the body. Returns `None` if the beginning
    /// of the body is no longer in memory and cannot be read from the store.
    pub(crate) fn join(self: &Arc<Self>) -> Option<Reader> {
        let can_be_read_back = !matches!(*self.keeping(), Keeping::Nothing);
        let number = self.state().join(can_be_read_back)?;
        Some(Reader { flight: Arc::clone(self), number })
    }

    /// Returns true if the response of the flight (shared fetch) may answer a request that arrives
    /// now, or if the response has not arrived yet.
    pub(crate) fn may_answer(&self, control: &RequestControl, now: WallTime) -> bool {
        self.state().outcome.as_ref().is_none_or(|outcome| outcome.may_answer(control, now))
    }

    pub(crate) fn interim(&self, head: ResponseHead) {
        self.state().interim.push_back(head);
        self.progress.notify_waiters();
    }

    pub(crate) fn publish(&self, outcome: FlightOutcome) {
        self.state().outcome = Some(outcome);
        self.progress.notify_waiters();
    }

    /// Passes bytes of the body to the readers. Waits while the slowest reader is more than a
    /// window (the number of bytes that the memory budget allows) behind. After
    /// [`SLOW_READER_PATIENCE`], no longer waits if another reader needs new bytes. The slow
    /// readers then continue from the store.
    pub(crate) async fn write(&self, data: Bytes) {
        self.change(|state| state.add(data));
        self.progress.notify_waiters();
        if self.has_room() {
            return;
        }
        while tokio::time::timeout(SLOW_READER_PATIENCE, self.wait_for_room()).await.is_err() {
            self.change(|state| state.leave_slow_behind(self.memory_budget.share(state.held())));
            self.progress.notify_waiters();
        }
    }

    async fn wait_for_room(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if self.has_room() {
                return;
            }
            room.await;
        }
    }

    fn has_room(&self) -> bool {
        self.change(|state| {
            let window = self.memory_budget.share(state.held());
            state.forget_read(window);
            state.unread() <= window
        })
    }

    /// Ends the flight. If the fetch failed before the head of the response arrived, the error
    /// becomes the outcome.
    pub(crate) fn end(&self, result: Result<Headers, UpstreamError>) {
        let mut state = self.state();
        if let (Err(error), None) = (&result, &state.outcome) {
            state.outcome = Some(FlightOutcome::Failed(*error));
        }
        state.ended.get_or_insert(result);
        drop(state);
        self.progress.notify_waiters();
    }

    pub(crate) fn needs_what_is_kept(&self) -> Needed {
        if self.state().is_read_back() { Needed::ByReaders } else { Needed::Later }
    }

    /// Waits until the last reader has left the flight. From then on, no reader can join, so the
    /// fill may stop.
    pub(crate) async fn deserted(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if self.is_deserted() {
                return;
            }
            room.await;
        }
    }

    /// Returns true if the last reader has left the flight (shared fetch). From then on, no reader
    /// can join.
    pub(crate) fn is_deserted(&self) -> bool {
        let mut state = self.state();
        let deserted = state.is_deserted();
        if deserted {
            state.ended.get_or_insert(Err(UpstreamError::NoResponse));
        }
        deserted
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let held = self.state().held();
        self.memory_budget.moved(held, 0);
        self.memory_budget.close();
    }
}

impl Reader {
    /// Returns the server and the parent proxy from which the response came. Empty until the head
    /// has arrived.
    pub(crate) fn responder(&self) -> Responder {
        self.flight.responder.get().cloned().unwrap_or_default()
    }

    pub(crate) fn another(&self) -> Option<Self> {
        self.flight.join()
    }

    /// Returns true if the reader joined after the beginning of the body had left memory, and still
    /// reads from the store.
    pub(crate) fn is_late(&self) -> bool {
        self.flight.state().is_late(self.number)
    }

    /// Lets a reader that joined late continue from memory instead of the store, if possible. The
    /// reader must have read every byte before `at`, and memory must still have all later bytes
    /// that have arrived. Returns false otherwise.
    pub(crate) fn catches_up(&self, at: u64) -> bool {
        self.flight.state().catch_up(self.number, at)
    }

    /// Waits until the byte at position `at` can be read from the store, or until it is certain
    /// that this byte will not be stored.
    pub(crate) async fn kept_beyond(&self, at: u64) -> Keeping {
        self.flight.state().waits(self.number);
        let kept = self.flight.kept_beyond(at).await;
        self.flight.state().reads_on(self.number);
        kept
    }

    pub(crate) fn is_of(&self, flight: &Flight) -> bool {
        std::ptr::eq(&*self.flight, flight)
    }

    /// Returns true if the request that started the flight had a `Cookie` or `Authorization` field.
    pub(crate) fn is_personal(&self) -> bool {
        self.flight.is_personal.load(Ordering::Relaxed)
    }

    pub(crate) fn began_after(&self, came: Epoch) -> bool {
        self.flight.epoch.is_after(came)
    }

    pub(crate) fn leave(&self) {
        self.flight.state().leave(self.number);
        self.flight.room.notify_waiters();
    }

    /// Returns the next event before the body. The request that started the flight passes true as
    /// `leader`. Only this request receives the 1xx heads.
    pub(crate) async fn event(&self, leader: bool) -> FlightEvent {
        loop {
            let progress = self.flight.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            {
                let mut state = self.flight.state();
                if leader && let Some(head) = state.interim.pop_front() {
                    return FlightEvent::Interim(head);
                }
                if let Some(outcome) = &state.outcome {
                    return FlightEvent::Outcome(outcome.clone());
                }
            }
            progress.await;
        }
    }

    pub(crate) async fn next(&self) -> Piece {
        loop {
            let progress = self.flight.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            let piece = self.flight.state().take(self.number);
            if let Some(piece) = piece {
                self.flight.room.notify_waiters();
                return piece;
            }
            progress.await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.leave();
    }
}

/// The flights (shared fetches) in progress, by the key of their URL.
pub(crate) struct Flights {
    table: Mutex<KeyMap<Arc<Flight>>>,
    memory_budget: Arc<MemoryBudget>,
}

/// How a request gets its response: from a new flight (shared fetch), from a flight in progress, or
/// from the cache.
pub(crate) enum Boarding {
    Leads(Arc<Flight>, Reader),
    Follows(Reader),
    Landed(Arc<Stored>),
}

impl Flights {
    pub(crate) fn new(budget: usize) -> Self {
        Self { table: Mutex::default(), memory_budget: Arc::new(MemoryBudget::new(budget)) }
    }

    pub(crate) fn collected(&self) -> Collected {
        Collected::new(Arc::clone(&self.memory_budget))
    }

    pub(crate) fn alone(&self, epoch: Epoch) -> (Arc<Flight>, Reader) {
        let flight = Flight::new(epoch, Arc::clone(&self.memory_budget));
        let reader = flight.join().expect("a new flight can be joined");
        (flight, reader)
    }

    /// Joins the flight of a URL if `fits` accepts the flight. Otherwise returns the stored
    /// response that `landed` finds. If `landed` finds none, starts a flight. `fits` should refuse
    /// a flight whose response may be invalidated, purged or stale.
    pub(crate) fn board(
        &self,
        key: Key,
        epoch: Epoch,
        fits: impl Fn(&Flight) -> bool,
        landed: impl FnOnce() -> Option<Arc<Stored>>,
    ) -> Boarding {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = table.get(&key).filter(|flight| fits(flight))
            && let Some(reader) = flight.join()
        {
            return Boarding::Follows(reader);
        }
        if let Some(found) = landed() {
            return Boarding::Landed(found);
        }
        let (flight, reader) = self.alone(epoch);
        table.insert(key, Arc::clone(&flight));
        Boarding::Leads(flight, reader)
    }

    /// Returns true if a flight for the key is in progress.
    pub(crate) fn is_fetched(&self, key: Key) -> bool {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&key)
    }

    /// Starts a new flight for a request that no flight in progress may answer.
    pub(crate) fn lead(&self, key: Key, epoch: Epoch) -> (Arc<Flight>, Reader) {
        let (flight, reader) = self.alone(epoch);
        self.table.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Arc::clone(&flight));
        (flight, reader)
    }

    /// Also lets requests for `key` join this flight, unless `key` has a flight that began later.
    pub(crate) fn also(&self, key: Key, flight: &Arc<Flight>) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if !table.get(&key).is_some_and(|other| other.epoch.is_after(flight.epoch)) {
            table.insert(key, Arc::clone(flight));
        }
    }

    /// Removes a flight from the table, so that later requests cannot join it. If `key` has a newer
    /// flight, does nothing.
    pub(crate) fn land(&self, key: Key, flight: &Arc<Flight>) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.get(&key).is_some_and(|other| Arc::ptr_eq(other, flight)) {
            table.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests;
