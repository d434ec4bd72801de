//! A device in memory, for tests and simulations: a whole file tree, deterministic, every operation
//! finished at once. A volatile one can play a crash; it injects no other faults ([`crate::faulty`]
//! does) and models no time.
//!
//! What survives [`Memory::crash`] on a volatile device is the worst that `io` allows:
//! - Writes, truncations and trims of a file, and the sizes they give, are volatile until a `Sync`
//!   of that file. Until then each of them survives whole, torn at 512-byte sectors, or not at all,
//!   whatever became of those before and after it. The device writes the oldest back by itself once
//!   32 MiB of changes of one file wait.
//! - The name of a created file is volatile until a `Sync` of the file. One that survives without
//!   it leads to what survived of the file, which may be empty.
//! - A removed name may come back with what was durable, one that was made anew with the old
//!   file's; of the 64 names removed last, until the crash decides. Directories are durable at
//!   once.
//! - Operations not yet reaped count as not completed; no id is open afterwards.

mod content;
mod crash;
mod file;
mod tree;

pub use crash::CrashPolicy;

use crate::buffer::IoBuffer;
use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, IoOutput, StorePath, range_end};
use crate::park::{BlockingDevice, Parker, Waker};
use crate::tree::Place;
use foxy_base::{Instant, Random};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
pub(crate) use tree::FileNumber;
use tree::Tree;

/// Bytes of changes remembered for one file before the oldest are written back.
const WRITE_BACK_LIMIT: u64 = 32 << 20;

/// The device.
#[derive(Debug)]
pub struct Memory {
    tree: Tree,
    open: BTreeMap<FileId, FileNumber>,
    finished: VecDeque<(Instant, IoDone)>,
    parker: Parker,
}

impl Default for Memory {
    /// An empty device on which everything is durable at once.
    fn default() -> Self {
        Self::from_tree(Tree::new(0))
    }
}

impl Memory {
    /// An empty device that remembers what is not durable yet, at twice the memory.
    #[must_use]
    pub fn volatile() -> Self {
        Self::from_tree(Tree::new(WRITE_BACK_LIMIT))
    }

