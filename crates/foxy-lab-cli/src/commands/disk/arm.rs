//! The thread of one modelled disk of `foxy disk serve`. It passes each request to the model of a
//! mechanical disk and waits as long as the model needs. Then it moves the bytes and answers.

use foxy_base::{Instant, clock};
use foxy_device::{DiskProfile, MechanicalCounts, RawDisk, RequestKind};
use fuser::{Errno, ReplyData, ReplyWrite};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A read or write that the kernel requests, with the object that sends the answer.
pub enum DiskJob {
    Read {
        offset: u64,
        length: u64,
        reply: ReplyData,
    },
    Write {
        offset: u64,
        data: Vec<u8>,
        reply: ReplyWrite,
    },
    /// Ends the thread of the disk. Requests that still wait fail.
    Stop,
}

/// A modelled disk and the thread that performs its requests.
pub struct Arm {
    jobs: Sender<DiskJob>,
    thread: JoinHandle<MechanicalCounts>,
}

impl Arm {
    /// Starts the disk with an empty, sparse file without a name in the folder `backing`. The disk
    /// is faster than the modelled disk by `factor`.
    pub fn start(
        profile: &DiskProfile,
        seed: u64,
        factor: f64,
        backing: &Path,
    ) -> io::Result<Self> {
        let content = foxy_cli::temporary::file_without_name(backing)?;
        content.set_len(profile.capacity())?;
        let (jobs, received) = channel();
        let model_clock = ModelClock { began: clock::monotonic(), factor };
        let disk = RawDisk::new(profile, seed);
        let work = DiskThread { disk, clock: model_clock, content, waiting: HashMap::new() };
        let thread = std::thread::Builder::new().name("disk".into());
        let thread = thread.spawn(move || work.run(&received))?;
        Ok(Self { jobs, thread })
    }

    pub fn sender(&self) -> Sender<DiskJob> {
        self.jobs.clone()
    }

    /// Ends the thread of the disk. Returns the counts of the disk's operations.
    pub fn stop(self) -> MechanicalCounts {
        // The send fails only if the thread has ended after a panic. Then there is no thread to
        // stop.
        let _ = self.jobs.send(DiskJob::Stop);
        self.thread.join().unwrap_or_default()
    }
}

/// Converts between real time and the time of the model.
struct ModelClock {
    began: Instant,
    factor: f64,
}

impl ModelClock {
    fn now(&self) -> Instant {
        Instant::ZERO + clock::monotonic().since(self.began).mul_f64(self.factor)
    }

    /// Returns how much real time passes until the model reaches `time`. Returns zero if the model
    /// has already passed it.
    fn until(&self, time: Instant) -> Duration {
        time.since(self.now()).div_f64(self.factor)
    }
}

struct DiskThread {
    disk: RawDisk,
    clock: ModelClock,
    content: File,
    waiting: HashMap<u64, DiskJob>,
}

impl DiskThread {
    fn run(mut self, jobs: &Receiver<DiskJob>) -> MechanicalCounts {
        loop {
            let next = match self.disk.next_finish() {
                None => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(time) => jobs.recv_timeout(self.clock.until(time)),
            };
            match next {
                Ok(DiskJob::Stop) | Err(RecvTimeoutError::Disconnected) => {
                    return self.disk.counts();
                }
                Ok(job) => self.queue(job),
                Err(RecvTimeoutError::Timeout) => self.finish_due(),
            }
        }
    }

    fn queue(&mut self, job: DiskJob) {
        let (kind, offset, bytes) = match &job {
            DiskJob::Read { offset, length, .. } => (RequestKind::Read, *offset, *length),
            DiskJob::Write { offset, data, .. } => (RequestKind::Write, *offset, data.len() as u64),
            DiskJob::Stop => return,
        };
        self.finish_due();
        let id = self.disk.submit(kind, offset, bytes, self.clock.now());
        self.waiting.insert(id, job);
    }

    /// Answers all requests that the model has finished by now.
    fn finish_due(&mut self) {
        while self.disk.next_finish().is_some_and(|time| time <= self.clock.now()) {
            let Some((id, _)) = self.disk.finish() else { return };
            if let Some(job) = self.waiting.remove(&id) {
                self.answer(job);
            }
        }
    }

    fn answer(&self, job: DiskJob) {
        match job {
            DiskJob::Read { offset, length, reply } => {
                let mut data = vec![0; usize::try_from(length).unwrap_or(0)];
                match self.content.read_exact_at(&mut data, offset) {
                    Ok(()) => reply.data(&data),
                    Err(_) => reply.error(Errno::EIO),
                }
            }
            DiskJob::Write { offset, data, reply } => {
                match (self.content.write_all_at(&data, offset), u32::try_from(data.len())) {
                    (Ok(()), Ok(length)) => reply.written(length),
                    _ => reply.error(Errno::EIO),
                }
            }
            DiskJob::Stop => {}
        }
    }
}
