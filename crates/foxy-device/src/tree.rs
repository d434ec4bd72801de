//! Operations on names inside a [`Root`], as system calls relative to its descriptor: never outside it, never through
//! a symbolic link in the last component.

use crate::io::{DirectoryEntry, IoError, StorePath};
use rustix::fs::{
    AtFlags, Dir, FallocateFlags, FileType, Mode, OFlags, fallocate, fstat, ftruncate, mkdirat, openat,
    statat, unlinkat,
};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};

/// Files of at least this many bytes get a second, direct descriptor where that is wanted.
const DIRECT_FROM: u64 = 1 << 20;

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// An open file: a descriptor for any IO, and one past the page cache for aligned IO.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) buffered: OwnedFd,
    pub(crate) direct: Option<OwnedFd>,
}

impl OpenFile {
    /// The descriptor for a transfer at `offset` of `length` bytes from page-aligned memory.
    pub(crate) fn descriptor(&self, offset: u64, length: usize) -> &OwnedFd {
        let aligned = offset.is_multiple_of(4096) && length.is_multiple_of(4096);
        self.direct.as_ref().filter(|_| aligned).unwrap_or(&self.buffered)
    }
}

fn flags() -> OFlags {
    OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW
}

pub(crate) fn open_file(root: &OwnedFd, path: &StorePath, direct: bool) -> Result<(OpenFile, u64), IoError> {
    let buffered = openat(root, path.as_str(), flags(), Mode::empty())?;
    let size = u64::try_from(fstat(&buffered)?.st_size).unwrap_or(0);
    let direct = direct && size >= DIRECT_FROM;
    Ok((OpenFile { direct: direct.then(|| open_direct(root, path)).flatten(), buffered }, size))
}

pub(crate) fn create(root: &OwnedFd, path: &StorePath, size: u64, direct: bool) -> Result<OpenFile, IoError> {
    let buffered = openat(root, path.as_str(), flags() | OFlags::CREATE | OFlags::TRUNC, PRIVATE)?;
    if size > 0 {
        match fallocate(&buffered, FallocateFlags::empty(), 0, size) {
            Ok(()) => {}
            // The file system cannot preallocate: the file is sparse, and a full disk shows at the write.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => ftruncate(&buffered, size)?,
            Err(error) => {
                // Nothing of a file that does not fit is left behind; the first error is the one to report.
                let _ = unlinkat(root, path.as_str(), AtFlags::empty());
                return Err(error.into());
            }
        }
    }
    let direct = direct && size >= DIRECT_FROM;
    Ok(OpenFile { direct: direct.then(|| open_direct(root, path)).flatten(), buffered })
}

/// `None` where the file system has no direct IO.
fn open_direct(root: &OwnedFd, path: &StorePath) -> Option<OwnedFd> {
    openat(root, path.as_str(), flags() | OFlags::DIRECT, Mode::empty()).ok()
}

pub(crate) fn remove(root: &OwnedFd, path: &StorePath) -> Result<(), IoError> {
    Ok(unlinkat(root, path.as_str(), AtFlags::empty())?)
}

pub(crate) fn make_directory(root: &OwnedFd, path: &StorePath) -> Result<(), IoError> {
    match mkdirat(root, path.as_str(), Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn list(root: &OwnedFd, path: &StorePath) -> Result<Vec<DirectoryEntry>, IoError> {
    let name = if path.as_str().is_empty() { "." } else { path.as_str() };
    let directory =
        openat(root, name, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if name == "." || name == ".." {
            continue;
        }
        if let Some((is_directory, size)) = kind(directory.as_fd(), name)? {
            entries.push(DirectoryEntry { name: name.to_owned(), is_directory, size });
        }
    }
    entries.sort();
    Ok(entries)
}

/// Whether an entry is a directory, and its size; `None` for what is neither file nor directory, or gone meanwhile.
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
