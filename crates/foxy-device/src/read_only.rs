//! Read-only access to a store's folder. This module creates and writes nothing. A shared lock on
//! the lock file prevents a store from opening the folder at the same time. A folder without a lock
//! file needs no lock, because no store on this machine has used the folder.

use crate::block_device::open_block_device;
use crate::io::{Device, DirectoryEntry, FileId, IoDone, IoError, IoId, IoOp, IoOutput, StorePath};
use crate::root::{LOCK, RootError, explain, lock, not_locked};
use crate::tree;
use foxy_base::Instant;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags, fstat, open, openat};
use rustix::io::{Errno, pread, retry_on_intr};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

/// A store's folder that is open only for reading.
#[derive(Debug)]
pub struct ReadOnlyFolder {
    directory: OwnedFd,
    _lock: Option<OwnedFd>,
}

/// A file or block device of a store that is open only for reading.
#[derive(Debug)]
pub struct ReadOnlyFile {
    descriptor: OwnedFd,
    size: u64,
}

impl ReadOnlyFolder {
    /// Opens an existing folder.
    ///
    /// # Errors
    /// Returns [`RootError::InUse`] while a store has the folder open. Also returns system errors.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        let failed = |error: Errno| explain(path, error);
        let directory =
            open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let lock_file = match openat(&directory, LOCK, flags, Mode::empty()) {
            Ok(file) => Some(file),
            Err(Errno::NOENT) => None,
            Err(Errno::LOOP) => return Err(RootError::LockNotAFile(path.to_owned())),
            Err(error) => return Err(explain(path, error)),
        };
        if let Some(file) = &lock_file {
            lock(file, FlockOperation::NonBlockingLockShared)
                .map_err(|error| not_locked(path, error))?;
        }
        Ok(Self { directory, _lock: lock_file })
    }

    /// Opens a file in the folder.
    ///
    /// # Errors
    /// - [`IoError::NotFound`] if the file does not exist.
    /// - [`IoError::WrongKind`] if the path does not lead to a regular file.
    /// - [`IoError::InUse`] while a store has the file open under any name.
    /// - System errors.
    pub fn file(&self, path: &StorePath) -> Result<ReadOnlyFile, IoError> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let descriptor = openat(&self.directory, path.as_str(), flags, Mode::empty())?;
        let status = fstat(&descriptor)?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(IoError::WrongKind);
        }
        lock(&descriptor, FlockOperation::NonBlockingLockShared)?;
        Ok(ReadOnlyFile { descriptor, size: u64::try_from(status.st_size).unwrap_or(0) })
    }

    /// Lists a folder inside of this folder.
    ///
    /// # Errors
    /// Returns the error of the system call.
    pub fn list(&self, path: &StorePath) -> Result<Vec<DirectoryEntry>, IoError> {
        tree::list(&self.directory, path)
    }

    /// Opens the block device at `path`. If `path` is a symbolic link, opens the target. No store
    /// can open the device at the same time.
    ///
    /// # Errors
    /// - [`IoError::NotFound`] if the path does not exist.
    /// - [`IoError::WrongKind`] if the path does not lead to a block device.
    /// - [`IoError::InUse`] while another process has the device open exclusively.
    /// - System errors.
    pub fn block_device(&self, path: &StorePath) -> Result<ReadOnlyFile, IoError> {
        let flags = OFlags::RDONLY | OFlags::EXCL;
        let (descriptor, size) = open_block_device(&self.directory, path.as_str(), flags)?;
        Ok(ReadOnlyFile { descriptor, size })
    }
}

impl ReadOnlyFile {
    /// Returns the size in bytes when the file was opened.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Reads from `offset` into `buffer` and returns the number of bytes read. The number is
    /// smaller than the buffer only at the end of the file.
    ///
    /// # Errors
    /// Returns the error of the read call.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, IoError> {
        let mut count = 0;
        while count < buffer.len() {
            let rest = &mut buffer[count..];
            match retry_on_intr(|| pread(&self.descriptor, &mut *rest, offset + count as u64))? {
                0 => break,
                moved => count += moved,
            }
        }
        Ok(count)
    }
}

/// A device that reads the files of a folder, and changes nothing. It reports success for writes
/// and other changes without making them. So a storage scheme can open a store for inspection.
#[derive(Debug)]
pub struct ReadOnlyDevice {
    folder: Rc<ReadOnlyFolder>,
    files: HashMap<FileId, ReadOnlyFile>,
    done: Vec<IoDone>,
}

impl ReadOnlyDevice {
    /// Creates a device for the files in a folder.
    #[must_use]
    pub fn new(folder: Rc<ReadOnlyFolder>) -> Self {
        Self { folder, files: HashMap::new(), done: Vec::new() }
    }

