//! One fetch that several requests wait for. A fill writes, any number of readers follow, on any
//! worker's thread.
//!
//! What was received is kept while a reader still needs it, at most a window ahead of the slowest;
//! the first window is kept so that others can join. Who comes later reads what is gone from the
//! store (`answer::rest`) and then joins; a reader that is left behind goes on from there to
//! the end. A fill without readers is told so and decides for itself whether to go on.

pub(crate) mod event;
pub(crate) mod flights;
pub(crate) mod keeping;
pub(crate) mod memory_budget;
pub(crate) mod state;

use crate::cache::epoch::Epoch;
pub(crate) use crate::flight::event::{FlightEvent, FlightHead, FlightOutcome, Piece};
use crate::flight::keeping::{Keeping, Needed};
use crate::flight::memory_budget::MemoryBudget;
use crate::flight::state::FlightState;
use crate::upstream::UpstreamError;
use bytes::Bytes;
use foxy_base::WallTime;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::RequestControl;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How long a slow reader may hold up others before it is left behind.
const PATIENCE: Duration = Duration::from_secs(2);

/// A flight.
#[derive(Debug)]
pub(crate) struct Flight {
    state: Mutex<FlightState>,
    progress: Notify,
    room: Notify,
    pub(crate) epoch: Epoch,
    /// What can be read back from the store.
    keeping: Mutex<Keeping>,
    kept: Notify,
    /// Says how many bytes a fill may be ahead of its slowest reader, and how many are kept for
    /// those who join late.
    memory_budget: Arc<MemoryBudget>,
}

/// One reader of a flight; leaves it when dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    flight: Arc<Flight>,
    number: u64,
}

impl Flight {
    pub(crate) fn new(epoch: Epoch, memory_budget: Arc<MemoryBudget>) -> Arc<Self> {
        memory_budget.open();
        let (state, keeping) = (Mutex::default(), Mutex::default());
        let (progress, room, kept) = (Notify::new(), Notify::new(), Notify::new());
        Arc::new(Self { state, progress, room, epoch, keeping, kept, memory_budget })
    }

    fn state(&self) -> MutexGuard<'_, FlightState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is held, and counts that among all flights.
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

    /// Says what can be read back from the store.
    pub(crate) fn keep(&self, keeping: Keeping) {
        *self.keeping() = keeping;
        self.kept.notify_waiters();
    }

    /// Changes what can be read back from the store, if `change` says so.
    pub(crate) fn keep_if(&self, change: impl FnOnce(&mut Keeping) -> bool) {
        if change(&mut self.keeping()) {
            self.kept.notify_waiters();
        }
    }

    /// Waits until a byte at `at` can be read back, or it is certain what can.
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

    /// A reader from the first byte on, which may have to be read back from the store; `None` when
    /// it cannot be had.
    pub(crate) fn join(self: &Arc<Self>) -> Option<Reader> {
        let can_be_read_back = !matches!(*self.keeping(), Keeping::Nothing);
        let number = self.state().join(can_be_read_back)?;
        Some(Reader { flight: Arc::clone(self), number })
    }

    /// Whether it may answer a request with this control that comes now, as far as that is known:
    /// before the response comes, it may.
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

    /// Hands bytes to the readers; waits while they are a window behind.
    pub(crate) async fn write(&self, data: Bytes) {
        self.change(|state| state.add(data));
        self.progress.notify_waiters();
        if self.has_room() {
            return;
        }
        while tokio::time::timeout(PATIENCE, self.wait_for_room()).await.is_err() {
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

    /// Whether readers are no more than a window behind.
    fn has_room(&self) -> bool {
        self.change(|state| {
            let window = self.memory_budget.share(state.held());
            state.forget_read(window);
            state.unread() <= window
        })
    }

    /// Ends the flight. Without a head before, an error is the outcome.
    pub(crate) fn end(&self, result: Result<Headers, UpstreamError>) {
        let mut state = self.state();
        if let (Err(error), None) = (&result, &state.outcome) {
            state.outcome = Some(FlightOutcome::Failed(*error));
        }
        state.ended.get_or_insert(result);
        drop(state);
        self.progress.notify_waiters();
    }

    /// Whether readers of it read what is kept of it.
    pub(crate) fn needs_what_is_kept(&self) -> Needed {
        if self.state().is_read_back() { Needed::ByReaders } else { Needed::Later }
    }

    /// Waits until the last reader has left; from then on none can join, so the fill can give up
    /// without failing anybody.
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

    /// Whether the last reader has left. If so, none can join from then on.
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
    /// Another reader of the same flight, from the first byte on; `None` when that cannot be had.
    pub(crate) fn another(&self) -> Option<Self> {
        self.flight.join()
    }

    /// Whether it came when the beginning was no longer held, and has not caught up.
    pub(crate) fn is_late(&self) -> bool {
        self.flight.state().is_late(self.number)
    }

    /// Takes a late reader that has every byte before `at` among those who read what comes, if it
    /// has caught up.
    pub(crate) fn catches_up(&self, at: u64) -> bool {
        self.flight.state().catch_up(self.number, at)
    }

    /// Waits until a byte at `at` can be read back from the store, or it is certain what can.
    pub(crate) async fn kept_beyond(&self, at: u64) -> Keeping {
        self.flight.state().waits(self.number);
        let kept = self.flight.kept_beyond(at).await;
        self.flight.state().reads_on(self.number);
        kept
    }

    /// Whether it reads that flight, or did.
    pub(crate) fn is_of(&self, flight: &Flight) -> bool {
        std::ptr::eq(&*self.flight, flight)
    }

    /// Whether the flight began after a request that `came` then.
    pub(crate) fn began_after(&self, came: Epoch) -> bool {
        self.flight.epoch.is_after(came)
    }

    /// Leaves the flight before the reader is dropped.
    pub(crate) fn leave(&self) {
        self.flight.state().leave(self.number);
        self.flight.room.notify_waiters();
    }

    /// The next news before the body. `leader` gets 1xx heads too.
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

    /// The next piece of the body.
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

#[cfg(test)]
mod tests;