    /// A device with the same files, durable or not; nothing is open or in flight on it. Content is
    /// shared until it is written to.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut tree = self.tree.clone();
        for &number in self.open.values() {
            tree.release(number);
        }
        Self::from_tree(tree)
    }

    /// Bytes in all files that have a name.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// Puts a blank block device of `size` bytes at a path, as [`IoOp::OpenBlockDevice`] opens it.
    ///
    /// # Panics
    /// When the path's folder does not exist, or something else is there.
    pub fn add_block_device(&mut self, path: StorePath, size: u64) {
        let number = self.tree.create(path).expect("a free name in a folder that exists");
        self.tree.file_mut(number).become_block_device(size);
        self.tree.sync(number);
    }

    /// What a file holds now.
    #[must_use]
    pub fn content(&self, path: &StorePath) -> Option<Vec<u8>> {
        let content = self.tree.file(self.tree.find(path).ok()?).current();
        let mut bytes = vec![0; usize::try_from(content.size()).ok()?];
        content.read(0, &mut bytes);
        Some(bytes)
    }

    /// Flips the bits of `mask` in one byte of a file for good, as a medium that rots. False when
    /// there is no such byte.
    pub fn rot(&mut self, path: &StorePath, offset: u64, mask: u8) -> bool {
        self.tree.find(path).is_ok_and(|number| self.tree.file_mut(number).rot(offset, mask))
    }

    /// Lets go of every open file, as the end of a process does. Completions not yet reaped are
    /// dropped.
    pub fn close_all(&mut self) {
        self.finished.clear();
        for number in std::mem::take(&mut self.open).into_values() {
            self.tree.release(number);
        }
    }

    /// Plays a crash of the whole machine: see the module's rules. The device then is as a process
    /// finds it after the restart.
    pub fn crash(&mut self, policy: &CrashPolicy, random: &mut Random) {
        self.close_all();
        self.tree.crash(policy, random);
    }

    fn from_tree(tree: Tree) -> Self {
        Self { tree, open: BTreeMap::new(), finished: VecDeque::new(), parker: Parker::default() }
    }

    /// The ids of all open files.
    pub(crate) fn open_files(&self) -> Vec<FileId> {
        self.open.keys().copied().collect()
    }

    /// The file an id leads to.
    pub(crate) fn number(&self, file: FileId) -> Result<FileNumber, IoError> {
        self.open.get(&file).copied().ok_or(IoError::NotOpen)
    }

    /// The file a path leads to.
    pub(crate) fn find(&self, path: &StorePath) -> Result<FileNumber, IoError> {
        self.tree.find(path)
    }

    /// The number that the next file to be created gets.
    pub(crate) const fn next_number(&self) -> FileNumber {
        self.tree.next_number()
    }

    /// The size of a file in bytes; none once nothing leads to it.
    pub(crate) fn size_of(&self, number: FileNumber) -> Option<u64> {
        self.tree.size_of(number)
    }

    /// The size of an open file, in bytes.
    pub(crate) fn size(&self, file: FileId) -> Result<u64, IoError> {
        Ok(self.tree.file(self.number(file)?).current().size())
    }

    /// Makes an open file at least `size` bytes long, without bytes.
    pub(crate) fn extend(&mut self, file: FileId, size: u64) -> Result<(), IoError> {
        let number = self.number(file)?;
        self.tree.file_mut(number).extend(size);
        Ok(())
    }

    /// Queues the completion of an operation that was carried out elsewhere.
    pub(crate) fn finish(&mut self, done: IoDone, now: Instant) {
        self.finished.push_back((now, done));
    }

    /// Gives the file an id; one that had it before is let go.
    fn assign(&mut self, file: FileId, number: FileNumber) {
        self.tree.acquire(number);
        if let Some(old) = self.open.insert(file, number) {
            self.tree.release(old);
        }
    }

    fn read(&self, file: FileId, offset: u64, buffer: &mut IoBuffer) -> Result<IoOutput, IoError> {
        let number = self.number(file)?;
        range_end(offset, buffer.len() as u64)?;
        Ok(IoOutput::Moved {
            count: self.tree.file(number).current().read(offset, buffer.as_mut()),
        })
    }

    fn write(&mut self, file: FileId, offset: u64, buffer: &IoBuffer) -> Result<IoOutput, IoError> {
        let (number, limit) = (self.number(file)?, self.tree.limit);
        let end = range_end(offset, buffer.len() as u64)?;
        let file = self.tree.file_mut(number);
        if file.place == Place::BlockDevice && end > file.current().size() {
            return Err(IoError::NoSpace);
        }
        file.write(offset, buffer.as_ref(), limit);
        Ok(IoOutput::Moved { count: buffer.len() })
    }

    fn open(&mut self, file: FileId, path: &StorePath, place: Place) -> Result<IoOutput, IoError> {
        let number = self.tree.find(path)?;
        if self.tree.file(number).place != place {
            return Err(IoError::WrongKind);
        }
        self.assign(file, number);
        Ok(IoOutput::Opened { size: self.tree.file(number).current().size() })
    }

    fn create(&mut self, file: FileId, path: StorePath, size: u64) -> Result<IoOutput, IoError> {
        range_end(0, size)?;
        let (number, limit) = (self.tree.create(path)?, self.tree.limit);
        if self.tree.file(number).place == Place::BlockDevice {
            return Err(IoError::WrongKind);
        }
        self.tree.file_mut(number).restart(size, limit);
        self.assign(file, number);
        Ok(IoOutput::Done)
    }

    fn close(&mut self, file: FileId) -> Result<IoOutput, IoError> {
        let number = self.open.remove(&file).ok_or(IoError::NotOpen)?;
        self.tree.release(number);
        Ok(IoOutput::Done)
    }

    fn sync(&mut self, file: FileId) -> Result<IoOutput, IoError> {
        let number = self.number(file)?;
        self.tree.sync(number);
        Ok(IoOutput::Done)
    }

    fn trim(&mut self, file: FileId, offset: u64, length: u64) -> Result<IoOutput, IoError> {
        let (number, limit) = (self.number(file)?, self.tree.limit);
        range_end(offset, length)?;
        let file = self.tree.file_mut(number);
        if file.place == Place::File {
            file.zero(offset, length, limit);
        }
        Ok(IoOutput::Done)
    }
}

impl Device for Memory {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        let (result, buffer) = match op {
            IoOp::Read { file, offset, mut buffer } => {
                (self.read(file, offset, &mut buffer), Some(buffer))
            }
            IoOp::Write { file, offset, buffer } => {
                (self.write(file, offset, &buffer), Some(buffer))
            }
            IoOp::Open { file, path } => (self.open(file, &path, Place::File), None),
            IoOp::OpenBlockDevice { file, path } => {
                (self.open(file, &path, Place::BlockDevice), None)
            }
            IoOp::Create { file, path, size } => (self.create(file, path, size), None),
            IoOp::Close { file } => (self.close(file), None),
            IoOp::Sync { file } => (self.sync(file), None),
            IoOp::Remove { path } => (self.tree.remove(path).map(|()| IoOutput::Done), None),
            IoOp::MakeDir { path } => {
                (self.tree.make_directory(path).map(|()| IoOutput::Done), None)
            }
            IoOp::List { path } => (self.tree.list(&path).map(IoOutput::Listing), None),
            IoOp::Trim { file, offset, length } => (self.trim(file, offset, length), None),
        };
        self.finish(IoDone { id, result, buffer }, now);
    }

    fn reap(&mut self, _now: Instant, done: &mut Vec<IoDone>) {
        done.extend(self.finished.drain(..).map(|(_, done)| done));
    }

    fn next_completion(&self) -> Option<Instant> {
        self.finished.front().map(|&(since, _)| since)
    }

    fn in_flight(&self) -> usize {
        self.finished.len()
    }
}

impl BlockingDevice for Memory {
    fn wait(&mut self, timeout: Option<Duration>) {
        if self.finished.is_empty() {
            self.parker.wait(timeout);
        }
    }

    fn waker(&self) -> Waker {
        self.parker.waker()
    }
}
