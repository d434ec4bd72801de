//! Operations on names inside a [`Root`], as system calls relative to its descriptor: never outside
//! it, never through a symbolic link in the last component.

use crate::block_device::open_block_device;
use crate::buffer::ALIGNMENT;
use crate::io::{DirectoryEntry, FileId, IoError, IoOp, IoOutput, StorePath};
use crate::root::LOCK;
use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Mode, OFlags, fallocate, fdatasync, fstat, fsync,
    ftruncate, mkdirat, openat, statat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files of at least this many bytes get a second, direct descriptor where that is wanted.
const DIRECT_FROM: u64 = 1 << 20;

/// What offset, length and memory of a direct transfer are multiples of, in bytes.
const PAGE: u64 = ALIGNMENT as u64;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// What is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
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
    pub(crate) place: Place,
    direct: Option<OwnedFd>,
    /// Set once the file system has refused a direct transfer that looked right; none is tried
    /// again.
    direct_refused: AtomicBool,
    /// The directory whose entry for this file is not known to be durable.
    new_in: Mutex<Option<StorePath>>,
}

impl OpenFile {
    fn new(buffered: OwnedFd, direct: Option<OwnedFd>, new_in: Option<StorePath>) -> Self {
        let (direct_refused, new_in) = (AtomicBool::new(false), Mutex::new(new_in));
        Self { buffered, place: Place::File, direct, direct_refused, new_in }
    }

    /// The direct descriptor, where a transfer at `offset` of `length` bytes can take it. The
    /// memory is as aligned as the offset: buffers start on a page, and only whole transfers or
    /// what is left of them are asked for.
    pub(crate) fn direct_for(&self, offset: u64, length: usize) -> Option<&OwnedFd> {
        let aligned = offset.is_multiple_of(PAGE) && (length as u64).is_multiple_of(PAGE);
        self.direct.as_ref().filter(|_| aligned && !self.direct_refused.load(Ordering::Relaxed))
    }

    /// From now on only the page cache is used.
    pub(crate) fn refuse_direct(&self) {
        self.direct_refused.store(true, Ordering::Relaxed);
    }

