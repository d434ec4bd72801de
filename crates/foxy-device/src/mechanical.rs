//! A model of mechanical disks in simulated time, with an FFS-like file system and a page cache.
//! Each operation takes the time of its disk requests. A [`Memory`] device stores the file content.
//! `foxy figure requirements` lists the requirements that the model meets (R3, R24, R85 to R88).
//!
//! - The owner passes the simulated time as `now`; the model reads no clock. A random seed and the
//!   sequence of calls determine all times. [`Device::next_completion`] may return a time before
//!   the next result, because one step of an operation or a background write ends then. In this
//!   case `reap` returns nothing, and the next call of `next_completion` returns a later time.
//!   `next_completion` never returns a time after the next result.
//! - Only disk requests and the processor's search for a name in a directory
//!   ([`SystemProfile::search_rate`]) take time. As in Solaris, `Create` searches the whole
//!   directory twice: for the name and for a free entry. `Open` starts its search at the place
//!   where the last search ended. `Remove` searches like `Open`, then from the start of the
//!   directory to the name. Names and inodes of directories are always cached. The disk block with
//!   a file's inode may have to be read first.
//! - Several disks work in parallel. Directories and files in the root directory are assigned to
//!   the disks in turn. The content of a directory is on the directory's disk.
//! - A write of a part of a page waits until the page was read, if the page has data and is not
//!   cached. Any other write waits only if too many writes are in flight
//!   ([`SystemProfile::write_behind`]). `Create` with a size assigns disk space without cost, as if
//!   the file had been written long ago. `Trim` takes no time and frees no space. A `Sync` waits
//!   for the requests in flight of its file.
//! - A full disk returns [`IoError::NoSpace`]. A `Create` that does not fit leaves no file. All
//!   other errors come from [`Memory`].

mod aging;
mod bitmap;
mod buffer;
mod calibration;
mod counts;
mod engine;
mod geometry;
mod layout;
#[cfg(test)]
mod layout_tests;
mod lru;
mod names;
mod naming;
mod operations;
mod pages;
mod profile;
mod raw_disk;
mod spindle;

pub use calibration::{Calibration, CalibrationLine, calibrate};
pub use counts::{MechanicalCounts, RequestKind, ServiceRecord};
pub use profile::{AccessTimes, DiskProfile, MetadataMode, SECTOR, Scheduling, SystemProfile};
pub use raw_disk::RawDisk;

use crate::io::{Device, IoDone, IoError, IoId, IoOp, StorePath};
use crate::memory::{FileNumber, Memory};
use crate::park::{BlockingDevice, Parker, Waker};
use aging::Aging;
use counts::Log;
use engine::{Operation, OperationId, Pending, Processor, Volume};
use foxy_base::{Instant, Random};
use geometry::Geometry;
use lru::Lru;
use names::{Directories, Directory, PlacedFile};
use spindle::{RequestId, Spindle};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// A device that consists of simulated disks.
#[derive(Debug)]
pub struct Mechanical {
    inner: Memory,
    /// Results of the inner `Memory` device, which stores the content. This field exists to reuse
    /// the allocation.
    completed: Vec<IoDone>,
    profile: DiskProfile,
    volumes: Vec<Volume>,
    directories: Directories,
    files: HashMap<FileNumber, PlacedFile>,
    /// Files in the name cache (LRU). Opening such a file needs no search of its directory.
    names: Lru<FileNumber, ()>,
    processor: Processor,
    /// Changed inode and directory blocks and changed file pages that wait for their write to the
    /// disk.
    aging: Aging,
    /// Cached pages (LRU) by content number and page number. The value is the disk request that
    /// last read the page.
    pages: Lru<(u64, u64), RequestId>,
    operations: HashMap<OperationId, Operation>,
    requests: HashMap<RequestId, Pending>,
    /// The last number that the model has given. Disk requests, operations and file contents take
    /// their numbers from this one sequence.
    last_number: u64,
    ready: VecDeque<(Instant, IoDone)>,
    now: Instant,
    log: Log,
    parker: Parker,
}

impl Mechanical {
    /// Creates an empty device on `spindles` simulated disks of one kind. If `spindles` is 0, the
    /// device has one disk. The random `seed` determines the start angle of each disk.
    ///
    /// # Panics
    /// Panics if the profile has no sectors. Panics if its cylinder groups (areas of the disk that
    /// FFS fills) have no space for data.
    #[must_use]
    pub fn new(profile: DiskProfile, spindles: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let geometry = Arc::new(Geometry::new(&profile));
        let mut volumes: Vec<Volume> = (0..spindles.max(1))
            .map(|number| {
                let spindle =
                    Spindle::new(number, &profile, Arc::clone(&geometry), random.next_u64());
                Volume::new(spindle, &profile)
            })
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

    /// From now on, keeps a record of each of the last `limit` disk requests. The default of 0
    /// keeps no records.
    pub fn keep_records(&mut self, limit: usize) {
        self.log.keep(limit);
    }

    /// Removes and returns all records of disk requests in the order of completion. Also returns
    /// the number of records that were dropped since the last call, because the limit was reached.
    pub fn take_records(&mut self) -> (Vec<ServiceRecord>, u64) {
        self.log.take()
    }

    /// Returns the sum of the counts of all disks. A disk request is counted when the disk starts
    /// it.
    #[must_use]
    pub fn counts(&self) -> MechanicalCounts {
        let mut sum = MechanicalCounts::default();
        for volume in &self.volumes {
            sum += volume.spindle.counts();
        }
        sum
    }

    /// Returns the counts of disk number `spindle`, counted from 0. Returns `None` if the disk does
    /// not exist.
    #[must_use]
    pub fn counts_of(&self, spindle: usize) -> Option<MechanicalCounts> {
        self.volumes.get(spindle).map(|volume| volume.spindle.counts())
    }

    /// Returns the parameters of the simulated disks.
    #[must_use]
    pub const fn profile(&self) -> &DiskProfile {
        &self.profile
    }

    /// Returns the current content of a file, or `None` if the file does not exist.
    #[must_use]
    pub fn content(&self, path: &StorePath) -> Option<Vec<u8>> {
        self.inner.content(path)
    }

    /// Writes all changed pages and blocks to the disks, starting at `now`. Returns the time at
    /// which the last disk becomes idle.
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

    /// Simulates the end of the process and a restart of the machine. Writes all changed pages and
    /// blocks to the disks, closes all files, and empties all caches. Drops results that were not
    /// reaped. Returns the time at which the disks become idle.
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
            volume.spindle.buffer.clear();
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
    /// Sleeps in real time until the next simulated result or the timeout. So the model is as slow
    /// as the real disk. The wait for the result and the timeout both start at the last `now` of
    /// the owner.
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
    fn apply(&mut self, id: IoId, op: IoOp) -> IoDone {
        self.inner.submit(id, op, self.now);
        self.inner.reap(self.now, &mut self.completed);
        self.completed.pop().expect("memory completes at once")
    }

    fn fail(&mut self, id: IoId, op: IoOp, error: IoError) {
        let done = IoDone { id, result: Err(error), buffer: op.into_buffer() };
        self.ready.push_back((self.now, done));
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}
