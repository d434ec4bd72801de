//! Open files of a real disk, and the table of open files. Reads and writes here use blocking
//! system calls and repeat a call until the transfer is complete.

use crate::buffer::{ALIGNMENT, IoBuffer};
use crate::io::{FileId, IoError, IoOutput, StorePath};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Alignment of direct IO in bytes. Offset, length and memory address must be multiples of this
/// number.
const PAGE: u64 = ALIGNMENT as u64;

/// The kind of an open file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    #[default]
    File,
    /// A block device.
    BlockDevice,
}

/// An open file with two descriptors. The descriptor `buffered` accepts any IO. The descriptor
/// `direct` accepts only aligned IO, and bypasses the page cache.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) buffered: OwnedFd,
    pub(crate) kind: FileKind,
    direct: Option<OwnedFd>,
    /// Set when the file system refuses aligned direct IO on this file. After that, all IO on the
    /// file uses the page cache.
    direct_refused: AtomicBool,
    /// The directory of a newly created file, until a sync makes the file's directory entry
    /// durable.
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

    /// Returns the descriptor for direct IO if `length` and `offset` are aligned. The memory
    /// address is then aligned too: every buffer starts at a page boundary, and a transfer covers
    /// the whole buffer or its rest.
    pub(crate) fn direct_for(&self, offset: u64, length: usize) -> Option<&OwnedFd> {
        let aligned = offset.is_multiple_of(PAGE) && (length as u64).is_multiple_of(PAGE);
        self.direct.as_ref().filter(|_| aligned && !self.direct_refused.load(Ordering::Relaxed))
    }

    /// Disables direct IO on this file, so that all IO uses the page cache.
    pub(crate) fn refuse_direct(&self) {
        self.direct_refused.store(true, Ordering::Relaxed);
    }

    /// Makes one read or write call on the suitable descriptor. Repeats the call if a signal
    /// interrupts it. If the file system refuses direct IO, repeats the call through the page
    /// cache.
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

    /// Frees the disk space of a range (punches a hole). A trim is only a hint, so the result is
    /// success even if the file system does not support holes. A block device is never trimmed,
    /// because the bytes after a store may belong to another program.
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
    /// Returns a copy of the table with the same open files.
    pub(crate) fn copy(&self) -> Self {
        Self(RwLock::new(self.0.read().unwrap_or_else(PoisonError::into_inner).clone()))
    }

    pub(crate) fn get(&self, file: FileId) -> Option<Arc<OpenFile>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&file).cloned()
    }

    pub(crate) fn insert(&self, file: FileId, open: OpenFile) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(file, Arc::new(open));
    }

    /// Removes the file from the table of open files. Operations in progress can still read and
    /// write the file.
    pub(crate) fn remove(&self, file: FileId) -> Option<Arc<OpenFile>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&file)
    }
}
