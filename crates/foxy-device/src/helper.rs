//! A real disk through another process, as Squid's diskd: operations go to it as messages, in
//! order, and it carries them out one after the other. Nothing is shared with it but a socket.
//!
//! A helper that dies turns everything under way into [`IoError::Device`]. The next operation
//! starts another, in which the files that are open are opened again; where that fails it is tried
//! again after a while, and everything fails meanwhile. A helper ends when the socket is closed, so
//! with its owner, however that ends.

mod back_off;
mod open_files;
mod serve;
mod wire;

pub use serve::serve;

use crate::buffer::IoBuffer;
use crate::io::{Device, IoDone, IoError, IoId, IoOp, IoOutput};
use crate::park::{BlockingDevice, Parker, Waker};
use back_off::BackOff;
use foxy_base::Instant;
use open_files::OpenFiles;
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

/// Starts a helper that serves that socket, and returns how to wait for its end.
pub type Start = Box<dyn FnMut(UnixStream) -> std::io::Result<Ending> + Send>;

/// The device.
pub struct Helper {
    start: Start,
    running: Running,
    /// What is submitted and not reaped, with the buffers of transfers.
    pending: HashMap<IoId, Option<IoBuffer>>,
    /// What a helper that died left, to be reaped.
    left: Vec<IoDone>,
    files: OpenFiles,
    back_off: BackOff,
    parker: Parker,
    block_at: usize,
}

/// A helper and the thread that listens to it.
struct Running {
    socket: UnixStream,
    shared: Arc<HelperShared>,
    reader: Option<JoinHandle<()>>,
    ending: Option<Ending>,
}

#[derive(Default)]
struct HelperShared {
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

impl HelperShared {
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

impl Running {
    fn start(start: &mut Start, owner: Waker) -> std::io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let listening = socket.try_clone()?;
        let shared = Arc::new(HelperShared::default());
        let listener = Arc::clone(&shared);
        let ending = start(theirs)?;
        let thread = std::thread::Builder::new().name("foxy-helper".into());
        let reader = thread.spawn(move || listener.read(listening, &owner))?;
        Ok(Self { socket, shared, reader: Some(reader), ending: Some(ending) })
    }

    fn is_dead(&self) -> bool {
        self.shared.lock().dead
    }

    /// Waits until another operation may be sent; false when there is nobody to send it to.
    fn admit(&self, block_at: usize) -> bool {
        let full = |state: &mut State| state.outstanding >= block_at && !state.dead;
        let state = self.shared.fewer.wait_while(self.shared.lock(), full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.outstanding += 1;
        !state.dead
    }

    fn send(&self, message: &[u8]) {
        if (&self.socket).write_all(message).is_err() {
            // The reader finds the end too, and then fails what is pending.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Running {
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

impl Helper {
    /// A device whose helper `start` starts: it is given the socket on which [`serve`] is to run,
    /// and returns how to wait for the helper's end. While `block_at` operations are unanswered,
    /// submitting blocks: Squid's Q2 (R64).
    ///
    /// # Errors
    /// When the socket, the helper or the thread that listens to it cannot be had.
    pub fn new(
        block_at: usize,
        start: impl FnMut(UnixStream) -> std::io::Result<Ending> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (mut start, parker): (Start, _) = (Box::new(start), Parker::default());
        let running = Running::start(&mut start, parker.waker())?;
        Ok(Self {
            start,
            running,
            pending: HashMap::new(),
            left: Vec::new(),
            files: OpenFiles::default(),
            back_off: BackOff::default(),
            parker,
            block_at: block_at.max(1),
        })
    }

    fn finish(&mut self, answer: Answer) -> Option<IoDone> {
        let mut buffer = self.pending.remove(&answer.id)?;
        if let Some(buffer) = &mut buffer {
            let count = answer.content.len().min(buffer.len());
            buffer.as_mut()[..count].copy_from_slice(&answer.content[..count]);
        }
        self.files.opened(answer.id, answer.result.is_ok());
        Some(IoDone { id: answer.id, result: answer.result, buffer })
    }

    /// Takes what the helper has answered, and of one that is dead all that it has not.
    fn collect(&mut self) {
        let mut state = self.running.shared.lock();
        let (finished, dead) = (std::mem::take(&mut state.finished), state.dead);
        drop(state);
        for answer in finished {
            let done = self.finish(answer);
            self.left.extend(done);
        }
        if dead {
            let failed =
                |(id, buffer)| IoDone { id, result: Err::<IoOutput, _>(IoError::Device), buffer };
            self.left.extend(self.pending.drain().map(failed));
            self.files.forget_those_under_way();
        }
    }

    /// Starts another helper in the place of one that died, where it is time for that.
    fn revive(&mut self, now: Instant) {
        if !self.running.is_dead() || !self.back_off.is_over(now) {
            return;
        }
        self.collect();
        let Ok(running) = Running::start(&mut self.start, self.parker.waker()) else { return };
        // The old one is dead, so nothing waits for it here.
        self.running = running;
        for (id, op) in self.files.open_again() {
            self.running.shared.lock().outstanding += 1;
            self.running.send(&wire::operation(id, &op));
        }
    }
}

impl Device for Helper {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        self.revive(now);
        let message = wire::operation(id, &op);
        self.files.note(id, &op);
        let buffer = match op {
            IoOp::Read { buffer, .. } | IoOp::Write { buffer, .. } => Some(buffer),
            _ => None,
        };
        self.pending.insert(id, buffer);
        if self.running.admit(self.block_at) {
            self.running.send(&message);
        }
    }

    fn reap(&mut self, _now: Instant, done: &mut Vec<IoDone>) {
        self.collect();
        done.append(&mut self.left);
    }

    fn next_completion(&self) -> Option<Instant> {
        None
    }

    fn in_flight(&self) -> usize {
        self.pending.len() + self.left.len()
    }

    fn restarts(&self) -> u64 {
        self.back_off.starts()
    }
}

impl BlockingDevice for Helper {
    fn wait(&mut self, timeout: Option<Duration>) {
        let state = self.running.shared.lock();
        let ready = !state.finished.is_empty() || (state.dead && !self.pending.is_empty());
        drop(state);
        if !ready && self.left.is_empty() {
            self.parker.wait(timeout);
        }
    }

    fn waker(&self) -> Waker {
        self.parker.waker()
    }
}

#[cfg(test)]
#[path = "helper/tests.rs"]
mod tests;
