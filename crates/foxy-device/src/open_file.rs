//! An open file of a real disk, the table of open files, and whole transfers with blocking system
//! calls.

use crate::buffer::{ALIGNMENT, IoBuffer};
use crate::io::{FileId, IoError, IoOutput, StorePath};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// What offset, length and memory of a direct transfer are multiples of, in bytes.
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

/// An open file: a descriptor for any IO, and one past the page cache for aligned IO.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) buffered: OwnedFd,
    pub(crate) kind: FileKind,
    direct: Option<OwnedFd>,
    /// Set when the file system refuses a direct transfer that looked right; none is tried again.
    direct_refused: AtomicBool,
    /// The directory whose entry for this file is not known to be durable.
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
    /// offset have the same alignment: buffers start on a page, and a transfer covers the whole
    /// buffer or its rest.
    pub(crate) fn direct_for(&self, offset: u64, length: usize) -> Option<&OwnedFd> {
        let aligned = offset.is_multiple_of(PAGE) && (length as u64).is_multiple_of(PAGE);
        self.direct.as_ref().filter(|_| aligned && !self.direct_refused.load(Ordering::Relaxed))
    }

    /// Uses only the page cache from now on.
    pub(crate) fn refuse_direct(&self) {
        self.direct_refused.store(true, Ordering::Relaxed);
    }

    /// Makes one system call on the suitable descriptor. Repeats it after a signal, and once
    /// through the page cache when the file system refuses direct IO.
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

    /// Punches a hole. A trim is advice, so a file system without holes is no error. A block device
    /// is never trimmed: what lies behind a store on it may belong to somebody else.
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

    /// Forgets the file; users that hold it can still read and write it.
    pub(crate) fn remove(&self, file: FileId) -> Option<Arc<OpenFile>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&file)
    }
}
