//! A device on a model of mechanical disks, in virtual time: content is exactly [`Memory`]'s, and
//! every operation takes as long as its requests take a disk arm with an FFS-like file system and a
//! page cache above it (R3, R24, R85–R88).
//!
//! - Time is whatever `now` its owner gives; nothing here reads a clock or sleeps by itself. The
//!   same seed and the same calls give the same times. [`Device::next_completion`] never lies
//!   behind the next completion, but may lie before it (a step of an operation, or a write nobody
//!   waits for): then `reap` gives nothing, and the next answer is later.
//! - Time is the disks', and what the processor takes to search a directory for a file's name
//!   ([`SystemProfile::search_rate`]). As in Solaris, a `Create` goes through all of it twice, to
//!   look the name up and for room; `Open` looks up from where the last look-up ended, and `Remove`
//!   then goes from the front to the name. All else is done at once. The names of directories and
//!   their inodes are always found; those of files, and what is looked at on the way, are in blocks
//!   that may have to be read.
//! - Several disks work side by side. Directories in the root are dealt to them in turn, as are
//!   files in the root; all that is made in a directory lies on its disk.
//! - A write waits for the read of pages it covers in part, where these hold something and are not
//!   in memory, and else only for room in the queue ([`SystemProfile::write_behind`]). `Create`
//!   with a size places its pages without a cost, as if the file had been written long ago. `Trim`
//!   costs and frees nothing. A `Sync` waits for what is under way of its file.
//! - A full disk is [`IoError::NoSpace`], and a `Create` that does not fit leaves no file. Nothing
//!   else fails that would not in memory.

mod aging;
mod bitmap;
mod buffer;
mod calibration;
mod counts;
mod engine;
mod extents;
mod geometry;
mod layout;
#[cfg(test)]
mod layout_tests;
mod lru;
mod names;
mod naming;
mod operations;
mod pages;
mod processor;
mod profile;
mod queue;
mod spindle;
mod volume;

pub use calibration::{Calibration, CalibrationLine, calibrate};
pub use counts::{MechanicalCounts, RequestKind, ServiceRecord};
pub use profile::{AccessTimes, DiskProfile, MetadataMode, SECTOR, Scheduling, SystemProfile};

use crate::io::{Device, IoDone, IoError, IoId, IoOp, StorePath};
use crate::memory::{FileNumber, Memory};
use crate::park::{BlockingDevice, Parker, Waker};
use aging::Aging;
use counts::Log;
use engine::{Operation, Pending};
use foxy_base::{Instant, Random};
use geometry::Geometry;
use lru::Lru;
use names::{Directories, Directory, PlacedFile};
use processor::Processor;
use queue::RequestId;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use volume::{OperationId, Volume};

/// The device.
#[derive(Debug)]
pub struct Mechanical {
    inner: Memory,
    /// Where the inner device's completions land, one at a time.
    completed: Vec<IoDone>,
    profile: DiskProfile,
    volumes: Vec<Volume>,
    directories: Directories,
    files: HashMap<FileNumber, PlacedFile>,
    /// Files whose names are known, so that opening them needs no directory.
    names: Lru<FileNumber, ()>,
    processor: Processor,
    /// Blocks that were changed, and files that have pages collected for a write.
    aging: Aging,
    /// Pages in memory, with the request that read each last.
    pages: Lru<(u64, u64), RequestId>,
    operations: HashMap<OperationId, Operation>,
    requests: HashMap<RequestId, Pending>,
    /// The last number given to a request, an operation or a content.
    last_number: u64,
    ready: VecDeque<(Instant, IoDone)>,
    now: Instant,
    log: Log,
    parker: Parker,
}

impl Mechanical {
    /// An empty device on `spindles` disks of one kind (at least one), each turned by an angle that
    /// follows from `seed`.
    ///
    /// # Panics
    /// When the profile describes no disk: no sectors, or cylinder groups without room for data.
    #[must_use]
    pub fn new(profile: DiskProfile, spindles: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let geometry = Arc::new(Geometry::new(&profile));
        let mut volumes: Vec<Volume> = (0..spindles.max(1))
            .map(|number| Volume::new(number, &profile, Arc::clone(&geometry), random.next_u64()))
            .collect();
        let roots = volumes.iter_mut().enumerate().map(|(number, volume)| {
            Directory::new(number, &mut volume.layout).expect("an empty disk has room for its root")
        });
        let directories = Directories::new(roots.collect());
        let pages = profile.system.page_cache / u64::from(profile.system.page_size);
        Self {
            inner: Memory::default(),
            completed: Vec::new(),
            profile,
            volumes,
            directories,
            files: HashMap::new(),
            names: Lru::new(usize::try_from(profile.system.name_cache).unwrap_or(usize::MAX)),
            processor: Processor::default(),
            aging: Aging::new(profile.system.write_back_age),
            pages: Lru::new(usize::try_from(pages).unwrap_or(usize::MAX)),
            operations: HashMap::new(),
            requests: HashMap::new(),
            last_number: 0,
            ready: VecDeque::new(),
            now: Instant::ZERO,
            log: Log::default(),
            parker: Parker::default(),
        }
    }

