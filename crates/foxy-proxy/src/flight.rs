//! One fetch that several requests wait for. A fill writes, any number of readers follow, on any worker's thread.
//!
//! What was received is kept while a reader still needs it, at most a window ahead of the slowest; the first window is
//! kept so that late requests can join. A reader that is left behind may go on from the store (`behind`). A fill without
//! readers is told so and decides for itself whether to go on.

use crate::behind::Keeping;
use crate::epoch::Epoch;
pub(crate) use crate::news::{FlightHead, News, Outcome, Piece};
use crate::upstream::UpstreamError;
use crate::windows::Windows;
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// How long a slow reader may hold up others before it is left behind.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
struct State {
    interim: VecDeque<ResponseHead>,
    outcome: Option<Outcome>,
    chunks: VecDeque<Bytes>,
    first: u64,
    received: usize,
    ended: Option<Result<Headers, UpstreamError>>,
    readers: Vec<(u64, u64)>,
    /// Readers that were left behind and have not left.
    behind: Vec<u64>,
    joined: u64,
}

/// A flight.
#[derive(Debug)]
pub(crate) struct Flight {
    state: Mutex<State>,
    progress: Notify,
    room: Notify,
    pub(crate) epoch: Epoch,
    /// What can be read back from the store.
    pub(crate) keeping: watch::Sender<Keeping>,
    /// Says how many bytes a fill may be ahead of its slowest reader, and how many are kept for those who join late.
    windows: Arc<Windows>,
}

/// One reader of a flight; leaves it when dropped.
#[derive(Debug)]
pub(crate) struct Reader {
    flight: Arc<Flight>,
    number: u64,
}

impl Flight {
    pub(crate) fn new(epoch: Epoch, windows: Arc<Windows>) -> Arc<Self> {
        windows.open();
        let (state, keeping) = (Mutex::default(), watch::Sender::default());
        Arc::new(Self { state, progress: Notify::new(), room: Notify::new(), epoch, keeping, windows })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reader from the first byte on; `None` when that is no longer kept.
    pub(crate) fn join(self: &Arc<Self>) -> Option<Reader> {
        let mut state = self.state();
        let whole = state.first == 0 && state.ended.is_none();
        whole.then(|| {
            state.joined += 1;
            let number = state.joined;
            state.readers.push((number, 0));
            Reader { flight: Arc::clone(self), number }
        })
    }

    pub(crate) fn interim(&self, head: ResponseHead) {
        self.state().interim.push_back(head);
        self.progress.notify_waiters();
    }

    pub(crate) fn publish(&self, outcome: Outcome) {
        self.state().outcome = Some(outcome);
        self.progress.notify_waiters();
    }

    /// Hands bytes to the readers; waits while they are a window behind.
    pub(crate) async fn write(&self, data: Bytes) {
        {
            let mut state = self.state();
            state.received += data.len();
            state.chunks.push_back(data);
            state.forget_read(self.windows.share());
        }
        self.progress.notify_waiters();
        let wait = self.wait_for_room();
        if tokio::time::timeout(PATIENCE, wait).await.is_err() {
            self.leave_slow_behind();
            self.wait_for_room().await;
        }
    }

    async fn wait_for_room(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            {
                let mut state = self.state();
                let window = self.windows.share();
                state.forget_read(window);
                if state.unread() <= window {
                    return;
                }
            }
            room.await;
        }
    }

    /// Gives up readers more than a window behind while another has read everything and waits. Where nobody waits,
    /// they hold up only themselves.
    fn leave_slow_behind(&self) {
        let window = self.windows.share();
        let mut state = self.state();
        let end = state.first + state.chunks.len() as u64;
        if state.readers.iter().any(|(_, next)| *next == end) {
            let readers = std::mem::take(&mut state.readers);
            let (kept, behind): (Vec<_>, Vec<_>) =
                readers.into_iter().partition(|(_, next)| state.after(*next) <= window);
            state.readers = kept;
            state.behind.extend(behind.into_iter().map(|(number, _)| number));
            state.forget_read(window);
        }
        drop(state);
        self.progress.notify_waiters();
    }