    /// Makes one system call on the descriptor that fits: again after a signal, and once more
    /// through the page cache when the file system will not have it direct.
    pub(crate) fn transfer(
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

    /// Whether a sync must take care of the file's name too.
    pub(crate) fn has_new_name(&self) -> bool {
        self.lock_new_in().is_some()
    }

    fn lock_new_in(&self) -> MutexGuard<'_, Option<StorePath>> {
        self.new_in.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries out an operation on a name; an `Open` or `Create` that succeeds gives the file with the
/// id it gets.
pub(crate) fn carry_out(
    root: &OwnedFd,
    op: IoOp,
    direct: bool,
) -> (Result<IoOutput, IoError>, Option<(FileId, OpenFile)>) {
    let result = match op {
        IoOp::Open { file, path } => match open_file(root, &path, direct) {
            Ok((open, size)) => return (Ok(IoOutput::Opened { size }), Some((file, open))),
            Err(error) => Err(error),
        },
        IoOp::OpenBlockDevice { file, path } => match open_device(root, &path, direct) {
            Ok((open, size)) => return (Ok(IoOutput::Opened { size }), Some((file, open))),
            Err(error) => Err(error),
        },
        IoOp::Create { file, path, size } => match create(root, &path, size, direct) {
            Ok(open) => return (Ok(IoOutput::Done), Some((file, open))),
            Err(error) => Err(error),
        },
        IoOp::Remove { path } => remove(root, &path).map(|()| IoOutput::Done),
        IoOp::MakeDir { path } => make_directory(root, &path).map(|()| IoOutput::Done),
        IoOp::List { path } => list(root, &path).map(IoOutput::Listing),
        IoOp::Read { .. }
        | IoOp::Write { .. }
        | IoOp::Sync { .. }
        | IoOp::Trim { .. }
        | IoOp::Close { .. } => {
            unreachable!("operations on open files are carried out by who has them open")
        }
    };
    (result, None)
}

/// Makes a file's bytes and size durable, and at the first time after its creation its name.
pub(crate) fn sync(root: &OwnedFd, file: &OpenFile) -> Result<(), Errno> {
    retry_on_intr(|| fdatasync(&file.buffered))?;
    let mut new_in = file.lock_new_in();
    if let Some(directory) = &*new_in {
        sync_directory(root, directory)?;
        *new_in = None;
    }
    Ok(())
}

fn sync_directory(root: &OwnedFd, path: &StorePath) -> Result<(), Errno> {
    let directory = open_directory(root, path)?;
    match retry_on_intr(|| fsync(&directory)) {
        // The file system does not sync directories, and then keeps their order in ways of its own.
        Ok(()) | Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error),
    }
}

fn open_directory(root: &OwnedFd, path: &StorePath) -> Result<OwnedFd, Errno> {
    let name = if path.as_str().is_empty() { "." } else { path.as_str() };
    openat(root, name, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
}

fn flags() -> OFlags {
    OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW
}

fn open_file(root: &OwnedFd, path: &StorePath, direct: bool) -> Result<(OpenFile, u64), IoError> {
    let buffered = openat(root, path.as_str(), flags(), Mode::empty())?;
    let status = fstat(&buffered)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(IoError::WrongKind);
    }
    let size = u64::try_from(status.st_size).unwrap_or(0);
    let direct = direct && size >= DIRECT_FROM;
    Ok((OpenFile::new(buffered, direct.then(|| open_direct(root, path)).flatten(), None), size))
}

fn open_device(root: &OwnedFd, path: &StorePath, direct: bool) -> Result<(OpenFile, u64), IoError> {
    let (buffered, size) = open_block_device(root, path.as_str(), OFlags::RDWR)?;
    let past_the_cache = || open_block_device(root, path.as_str(), OFlags::RDWR | OFlags::DIRECT);
    let direct =
        if direct { past_the_cache().ok().map(|(descriptor, _)| descriptor) } else { None };
    Ok((OpenFile { place: Place::BlockDevice, ..OpenFile::new(buffered, direct, None) }, size))
}

pub(crate) fn create(
    root: &OwnedFd,
    path: &StorePath,
    size: u64,
    direct: bool,
) -> Result<OpenFile, IoError> {
    let buffered = openat(root, path.as_str(), flags() | OFlags::CREATE | OFlags::TRUNC, PRIVATE)?;
    if size > 0 {
        match fallocate(&buffered, FallocateFlags::empty(), 0, size) {
            Ok(()) => {}
            // The file system cannot preallocate: the file is sparse, and a full disk shows at the
            // write.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => ftruncate(&buffered, size)?,
            Err(error) => {
                // Nothing of a file that does not fit is left behind; the first error is the one to
                // report.
                let _ = unlinkat(root, path.as_str(), AtFlags::empty());
                return Err(error.into());
            }
        }
    }
    let direct = direct && size >= DIRECT_FROM;
    Ok(OpenFile::new(
        buffered,
        direct.then(|| open_direct(root, path)).flatten(),
        Some(path.parent()),
    ))
}

/// `None` where the file system has no direct IO.
fn open_direct(root: &OwnedFd, path: &StorePath) -> Option<OwnedFd> {
    openat(root, path.as_str(), flags() | OFlags::DIRECT, Mode::empty()).ok()
}

fn remove(root: &OwnedFd, path: &StorePath) -> Result<(), IoError> {
    Ok(unlinkat(root, path.as_str(), AtFlags::empty())?)
}

fn make_directory(root: &OwnedFd, path: &StorePath) -> Result<(), IoError> {
    match mkdirat(root, path.as_str(), Mode::RWXU) {
        Ok(()) => Ok(sync_directory(root, &path.parent())?),
        Err(Errno::EXIST) => Ok(open_directory(root, path).map(drop)?),
        Err(error) => Err(error.into()),
    }
}

fn list(root: &OwnedFd, path: &StorePath) -> Result<Vec<DirectoryEntry>, IoError> {
    let directory = open_directory(root, path)?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name == "." || name == ".." || (*path == StorePath::root() && name == LOCK) {
            continue;
        }
        if let Some((is_directory, size)) = kind(directory.as_fd(), name)? {
            entries.push(DirectoryEntry { name: name.to_owned(), is_directory, size });
        }
    }
    entries.sort();
    Ok(entries)
}

/// Whether an entry is a directory, and its size; `None` for what is neither file nor directory, or
/// gone meanwhile.
fn kind(directory: impl AsFd, name: &str) -> Result<Option<(bool, u64)>, IoError> {
    let status = match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(status) => status,
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(match FileType::from_raw_mode(status.st_mode) {
        FileType::Directory => Some((true, 0)),
        FileType::RegularFile => Some((false, u64::try_from(status.st_size).unwrap_or(0))),
        _ => None,
    })
}