    /// Keeps the records of the last `limit` requests from now on; 0, as at the start, for none.
    pub fn keep_records(&mut self, limit: usize) {
        self.log.keep(limit);
    }

    /// The records kept since the last call in the order of their ends, and how many older ones had
    /// no room.
    pub fn take_records(&mut self) -> (Vec<ServiceRecord>, u64) {
        self.log.take()
    }

    /// What all disks did so far; requests count from their start.
    #[must_use]
    pub fn counts(&self) -> MechanicalCounts {
        let mut sum = MechanicalCounts::default();
        for volume in &self.volumes {
            sum += volume.spindle.counts();
        }
        sum
    }

    /// What one disk did so far, from 0; none where there is no such disk.
    #[must_use]
    pub fn counts_of(&self, spindle: usize) -> Option<MechanicalCounts> {
        self.volumes.get(spindle).map(|volume| volume.spindle.counts())
    }

    /// What the disks are like.
    #[must_use]
    pub const fn profile(&self) -> &DiskProfile {
        &self.profile
    }

    /// What a file holds now.
    #[must_use]
    pub fn content(&self, path: &StorePath) -> Option<Vec<u8>> {
        self.inner.content(path)
    }

    /// Writes back everything that waits to be, from `now` on, and gives when the last disk comes
    /// to rest.
    pub fn settle(&mut self, now: Instant) -> Instant {
        self.advance(now);
        loop {
            for _ in 0..self.aging.count() {
                self.write_back();
            }
            let Some(next) = self.next_finish() else { return self.now };
            self.advance(next);
        }
    }
}

impl Mechanical {
    /// Plays the end of the process that used the device and a restart of the machine: what waits
    /// to be written back is written, files are let go of, and nothing is in memory any more.
    /// Completions not yet reaped are dropped. Gives when the disks come to rest.
    pub fn restart(&mut self, now: Instant) -> Instant {
        let now = self.settle(now);
        for file in self.inner.open_files() {
            self.carry_out(IoId(u64::MAX), IoOp::Close { file });
        }
        let now = self.settle(now);
        self.ready.clear();
        self.pages.clear();
        self.names.clear();
        for volume in &mut self.volumes {
            volume.blocks.clear();
            volume.spindle.forget_buffer();
        }
        now
    }
}

impl Device for Mechanical {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        self.advance(now);
        self.carry_out(id, op);
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        self.advance(now);
        done.extend(self.ready.drain(..).map(|(_, done)| done));
    }

    fn next_completion(&self) -> Option<Instant> {
        match self.ready.front() {
            Some(&(at, _)) => Some(at),
            None if self.operations.is_empty() => None,
            None => self.next_finish(),
        }
    }

    fn in_flight(&self) -> usize {
        self.ready.len() + self.operations.len()
    }
}

impl BlockingDevice for Mechanical {
    /// Sleeps for as long as the next request still takes, seen from the last `now`: in real time
    /// the model is a disk that is as slow as the modelled one.
    fn wait(&mut self, timeout: Option<Duration>) {
        let left = self.next_completion().map(|at| at.since(self.now));
        let timeout = left.into_iter().chain(timeout).min();
        if self.ready.is_empty() {
            self.parker.wait(timeout);
        }
    }

    fn waker(&self) -> Waker {
        self.parker.waker()
    }
}

impl Mechanical {
    /// Carries the operation out on the content.
    fn apply(&mut self, id: IoId, op: IoOp) -> IoDone {
        self.inner.submit(id, op, self.now);
        self.inner.reap(self.now, &mut self.completed);
        self.completed.pop().expect("memory completes at once")
    }

    fn fail(&mut self, id: IoId, op: IoOp, error: IoError) {
        let buffer = match op {
            IoOp::Read { buffer, .. } | IoOp::Write { buffer, .. } => Some(buffer),
            _ => None,
        };
        self.ready.push_back((self.now, IoDone { id, result: Err(error), buffer }));
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}
