//! A device for a real disk: a small pool of threads makes blocking system calls. The device works
//! wherever threads work, including containers that forbid io_uring.

use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, IoOutput};
use crate::open_file::{Files, OpenFile};
use crate::park::{BlockingDevice, Parker, Waker};
use crate::reader::Reader;
use crate::root::Root;
use crate::tree::{self, Finished};
use foxy_base::Instant;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Whether IO bypasses the page cache of the operating system (O_DIRECT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectIo {
    /// All reads and writes use the page cache.
    Off,
    /// Reads and writes bypass the page cache if they are aligned, the file has at least 1 MiB, and
    /// the file system supports this.
    WhenAligned,
}

/// Chooses the thread that performs writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// A thread of the pool performs the write, like every other operation.
    Queued,
    /// The thread that calls `submit` performs the write before `submit` returns. Squid's store
    /// type `aufs` works in this way.
    Waited,
}

/// A device whose operations run on a pool of threads.
#[derive(Debug)]
pub struct Threads {
    shared: Arc<Shared>,
    parker: Parker,
    files: Arc<Files>,
    in_flight: usize,
    writes: Writes,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    root: Arc<OwnedFd>,
    direct: DirectIo,
    queue: Mutex<Queue>,
    work: Condvar,
    finished: Mutex<Vec<Finished>>,
    owner: Waker,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closing: bool,
}

/// An operation for the pool of threads, together with its open file.
#[derive(Debug)]
struct Job {
    id: IoId,
    op: IoOp,
    file: Option<Arc<OpenFile>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    /// Creates a device for the folder `root` with `threads` threads. Starts at least one thread.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started.
    pub fn new(root: &Root, threads: usize, direct: DirectIo) -> std::io::Result<Self> {
        let parker = Parker::default();
        let owner = parker.waker();
        Self::start(root, threads, direct, parker, owner)
    }

    /// Sets which thread performs writes: a thread of the pool or the submitting thread.
    #[must_use]
    pub const fn writing(mut self, writes: Writes) -> Self {
        self.writes = writes;
        self
    }

    /// Creates a device that calls `owner` to wake the thread that uses the device. This thread
    /// sleeps in another way (in io_uring), and must not call `wait`.
    pub(crate) fn for_owner(
        root: &Root,
        threads: usize,
        direct: DirectIo,
        owner: Waker,
    ) -> std::io::Result<Self> {
        Self::start(root, threads, direct, Parker::default(), owner)
    }

    fn start(
        root: &Root,
        threads: usize,
        direct: DirectIo,
        parker: Parker,
        owner: Waker,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            root: root.directory(),
            direct,
            queue: Mutex::default(),
            work: Condvar::new(),
            finished: Mutex::default(),
            owner,
        });
        let (files, writes) = (Arc::default(), Writes::Queued);
        let mut device = Self { shared, parker, files, in_flight: 0, writes, threads: Vec::new() };
        for _ in 0..threads.max(1) {
            let shared = Arc::clone(&device.shared);
            let thread = std::thread::Builder::new().name("foxy-disk".into());
            device.threads.push(thread.spawn(move || shared.work())?);
        }
        Ok(device)
    }

    pub(crate) fn file(&self, file: FileId) -> Option<Arc<OpenFile>> {
        self.files.get(file)
    }

    pub(crate) fn has_finished(&self) -> bool {
        !lock(&self.shared.finished).is_empty()
    }
}

impl Device for Threads {
    fn submit(&mut self, id: IoId, op: IoOp, _now: Instant) {
        self.in_flight += 1;
        if let IoOp::Close { file } = op {
            // Jobs in progress share the descriptor. The operating system closes the file after the
            // last of these jobs.
            let result = self.files.remove(file).map(|_| IoOutput::Done).ok_or(IoError::NotOpen);
            let done = IoDone { id, result, buffer: None };
            return lock(&self.shared.finished).push(Finished { done, opened: None });
        }
        let named = op.open_file();
        let job = Job { id, op, file: named.and_then(|file| self.file(file)) };
        let is_not_open = named.is_some() && job.file.is_none();
        let is_waited = self.writes == Writes::Waited && matches!(job.op, IoOp::Write { .. });
        if is_not_open || is_waited {
            let finished = self.shared.carry_out(job);
            lock(&self.shared.finished).push(finished);
        } else {
            lock(&self.shared.queue).jobs.push_back(job);
            self.shared.work.notify_one();
        }
    }

    fn reap(&mut self, _now: Instant, done: &mut Vec<IoDone>) {
        let finished = std::mem::take(&mut *lock(&self.shared.finished));
        self.in_flight -= finished.len();
        for item in finished {
            if let Some((file, open)) = item.opened {
                self.files.insert(file, open);
            }
            done.push(item.done);
        }
    }

    fn next_completion(&self) -> Option<Instant> {
        None
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl BlockingDevice for Threads {
    fn wait(&mut self, timeout: Option<Duration>) {
        if !self.has_finished() {
            self.parker.wait(timeout);
        }
    }

    fn waker(&self) -> Waker {
        self.parker.waker()
    }

    fn reader(&self) -> Option<Reader> {
        // With direct IO, the page cache often lacks the content, because direct IO bypasses the
        // page cache.
        (self.shared.direct == DirectIo::Off).then(|| Reader::new(Arc::clone(&self.files)))
    }
}

impl Drop for Threads {
    /// Finishes all submitted operations, so that closing a store loses no writes.
    fn drop(&mut self) {
        lock(&self.shared.queue).closing = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A disk thread that panicked has already printed its panic message.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        while let Some(job) = self.take() {
            let finished = self.carry_out(job);
            lock(&self.finished).push(finished);
            self.owner.wake();
        }
    }

    fn take(&self) -> Option<Job> {
        let queue = lock(&self.queue);
        let idle = |queue: &mut Queue| queue.jobs.is_empty() && !queue.closing;
        let mut queue = self.work.wait_while(queue, idle).unwrap_or_else(PoisonError::into_inner);
        queue.jobs.pop_front()
    }

    fn carry_out(&self, Job { id, op, file }: Job) -> Finished {
        tree::carry_out(&self.root, id, op, file.as_deref(), self.direct == DirectIo::WhenAligned)
    }
}
