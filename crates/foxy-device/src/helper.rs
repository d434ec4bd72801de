//! A device for a real disk that works like Squid's diskd. A helper process receives operations as
//! messages over a socket and performs them in order. The two processes share no memory.
//!
//! If a helper process dies, all operations in flight fail with [`IoError::Device`]. The next
//! operation starts another helper, which opens the same files again. If this start fails,
//! operations fail until a later start succeeds. A pause separates two starts. A helper ends when
//! its socket closes, so a helper never outlives the process that started it.

mod restart;
mod wire;

pub use wire::serve;

use crate::buffer::IoBuffer;
use crate::io::{Device, IoDone, IoError, IoId, IoOp, IoOutput};
use crate::park::{BlockingDevice, Parker, Waker};
use foxy_base::Instant;
use restart::{BackOff, OpenFiles};
use std::collections::HashMap;
use std::fmt;
use std::io::{BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use wire::Answer;

/// A function that waits for the end of a helper process.
pub type Ending = Box<dyn FnOnce() + Send>;

/// A function that starts a helper process with one end of a socket. It returns a function that
/// waits for the end of this process.
pub type Starter = Box<dyn FnMut(UnixStream) -> std::io::Result<Ending> + Send>;

/// A device whose operations run in another process.
pub struct Helper {
    start: Starter,
    running: Running,
    /// Operations in flight on the helper. For a read or write, the entry contains the operation's
    /// buffer.
    pending: HashMap<IoId, Option<IoBuffer>>,
    /// Results of finished operations that `reap` has not returned yet.
    completed: Vec<IoDone>,
    files: OpenFiles,
    back_off: BackOff,
    parker: Parker,
    block_at: usize,
}

/// A running helper process and the thread that reads its answers.
struct Running {
    socket: UnixStream,
    shared: Arc<HelperShared>,
    reader: Option<JoinHandle<()>>,
    ending: Option<Ending>,
}

/// The state that the device shares with its reader thread, which reads the helper's answers.
#[derive(Default)]
struct HelperShared {
    state: Mutex<State>,
    fewer: Condvar,
}

#[derive(Default)]
struct State {
    finished: Vec<Answer>,
    /// Number of operations that the helper has not answered.
    outstanding: usize,
    dead: bool,
}

impl HelperShared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the helper's answers until the socket closes.
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
    fn start(start: &mut Starter, owner: Waker) -> std::io::Result<Self> {
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

    /// Blocks until the helper has fewer than `block_at` unanswered operations, or is dead. Then
    /// counts one more operation. Returns false if the helper is dead.
    fn admit(&self, block_at: usize) -> bool {
        let full = |state: &mut State| state.outstanding >= block_at && !state.dead;
        let state = self.shared.fewer.wait_while(self.shared.lock(), full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        state.outstanding += 1;
        !state.dead
    }

    fn send(&self, message: &[u8]) {
        if (&self.socket).write_all(message).is_err() {
            // The reader thread notices the closed socket and fails the pending operations.
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Running {
    /// Waits until the helper has performed all sent operations and has ended.
    fn drop(&mut self) {
        // Ignore the error: if the helper is gone, the socket is already shut down.
        let _ = self.socket.shutdown(Shutdown::Write);
        if let Some(reader) = self.reader.take() {
            // Ignore the error: a reader thread that panicked has already printed its panic
            // message.
            let _ = reader.join();
        }
        if let Some(ending) = self.ending.take() {
            ending();
        }
    }
}

impl Helper {
    /// Creates a device. `start` starts a helper process and passes it the socket for [`serve`]. It
    /// returns a function that waits for the end of this process. `submit` blocks while `block_at`
    /// operations are unanswered. Squid's diskd has the same limit, called Q2.
    ///
    /// # Errors
    /// Returns an error if the socket, the helper or the reader thread cannot be started.
    pub fn new(
        block_at: usize,
        start: impl FnMut(UnixStream) -> std::io::Result<Ending> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (mut start, parker): (Starter, _) = (Box::new(start), Parker::default());
        let running = Running::start(&mut start, parker.waker())?;
        Ok(Self {
            start,
            running,
            pending: HashMap::new(),
            completed: Vec::new(),
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

    /// Collects the helper's answers. If the helper is dead, all operations without an answer fail.
    fn collect(&mut self) {
        let mut state = self.running.shared.lock();
        let (finished, dead) = (std::mem::take(&mut state.finished), state.dead);
        drop(state);
        for answer in finished {
            let done = self.finish(answer);
            self.completed.extend(done);
        }
        if dead {
            let failed =
                |(id, buffer)| IoDone { id, result: Err::<IoOutput, _>(IoError::Device), buffer };
            self.completed.extend(self.pending.drain().map(failed));
            self.files.forget_opening();
        }
    }

    /// Starts a new helper process if the helper is dead and the pause between two starts is over.
    fn revive(&mut self, now: Instant) {
        if !self.running.is_dead() || !self.back_off.is_over(now) {
            return;
        }
        self.collect();
        let Ok(running) = Running::start(&mut self.start, self.parker.waker()) else { return };
        // Replace the old helper. Dropping it does not block, because the old helper is dead.
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
        self.pending.insert(id, op.into_buffer());
        if self.running.admit(self.block_at) {
            self.running.send(&message);
        }
    }

    fn reap(&mut self, _now: Instant, done: &mut Vec<IoDone>) {
        self.collect();
        done.append(&mut self.completed);
    }

    fn next_completion(&self) -> Option<Instant> {
        None
    }

    fn in_flight(&self) -> usize {
        self.pending.len() + self.completed.len()
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
        if !ready && self.completed.is_empty() {
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