    /// Ends the flight. Without a head before, an error is the outcome.
    pub(crate) fn end(&self, result: Result<Headers, UpstreamError>) {
        let mut state = self.state();
        if let (Err(error), None) = (&result, &state.outcome) {
            state.outcome = Some(Outcome::Failed(*error));
        }
        state.ended.get_or_insert(result);
        drop(state);
        self.progress.notify_waiters();
    }

    /// Waits until the last reader has left; from then on none can join, so the fill can give up without failing
    /// anybody.
    pub(crate) async fn deserted(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            {
                let mut state = self.state();
                if state.readers.is_empty() && state.behind.is_empty() {
                    state.ended.get_or_insert(Err(UpstreamError::NoResponse));
                    return;
                }
            }
            room.await;
        }
    }
}

impl State {
    /// Bytes the slowest reader has not taken.
    fn unread(&self) -> usize {
        self.readers.iter().map(|(_, next)| *next).min().map_or(0, |slowest| self.after(slowest))
    }

    /// Bytes received from chunk `next` on.
    fn after(&self, next: u64) -> usize {
        let skip = usize::try_from(next.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.chunks.iter().skip(skip).map(Bytes::len).sum()
    }

    /// Drops chunks every reader has taken, once more was received than late readers could be given.
    fn forget_read(&mut self, window: usize) {
        if self.received <= window {
            return;
        }
        let end = self.first + self.chunks.len() as u64;
        let slowest = self.readers.iter().map(|(_, next)| *next).min().unwrap_or(end);
        while self.first < slowest && self.chunks.pop_front().is_some() {
            self.first += 1;
        }
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.windows.close();
    }
}

impl Reader {
    /// Another reader of the same flight, from the first byte on; `None` when that is not kept or all has come.
    pub(crate) fn another(&self) -> Option<Self> {
        self.flight.join()
    }

    /// Waits until a byte at `at` can be read back from the store, or it is certain what can.
    pub(crate) async fn kept_beyond(&self, at: u64) -> Keeping {
        let mut keeping = self.flight.keeping.subscribe();
        let decided = |keeping: &Keeping| !matches!(keeping, Keeping::Parts { bytes, .. } if *bytes <= at);
        match keeping.wait_for(decided).await {
            Ok(keeping) => keeping.clone(),
            Err(_) => Keeping::Nothing,
        }
    }

    /// Leaves the flight before the reader is dropped.
    pub(crate) fn leave(&self) {
        let mut state = self.flight.state();
        state.readers.retain(|(number, _)| *number != self.number);
        state.behind.retain(|number| *number != self.number);
        drop(state);
        self.flight.room.notify_waiters();
    }

    /// The next news before the body. `leader` gets 1xx heads too.
    pub(crate) async fn news(&self, leader: bool) -> News {
        loop {
            let progress = self.flight.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            {
                let mut state = self.flight.state();
                if leader && let Some(head) = state.interim.pop_front() {
                    return News::Interim(head);
                }
                if let Some(outcome) = &state.outcome {
                    return News::Outcome(outcome.clone());
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
            if let Some(piece) = self.take() {
                self.flight.room.notify_waiters();
                return piece;
            }
            progress.await;
        }
    }

    fn take(&self) -> Option<Piece> {
        let mut state = self.flight.state();
        let Some(at) = state.readers.iter().position(|(number, _)| *number == self.number) else {
            return Some(Piece::LeftBehind);
        };
        let next = state.readers[at].1;
        let index = usize::try_from(next - state.first).ok()?;
        if let Some(data) = state.chunks.get(index).cloned() {
            state.readers[at].1 += 1;
            return Some(Piece::Data(data));
        }
        match &state.ended {
            Some(Ok(trailers)) => Some(Piece::End(trailers.clone())),
            Some(Err(_)) => Some(Piece::Broken),
            None => None,
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
#[path = "flight_tests.rs"]
mod tests;
