//! Performs operations on a real disk. All paths are relative to the descriptor of the store's
//! folder, and never leave this folder. A symbolic link as the last component of a path is never
//! followed.

use crate::block_device::open_block_device;
use crate::io::{DirectoryEntry, FileId, IoDone, IoError, IoId, IoOp, IoOutput, StorePath};
use crate::open_file::{FileKind, OpenFile};
use crate::root::LOCK;
use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Mode, OFlags, fallocate, fdatasync, fstat, fsync,
    ftruncate, mkdirat, openat, statat, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use std::os::fd::{AsFd, OwnedFd};

/// Minimum size in bytes of a file that the device also opens for direct IO, if requested.
const DIRECT_MIN_BYTES: u64 = 1 << 20;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A finished operation. If it was an `Open` or `Create`, `opened` is the file that it opened.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) done: IoDone,
    pub(crate) opened: Option<(FileId, OpenFile)>,
}

/// Performs an operation other than `Close` with blocking system calls. `file` is the open file of
/// a `Read`, `Write`, `Sync` or `Trim`.
pub(crate) fn carry_out(
    root: &OwnedFd,
    id: IoId,
    op: IoOp,
    file: Option<&OpenFile>,
    direct: bool,
) -> Finished {
    let mut opened = None;
    let mut keep = |file, (open, output)| {
        opened = Some((file, open));
        output
    };
    let (result, buffer) = match (op, file) {
        (IoOp::Read { offset, mut buffer, .. }, Some(file)) => {
            (file.read(offset, &mut buffer), Some(buffer))
        }
        (IoOp::Write { offset, buffer, .. }, Some(file)) => {
            (file.write(offset, &buffer), Some(buffer))
        }
        (IoOp::Sync { .. }, Some(file)) => (sync(root, file), None),
        (IoOp::Trim { offset, length, .. }, Some(file)) => (file.trim(offset, length), None),
        (IoOp::Open { file, path }, _) => {
            (open_file(root, &path, direct).map(|found| keep(file, found)), None)
        }
        (IoOp::OpenBlockDevice { file, path }, _) => {
            (open_device(root, &path, direct).map(|found| keep(file, found)), None)
        }
        (IoOp::Create { file, path, size }, _) => {
            (create(root, &path, size, direct).map(|made| keep(file, made)), None)
        }
        (IoOp::Remove { path }, _) => (remove(root, &path), None),
        (IoOp::MakeDir { path }, _) => (make_directory(root, &path), None),
        (IoOp::List { path }, _) => (list(root, &path).map(IoOutput::Listing), None),
        (op, _) => (Err(IoError::NotOpen), op.into_buffer()),
    };
    Finished { done: IoDone { id, result, buffer }, opened }
}

/// Makes a file's bytes and size durable. The first sync of a new file also syncs its directory, so
/// that its name is durable.
fn sync(root: &OwnedFd, file: &OpenFile) -> Result<IoOutput, IoError> {
    retry_on_intr(|| fdatasync(&file.buffered))?;
    let mut new_in = file.lock_new_in();
    if let Some(directory) = &*new_in {
        sync_directory(root, directory)?;
        *new_in = None;
    }
    Ok(IoOutput::Done)
}

fn sync_directory(root: &OwnedFd, path: &StorePath) -> Result<(), Errno> {
    let directory = open_directory(root, path)?;
    match retry_on_intr(|| fsync(&directory)) {
        // This file system cannot sync directories. Such a file system keeps its directories
        // consistent itself.
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

type Opened = Result<(OpenFile, IoOutput), IoError>;

fn open_file(root: &OwnedFd, path: &StorePath, direct: bool) -> Opened {
    let buffered = openat(root, path.as_str(), flags(), Mode::empty())?;
    let status = fstat(&buffered)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(IoError::WrongKind);
    }
    let size = u64::try_from(status.st_size).unwrap_or(0);
    let direct = open_direct(root, path, size, direct);
    Ok((OpenFile::new(FileKind::File, buffered, direct, None), IoOutput::Opened { size }))
}

fn open_device(root: &OwnedFd, path: &StorePath, direct: bool) -> Opened {
    let (buffered, size) = open_block_device(root, path.as_str(), OFlags::RDWR)?;
    let open_direct = || open_block_device(root, path.as_str(), OFlags::RDWR | OFlags::DIRECT).ok();
    let direct = direct.then(open_direct).flatten().map(|(descriptor, _)| descriptor);
    Ok((OpenFile::new(FileKind::BlockDevice, buffered, direct, None), IoOutput::Opened { size }))
}

pub(crate) fn create(root: &OwnedFd, path: &StorePath, size: u64, direct: bool) -> Opened {
    let buffered = openat(root, path.as_str(), flags() | OFlags::CREATE | OFlags::TRUNC, PRIVATE)?;
    if size > 0 {
        match fallocate(&buffered, FallocateFlags::empty(), 0, size) {
            Ok(()) => {}
            // The file system cannot preallocate. The file is then sparse, so a full disk causes an
            // error only at a later write.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => ftruncate(&buffered, size)?,
            Err(error) => {
                // Remove the file, because the disk has no space for it. Ignore an error of the
                // removal: the caller needs the first error.
                let _ = unlinkat(root, path.as_str(), AtFlags::empty());
                return Err(error.into());
            }
        }
    }
    let direct = open_direct(root, path, size, direct);
    Ok((OpenFile::new(FileKind::File, buffered, direct, Some(path.parent())), IoOutput::Done))
}

/// Opens a descriptor for direct IO. Returns `None` if direct IO is not wanted, the file is small,
/// or the file system does not support direct IO.
fn open_direct(root: &OwnedFd, path: &StorePath, size: u64, wanted: bool) -> Option<OwnedFd> {
    let open = || openat(root, path.as_str(), flags() | OFlags::DIRECT, Mode::empty()).ok();
    (wanted && size >= DIRECT_MIN_BYTES).then(open).flatten()
}

fn remove(root: &OwnedFd, path: &StorePath) -> Result<IoOutput, IoError> {
    unlinkat(root, path.as_str(), AtFlags::empty())?;
    Ok(IoOutput::Done)
}

fn make_directory(root: &OwnedFd, path: &StorePath) -> Result<IoOutput, IoError> {
    match mkdirat(root, path.as_str(), Mode::RWXU) {
        Ok(()) => sync_directory(root, &path.parent())?,
        Err(Errno::EXIST) => drop(open_directory(root, path)?),
        Err(error) => return Err(error.into()),
    }
    Ok(IoOutput::Done)
}

pub(crate) fn list(root: &OwnedFd, path: &StorePath) -> Result<Vec<DirectoryEntry>, IoError> {
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

/// Returns whether an entry is a directory, and its size in bytes. Returns `None` for other kinds
/// of entries and for entries that no longer exist.
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
