//! A real disk through a small pool of threads with blocking system calls. Works everywhere,
//! containers included.

use crate::buffer::IoBuffer;
use crate::files::Files;
use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, IoOutput};
use crate::park::{BlockingDevice, Parker, Waker};
use crate::reader::Reader;
use crate::root::Root;
use crate::transfer;
use crate::tree::{self, OpenFile};
use foxy_base::Instant;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Whether large files are read and written past the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectIo {
    /// Everything goes through the page cache.
    Off,
    /// Aligned transfers on files of a megabyte and more go past it, where the file system can.
    WhenAligned,
}

/// Who writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writes {
    /// The threads, like all else.
    Queued,
    /// The owner, before `submit` returns, as Squid's aufs did (R63).
    Waited,
}

/// The device.
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
    jobs: VecDeque<(IoId, Job)>,
    closing: bool,
}

/// An operation with its file looked up.
#[derive(Debug)]
enum Job {
    Named(IoOp),
    Read { file: Arc<OpenFile>, offset: u64, buffer: IoBuffer },
    Write { file: Arc<OpenFile>, offset: u64, buffer: IoBuffer },
    Sync { file: Arc<OpenFile> },
    Trim { file: Arc<OpenFile>, offset: u64, length: u64 },
}

#[derive(Debug)]
struct Finished {
    done: IoDone,
    opened: Option<(FileId, OpenFile)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Threads {
    /// A device on `root` with `threads` threads (at least one).
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn new(root: &Root, threads: usize, direct: DirectIo) -> std::io::Result<Self> {
        let parker = Parker::default();
        let owner = parker.waker();
        Self::start(root, threads, direct, parker, owner)
    }

    /// The same device, with another one writing.
    #[must_use]
    pub const fn writing(mut self, writes: Writes) -> Self {
        self.writes = writes;
        self
    }

    /// A device whose owner sleeps elsewhere and is woken by `owner`; its own `wait` is not to be
    /// used.
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

    /// The open file of that name.
    pub(crate) fn file(&self, file: FileId) -> Option<Arc<OpenFile>> {
        self.files.get(file)
    }

    /// Whether `reap` would give something.
    pub(crate) fn has_finished(&self) -> bool {
        !lock(&self.shared.finished).is_empty()
    }

    /// Looks the operation's file up; an operation on a file that is not open fails at once.
    fn prepare(&mut self, op: IoOp) -> Result<Job, (IoError, Option<IoBuffer>)> {
        let find = |file: FileId| self.file(file);
        match op {
            IoOp::Read { file, offset, buffer } => match find(file) {
                Some(file) => Ok(Job::Read { file, offset, buffer }),
                None => Err((IoError::NotOpen, Some(buffer))),
            },
            IoOp::Write { file, offset, buffer } => match find(file) {
                Some(file) => Ok(Job::Write { file, offset, buffer }),
                None => Err((IoError::NotOpen, Some(buffer))),
            },
            IoOp::Sync { file } => {
                find(file).map(|file| Job::Sync { file }).ok_or((IoError::NotOpen, None))
            }
            IoOp::Trim { file, offset, length } => find(file)
                .map(|file| Job::Trim { file, offset, length })
                .ok_or((IoError::NotOpen, None)),
            named => Ok(Job::Named(named)),
        }
    }

    fn finish(&self, id: IoId, result: Result<IoOutput, IoError>, buffer: Option<IoBuffer>) {
        lock(&self.shared.finished)
            .push(Finished { done: IoDone { id, result, buffer }, opened: None });
    }
}

impl Device for Threads {
    fn submit(&mut self, id: IoId, op: IoOp, _now: Instant) {
        self.in_flight += 1;
        if let IoOp::Close { file } = op {
            // Jobs in flight hold the descriptor; it is closed with the last of them.
            let result = self.files.remove(file).map(|_| IoOutput::Done).ok_or(IoError::NotOpen);
            return self.finish(id, result, None);
        }
        match self.prepare(op) {
            Ok(job @ Job::Write { .. }) if self.writes == Writes::Waited => {
                let finished = self.shared.carry_out(id, job);
                lock(&self.shared.finished).push(finished);
            }
            Ok(job) => {
                lock(&self.shared.queue).jobs.push_back((id, job));
                self.shared.work.notify_one();
            }
            Err((error, buffer)) => self.finish(id, Err(error), buffer),
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
        // What goes past the page cache is not in it.
        (self.shared.direct == DirectIo::Off).then(|| Reader::new(Arc::clone(&self.files)))
    }
}

impl Drop for Threads {
    /// Finishes what was submitted, so that a store that closes loses nothing.
    fn drop(&mut self) {
        lock(&self.shared.queue).closing = true;
        self.shared.work.notify_all();
        for thread in self.threads.drain(..) {
            // A panic in a disk thread has been printed by it; there is nothing to add while
            // dropping.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn work(&self) {
        while let Some((id, job)) = self.take() {
            let finished = self.carry_out(id, job);
            lock(&self.finished).push(finished);
            self.owner.wake();
        }
    }

    fn take(&self) -> Option<(IoId, Job)> {
        let queue = lock(&self.queue);
        let idle = |queue: &mut Queue| queue.jobs.is_empty() && !queue.closing;
        let mut queue = self.work.wait_while(queue, idle).unwrap_or_else(PoisonError::into_inner);
        queue.jobs.pop_front()
    }

    fn carry_out(&self, id: IoId, job: Job) -> Finished {
        let (result, buffer, opened) = match job {
            Job::Read { file, offset, mut buffer } => {
                (transfer::read(&file, offset, &mut buffer), Some(buffer), None)
            }
            Job::Write { file, offset, buffer } => {
                (transfer::write(&file, offset, &buffer), Some(buffer), None)
            }
            Job::Sync { file } => {
                (tree::sync(&self.root, &file).map(|()| IoOutput::Done), None, None)
            }
            Job::Trim { file, offset, length } => {
                (transfer::trim(&file, offset, length), None, None)
            }
            Job::Named(op) => {
                let direct = self.direct == DirectIo::WhenAligned;
                let (result, opened) = tree::carry_out(&self.root, op, direct);
                return Finished { done: IoDone { id, result, buffer: None }, opened };
            }
        };
        Finished { done: IoDone { id, result: result.map_err(IoError::from), buffer }, opened }
    }
}
