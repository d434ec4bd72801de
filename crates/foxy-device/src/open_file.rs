//! An open file of a real disk, the table of open files, and complete transfers with blocking
//! system calls.

use crate::buffer::{ALIGNMENT, IoBuffer};
use crate::io::{FileId, IoError, IoOutput, StorePath};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// In a direct transfer, offset, length and memory address must be multiples of this many bytes.
const PAGE: u64 = ALIGNMENT as u64;

/// The kind of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// A file.
    #[default]
    File,
    /// A block device.
    BlockDevice,
}

/// An open file with two descriptors: one for any IO, and one for aligned IO that bypasses the page
/// cache.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) buffered: OwnedFd,
    pub(crate) kind: FileKind,
    direct: Option<OwnedFd>,
    /// Set after the file system has refused a direct transfer of correct alignment. Direct
    /// transfers are then no longer tried.
    direct_refused: AtomicBool,
    /// The directory of a new file, until the file's entry there is durable.
    new_in: Mutex<Option<StorePath>>,
}

impl OpenFile {
    pub(crate) fn new(
        kind: FileKind,
        buffered: OwnedFd,
        direct: Option<OwnedFd>,
        new_in: Option<StorePath>,
    ) -> Self {
        let (direct_refused, new_in) = (AtomicBool::new(false), Mutex::new(new_in));
        Self { buffered, kind, direct, direct_refused, new_in }
    }

    /// The direct descriptor, if a transfer of `length` bytes at `offset` can use it. Memory and
    /// offset have the same alignment, because a buffer starts on a page, and a transfer covers the
    /// whole buffer or its rest.
    pub(crate) fn direct_for(&self, offset: u64, length: usize) -> Option<&OwnedFd> {
        let aligned = offset.is_multiple_of(PAGE) && (length as u64).is_multiple_of(PAGE);
        self.direct.as_ref().filter(|_| aligned && !self.direct_refused.load(Ordering::Relaxed))
    }

    /// Uses only the page cache from now on.
    pub(crate) fn refuse_direct(&self) {
        self.direct_refused.store(true, Ordering::Relaxed);
    }

    /// Makes one system call on the suitable descriptor. After a signal, the call is repeated. If
    /// the file system refuses direct IO, the call is repeated once through the page cache.
    fn transfer(
        &self,
        offset: u64,
        length: usize,
        mut call: impl FnMut(&OwnedFd) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        if let Some(direct) = self.direct_for(offset, length) {
            match retry_on_intr(|| call(direct)) {
                Err(Errno::INVAL) => self.refuse_direct(),
                moved => return moved,
            }
        }
        retry_on_intr(|| call(&self.buffered))
    }

    /// Reads until the buffer is full or the file ends.
    pub(crate) fn read(&self, offset: u64, buffer: &mut IoBuffer) -> Result<IoOutput, IoError> {
        let mut count = 0;
        while count < buffer.len() {
            let at = offset + count as u64;
            let rest = &mut buffer.as_mut()[count..];
            match self.transfer(at, rest.len(), |descriptor| pread(descriptor, &mut *rest, at))? {
                0 => break,
                moved => count += moved,
            }
        }
        Ok(IoOutput::Moved { count })
    }

    pub(crate) fn write(&self, offset: u64, buffer: &IoBuffer) -> Result<IoOutput, IoError> {
        let mut count = 0;
        while count < buffer.len() {
            let at = offset + count as u64;
            let rest = &buffer.as_ref()[count..];
            match self.transfer(at, rest.len(), |descriptor| pwrite(descriptor, rest, at))? {
                0 => return Err(IoError::Device),
                moved => count += moved,
            }
        }
        Ok(IoOutput::Moved { count })
    }

    /// Punches a hole. A trim is only a hint, so a file system without holes is not an error. A
    /// block device is never trimmed, because the bytes after a store may belong to another
    /// program.
    pub(crate) fn trim(&self, offset: u64, length: u64) -> Result<IoOutput, IoError> {
        if length > 0 && self.kind == FileKind::File {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match fallocate(&self.buffered, flags, offset, length) {
                Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(IoOutput::Done)
    }

    pub(crate) fn has_new_name(&self) -> bool {
        self.lock_new_in().is_some()
    }

    pub(crate) fn lock_new_in(&self) -> MutexGuard<'_, Option<StorePath>> {
        self.new_in.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Files(RwLock<HashMap<FileId, Arc<OpenFile>>>);

impl Files {
    pub(crate) fn get(&self, file: FileId) -> Option<Arc<OpenFile>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&file).cloned()
    }

    pub(crate) fn insert(&self, file: FileId, open: OpenFile) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(file, Arc::new(open));
    }

    /// Removes the file from the table. Operations in progress can still read and write it.
    pub(crate) fn remove(&self, file: FileId) -> Option<Arc<OpenFile>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&file)
    }
}
