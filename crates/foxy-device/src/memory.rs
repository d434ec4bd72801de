//! A deterministic device in memory, for tests and simulations. Each operation finishes at once, so
//! the device models no time. A volatile device (see [`Memory::volatile`]) can also simulate a
//! crash of the machine. This device injects no other faults (see [`crate::faulty`]).
//!
//! After [`Memory::crash`], a volatile device keeps only the state that the module [`crate::io`]
//! guarantees:
//!
//! - Until a `Sync` of a file, a crash may lose the file's writes, truncations and trims, and their
//!   effect on its size. Each change is kept, torn at 512-byte sectors, or lost, independently of
//!   the other changes. A file can have at most 32 MiB of such changes. Beyond this limit, the
//!   device makes the oldest changes durable.
//! - Until a `Sync` of a new file, a crash may lose its name. If the name survives without a
//!   `Sync`, the file has the content that survived, which may be empty.
//! - The name of a removed file may exist again after a crash, with the file's durable content. If
//!   a new file was created under the name, the name may lead to the old file. This rule applies to
//!   the last 64 removed names. Directories are durable at once.
//! - Operations whose results were not reaped count as unfinished. After the crash, no file is
//!   open.

mod content;
mod file;
mod tree;

pub use file::CrashPolicy;

use crate::buffer::IoBuffer;
use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, IoOutput, StorePath, range_end};
use crate::open_file::FileKind;
use crate::park::{BlockingDevice, Parker, Waker};
use foxy_base::{Instant, Random};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
pub(crate) use tree::FileNumber;
use tree::Tree;

/// Limit in bytes of the changes to one file that a crash can undo. Beyond the limit, the oldest
/// changes become durable.
const WRITE_BACK_LIMIT: u64 = 32 << 20;

/// A device that keeps all files in memory.
#[derive(Debug)]
pub struct Memory {
    tree: Tree,
    open: BTreeMap<FileId, FileNumber>,
    /// Whether the device keeps only the sizes of files and no content.
    is_null: bool,
    finished: VecDeque<(Instant, IoDone)>,
    parker: Parker,
}

impl Default for Memory {
    /// Creates an empty device on which every change is durable at once.
    fn default() -> Self {
        Self::from_tree(Tree::new(0))
    }
}

impl Memory {
    /// Creates an empty device whose changes are volatile: a crash may undo them until a sync. A
    /// volatile device needs twice the memory of a durable device.
    #[must_use]
    pub fn volatile() -> Self {
        Self::from_tree(Tree::new(WRITE_BACK_LIMIT))
    }

    /// Creates a device that keeps names and sizes but no bytes, so reads return zeros. Use this
    /// device to measure all parts of the program except the disk.
    #[must_use]
    pub fn null() -> Self {
        Self { is_null: true, ..Self::default() }
    }

    /// Returns a copy with equal files. The copy is volatile or durable like the original. The copy
    /// has no open files and no operations in flight. Both devices share content until one of them
    /// writes.
    #[must_use]
    pub fn fork(&self) -> Self {
        let mut tree = self.tree.clone();
        for &number in self.open.values() {
            tree.release(number);
        }
        Self::from_tree(tree)
    }

    /// Returns the total size in bytes of all files that have a name.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tree.bytes()
    }

    /// Adds a blank block device of `size` bytes. [`IoOp::OpenBlockDevice`] can open it.
    ///
    /// # Panics
    /// Panics if the folder does not exist or the path is already used.
    pub fn add_block_device(&mut self, path: StorePath, size: u64) {
        let number = self.tree.create(path).expect("a free name in a folder that exists");
        let file = self.tree.file_mut(number);
        file.kind = FileKind::BlockDevice;
        file.extend(size);
        self.tree.sync(number);
    }

    /// Returns the current content of a file, or `None` if the file does not exist.
    #[must_use]
    pub fn content(&self, path: &StorePath) -> Option<Vec<u8>> {
        let content = self.tree.file(self.tree.find(path).ok()?).current();
        let mut bytes = vec![0; usize::try_from(content.size()).ok()?];
        content.read(0, &mut bytes);
        Some(bytes)
    }

    /// Flips the bits of `mask` in one byte of a file, as a decaying disk does. The damage is
    /// durable: no crash undoes it. Returns false if the byte does not exist.
    pub fn rot(&mut self, path: &StorePath, offset: u64, mask: u8) -> bool {
        self.tree.find(path).is_ok_and(|number| self.tree.file_mut(number).rot(offset, mask))
    }

    /// Closes every file, as if the process had ended. Drops results that were not reaped.
    pub fn close_all(&mut self) {
        self.finished.clear();
        for number in std::mem::take(&mut self.open).into_values() {
            self.tree.release(number);
        }
    }

    /// Simulates a crash of the machine by the rules in the documentation of this module. The
    /// device then has the state that a new process would find.
    pub fn crash(&mut self, policy: &CrashPolicy, random: &mut Random) {
        self.close_all();
        self.tree.crash(policy, random);
    }

    fn from_tree(tree: Tree) -> Self {
        let (open, finished) = (BTreeMap::new(), VecDeque::new());
        Self { tree, open, is_null: false, finished, parker: Parker::default() }
    }

    pub(crate) fn open_files(&self) -> Vec<FileId> {
        self.open.keys().copied().collect()
    }

    pub(crate) fn number(&self, file: FileId) -> Result<FileNumber, IoError> {
        self.open.get(&file).copied().ok_or(IoError::NotOpen)
    }

    pub(crate) fn find(&self, path: &StorePath) -> Result<FileNumber, IoError> {
        self.tree.find(path)
    }

    pub(crate) const fn next_number(&self) -> FileNumber {
        self.tree.next_number()
    }

    /// Returns the size of a file in bytes, or `None` if the file no longer exists.
    pub(crate) fn size_of(&self, number: FileNumber) -> Option<u64> {
        self.tree.size_of(number)
    }

    /// Opens the file `number` under the id `file`. If the id was already in use, closes its
    /// previous file.
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
        if file.kind == FileKind::BlockDevice && end > file.current().size() {
            return Err(IoError::NoSpace);
        }
        if !self.is_null {
            file.write(offset, buffer.as_ref(), limit);
        } else if !buffer.is_empty() {
            file.extend(end);
        }
        Ok(IoOutput::Moved { count: buffer.len() })
    }

    fn open(
        &mut self,
        file: FileId,
        path: &StorePath,
        kind: FileKind,
    ) -> Result<IoOutput, IoError> {
        let number = self.tree.find(path)?;
        if self.tree.file(number).kind != kind {
            return Err(IoError::WrongKind);
        }
        self.assign(file, number);
        Ok(IoOutput::Opened { size: self.tree.file(number).current().size() })
    }

    fn create(&mut self, file: FileId, path: StorePath, size: u64) -> Result<IoOutput, IoError> {
        range_end(0, size)?;
        let (number, limit) = (self.tree.create(path)?, self.tree.limit);
        if self.tree.file(number).kind == FileKind::BlockDevice {
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
        if file.kind == FileKind::File {
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
            IoOp::Open { file, path } => (self.open(file, &path, FileKind::File), None),
            IoOp::OpenBlockDevice { file, path } => {
                (self.open(file, &path, FileKind::BlockDevice), None)
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
        self.finished.push_back((now, IoDone { id, result, buffer }));
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