    fn open(&mut self, file: FileId, path: &StorePath) -> Result<IoOutput, IoError> {
        let opened = self.folder.file(path)?;
        let size = opened.size();
        self.files.insert(file, opened);
        Ok(IoOutput::Opened { size })
    }
}

impl Device for ReadOnlyDevice {
    fn submit(&mut self, id: IoId, op: IoOp, _now: Instant) {
        let (result, buffer) = match op {
            IoOp::Open { file, path } => (self.open(file, &path), None),
            IoOp::Read { file, offset, mut buffer } => {
                let file = self.files.get(&file).ok_or(IoError::NotOpen);
                let count = file.and_then(|file| file.read(offset, buffer.as_mut()));
                (count.map(|count| IoOutput::Moved { count }), Some(buffer))
            }
            IoOp::Write { buffer, .. } => {
                (Ok(IoOutput::Moved { count: buffer.len() }), Some(buffer))
            }
            IoOp::List { path } => (self.folder.list(&path).map(IoOutput::Listing), None),
            IoOp::OpenBlockDevice { .. } => (Err(IoError::NotFound), None),
            IoOp::Close { file } | IoOp::Create { file, .. } => {
                self.files.remove(&file);
                (Ok(IoOutput::Done), None)
            }
            IoOp::Sync { .. } | IoOp::Remove { .. } | IoOp::MakeDir { .. } | IoOp::Trim { .. } => {
                (Ok(IoOutput::Done), None)
            }
        };
        self.done.push(IoDone { id, result, buffer });
    }

    fn reap(&mut self, _now: Instant, done: &mut Vec<IoDone>) {
        done.append(&mut self.done);
    }

    fn next_completion(&self) -> Option<Instant> {
        None
    }

    fn in_flight(&self) -> usize {
        self.done.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::IoBuffer;
    use crate::root::Root;

    #[test]
    fn read_only_folders_share_the_lock_and_exclude_stores() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        let root = Root::open(path).expect("a new folder");
        assert_eq!(ReadOnlyFolder::open(path).err(), Some(RootError::InUse(path.to_owned())));
        drop(root);
        let looked_at = [
            ReadOnlyFolder::open(path).expect("free"),
            ReadOnlyFolder::open(path).expect("shared"),
        ];
        assert_eq!(Root::open(path).err(), Some(RootError::InUse(path.to_owned())));
        drop(looked_at);
        assert!(Root::open(path).is_ok());
    }

    #[test]
    fn a_read_only_folder_reads_files_and_creates_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        assert!(ReadOnlyFolder::open(&path.join("missing")).is_err());
        std::fs::write(path.join("x"), b"foxy").expect("written");
        std::fs::create_dir(path.join("d")).expect("made");
        let opened = ReadOnlyFolder::open(path).expect("a folder");
        let file = opened.file(&StorePath::new("x")).expect("a file");
        let mut buffer = [0; 8];
        assert_eq!((file.size(), file.read(1, &mut buffer)), (4, Ok(3)));
        assert_eq!(&buffer[..3], b"oxy");
        assert_eq!(opened.file(&StorePath::new("d")).err(), Some(IoError::WrongKind));
        assert_eq!(opened.file(&StorePath::new("y")).err(), Some(IoError::NotFound));
        assert_eq!(std::fs::read_dir(path).expect("readable").count(), 2, "no lock file was made");
    }

    #[test]
    fn a_read_only_device_claims_changes_and_makes_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        std::fs::write(path.join("x"), b"foxy").expect("written");
        let opened = Rc::new(ReadOnlyFolder::open(path).expect("a folder"));
        let mut device = ReadOnlyDevice::new(opened);
        let (file, name) = (FileId(1), StorePath::new("x"));
        let buffer = || IoBuffer::copy_of(b"yy");
        let operations = [
            IoOp::Open { file, path: name.clone() },
            IoOp::Write { file, offset: 0, buffer: buffer() },
            IoOp::Read { file, offset: 1, buffer: buffer() },
            IoOp::Remove { path: name },
            IoOp::Create { file: FileId(2), path: StorePath::new("z"), size: 9 },
        ];
        for (id, op) in (0..).zip(operations) {
            device.submit(IoId(id), op, Instant::ZERO);
        }
        let mut done = Vec::new();
        device.reap(Instant::ZERO, &mut done);
        let results: Vec<_> = done.iter().map(|it| it.result.is_ok()).collect();
        assert_eq!(results, [true; 5]);
        assert_eq!(done[2].buffer.as_ref().map(AsRef::as_ref), Some(&b"ox"[..]));
        assert_eq!(std::fs::read(path.join("x")).expect("still there"), b"foxy");
        assert_eq!(std::fs::read_dir(path).expect("readable").count(), 1);
    }
}
