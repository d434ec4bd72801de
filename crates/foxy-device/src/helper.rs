//! A real disk through another process, as Squid's diskd: operations go to it as messages, in order, and it carries them
//! out one after the other. Nothing is shared with it but a socket.
//!
//! A helper that dies turns everything submitted, then and later, into [`IoError::Device`]. It ends when the socket is
//! closed, so with its owner, however that ends.

mod serve;
mod wire;

pub use serve::serve;

use crate::buffer::IoBuffer;
use crate::io::{Device, IoDone, IoError, IoId, IoOp, IoOutput};
use crate::park::{BlockingDevice, Parker, Waker};
use foxy_base::Instant;
use std::collections::HashMap;
use std::fmt;
use std::io::{BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use wire::Answer;

/// Waits for the helper's end.
pub type Ending = Box<dyn FnOnce() + Send>;

/// The device.
pub struct Helper {
    socket: UnixStream,
    /// What is submitted and not reaped, with the buffers of transfers.
    pending: HashMap<IoId, Option<IoBuffer>>,
    shared: Arc<Shared>,
    parker: Parker,
    block_at: usize,
    reader: Option<JoinHandle<()>>,
    ending: Option<Ending>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    fewer: Condvar,
}

#[derive(Default)]
struct State {
    finished: Vec<Answer>,
    /// Operations the helper has not answered.
    outstanding: usize,
    dead: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes answers until there are no more.
    fn read(&self, socket: UnixStream, owner: &Waker) {
        let mut socket = BufReader::new(socket);
        while let Ok(answer) = wire::read_answer(&mut socket) {
            let mut state = self.lock();
            state.outstanding = state.outstanding.saturating_sub(1);
            state.finished.push(answer);
            drop(state);
            self.fewer.notify_all();
            owner.wake();
        }
        self.lock().dead = true;
        self.fewer.notify_all();
        owner.wake();
    }
}

impl fmt::Debug for Helper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helper").field("pending", &self.pending.len()).finish_non_exhaustive()
    }
}

impl Helper {
    /// A device whose helper `start` starts: it is given the socket on which [`serve`] is to run, and returns how to
    /// wait for the helper's end. While `block_at` operations are unanswered, submitting blocks: Squid's Q2 (R64).
    ///
    /// # Errors
    /// When the socket, the helper or the thread that listens to it cannot be had.
    pub fn new(
        block_at: usize,
        start: impl FnOnce(UnixStream) -> std::io::Result<Ending>,
    ) -> std::io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let listening = socket.try_clone()?;
        let (shared, parker) = (Arc::new(Shared::default()), Parker::default());
        let (listener, owner) = (Arc::clone(&shared), parker.waker());
        let ending = start(theirs)?;
        let thread = std::thread::Builder::new().name("foxy-helper".into());
        let reader = thread.spawn(move || listener.read(listening, &owner))?;
        Ok(Self {
            socket,
            pending: HashMap::new(),
            shared,
            parker,
            block_at: block_at.max(1),
            reader: Some(reader),
            ending: Some(ending),
        })
    }

    /// Waits until another operation may be sent; false when there is nobody to send it to.
    fn admit(&self) -> bool {
        let full = |state: &mut State| state.outstanding >= self.block_at && !state.dead;
        let state = self.shared.fewer.wait_while(self.shared.lock(), full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.outstanding += 1;
        !state.dead
    }

    fn finish(&mut self, answer: Answer) -> Option<IoDone> {
        let mut buffer = self.pending.remove(&answer.id)?;
        if let Some(buffer) = &mut buffer {
            let count = answer.content.len().min(buffer.len());
            buffer.as_mut()[..count].copy_from_slice(&answer.content[..count]);
        }
        Some(IoDone { id: answer.id, result: answer.result, buffer })
    }
}

impl Device for Helper {
    fn submit(&mut self, id: IoId, op: IoOp, _now: Instant) {
        let message = wire::operation(id, &op);
        let buffer = match op {
            IoOp::Read { buffer, .. } | IoOp::Write { buffer, .. } => Some(buffer),
            _ => None,
        };
        self.pending.insert(id, buffer);
        if self.admit() && self.socket.write_all(&message).is_err() {
            // The reader finds the end too, and then fails what is pending.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }

    fn reap(&mut self, _now: Instant, done: &mut Vec<IoDone>) {
        let mut state = self.shared.lock();
        let (finished, dead) = (std::mem::take(&mut state.finished), state.dead);
        drop(state);
        for answer in finished {
            done.extend(self.finish(answer));
        }
        if dead {
            let failed = |(id, buffer)| IoDone { id, result: Err::<IoOutput, _>(IoError::Device), buffer };
            done.extend(self.pending.drain().map(failed));
        }
    }

    fn next_completion(&self) -> Option<Instant> {
        None
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }
}

impl BlockingDevice for Helper {
    fn wait(&mut self, timeout: Option<Duration>) {
        let state = self.shared.lock();
        let ready = !state.finished.is_empty() || (state.dead && !self.pending.is_empty());
        drop(state);
        if !ready {
            self.parker.wait(timeout);
        }
    }

    fn waker(&self) -> Waker {
        self.parker.waker()
    }
}

impl Drop for Helper {
    /// The helper finishes what was sent, and ends.
    fn drop(&mut self) {
        // A socket whose other end is gone is shut already.
        let _ = self.socket.shutdown(Shutdown::Write);
        if let Some(reader) = self.reader.take() {
            // A panic of the reader has been printed by it; there is nothing to add while dropping.
            let _ = reader.join();
        }
        if let Some(ending) = self.ending.take() {
            ending();
        }
    }
}

#[cfg(test)]
#[path = "helper/tests.rs"]
mod tests;
