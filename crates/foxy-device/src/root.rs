//! A store's folder on a real file system: made, locked against a second process, and measured.

use crate::held;
use crate::io::IoError;
use rustix::fs::{FlockOperation, Mode, OFlags, mkdirat, open, openat, statvfs};
use rustix::io::Errno;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file that is locked while a store is open; the devices do not list it.
pub(crate) const LOCK: &str = "foxy.lock";

/// An open, locked folder. The lock is let go when the last clone is dropped, and when the process
/// ends in any way.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
    directory: Arc<OwnedFd>,
    lock: Arc<OwnedFd>,
}

/// Why a folder cannot be a store's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootError {
    /// Another process has it open.
    InUse(PathBuf),
    /// It is a block device that is mounted, part of a volume, or held by another process.
    DeviceInUse(PathBuf),
    /// It is a block device without a byte.
    NoMedium(PathBuf),
    /// There is something else by that name.
    NotADirectory(PathBuf),
    /// A link or folder is where its lock file should be.
    LockNotAFile(PathBuf),
    /// This user may not write there.
    Denied(PathBuf),
    /// Its file system is mounted read-only.
    ReadOnly(PathBuf),
    /// The disk is full.
    NoSpace(PathBuf),
    /// Anything else, with the system's words.
    Failed(PathBuf, String),
}

impl fmt::Display for RootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse(path) => {
                write!(
                    f,
                    "store {}: in use by another foxy; stop that one or name another folder with --store",
                    path.display()
                )
            }
            Self::DeviceInUse(path) => {
                write!(
                    f,
                    "store {}: the device it leads to is in use: mounted, part of a volume, or another foxy's; `lsblk` says of \
                     what; free it or link another one",
                    path.display()
                )
            }
            Self::NoMedium(path) => {
                let what = IoError::NoMedium;
                write!(
                    f,
                    "store {}: {what}; attach it (`lsblk` says its size) or link another one",
                    path.display()
                )
            }
            Self::NotADirectory(path) => {
                write!(f, "store {}: not a folder; name a folder with --store", path.display())
            }
            Self::LockNotAFile(path) => {
                write!(
                    f,
                    "store {}: a link or folder is where the file {LOCK} should be; move it away or name another folder \
                     with --store",
                    path.display()
                )
            }
            Self::Denied(path) => {
                write!(
                    f,
                    "store {}: no permission to write there; name a folder of this user's with --store",
                    path.display()
                )
            }
            Self::ReadOnly(path) => {
                write!(
                    f,
                    "store {}: its file system is read-only; mount it for writing, after a look at the system's log if it was \
                     not meant to be, or name a folder on another disk with --store",
                    path.display()
                )
            }
            Self::NoSpace(path) => {
                write!(
                    f,
                    "store {}: the disk is full; free some space or name a folder on another disk",
                    path.display()
                )
            }
            Self::Failed(path, words) => {
                write!(
                    f,
                    "store {}: cannot be opened: {words}; name a folder that can be written to",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for RootError {}

impl Root {
    /// Makes the folder and its parents where they are missing (mode 0700), and locks it.
    ///
    /// # Errors
    /// [`RootError`], naming the folder.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        make(path)?;
        let failed = |error: Errno| explain(path, error);
        let directory =
            open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock =
            openat(&directory, LOCK, flags, Mode::RUSR | Mode::WUSR).map_err(
                |error| match error {
                    Errno::LOOP | Errno::ISDIR | Errno::NXIO => {
                        RootError::LockNotAFile(path.to_owned())
                    }
                    other => explain(path, other),
                },
            )?;
        held::lock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| not_locked(path, error))?;
        Ok(Self { path: path.to_owned(), directory: Arc::new(directory), lock: Arc::new(lock) })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes on its file system that this user may still take; `None` where the system does not
    /// say.
    #[must_use]
    pub fn free_bytes(&self) -> Option<u64> {
        let status = statvfs(&self.path).ok()?;
        Some(status.f_bavail.saturating_mul(status.f_frsize))
    }

    /// The lock, for a process that is to hold it as well: it is let go when nobody holds it any
    /// more.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn share_lock(&self) -> std::io::Result<OwnedFd> {
        self.lock.try_clone()
    }

    pub(crate) fn directory(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.directory)
    }
}

fn make(path: &Path) -> Result<(), RootError> {
    let mut missing: Vec<&Path> = path
        .ancestors()
        .take_while(|part| !part.as_os_str().is_empty() && !part.exists())
        .collect();
    while let Some(folder) = missing.pop() {
        match mkdirat(rustix::fs::CWD, folder, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(explain(path, error)),
        }
    }
    Ok(())
}

pub(crate) fn explain(path: &Path, error: Errno) -> RootError {
    let path = path.to_owned();
    match error {
        Errno::NOTDIR | Errno::EXIST => RootError::NotADirectory(path),
        Errno::ACCESS | Errno::PERM => RootError::Denied(path),
        Errno::ROFS => RootError::ReadOnly(path),
        Errno::NOSPC | Errno::DQUOT => RootError::NoSpace(path),
        other => RootError::Failed(path, other.to_string()),
    }
}

/// Why a folder's lock was not taken.
pub(crate) fn not_locked(path: &Path, error: IoError) -> RootError {
    match error {
        IoError::InUse => RootError::InUse(path.to_owned()),
        other => RootError::Failed(path.to_owned(), other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_opening_is_refused_until_the_first_is_dropped() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a/b");
        let first = Root::open(&path).expect("a new folder");
        assert_eq!(Root::open(&path).err(), Some(RootError::InUse(path.clone())));
        drop(first);
        assert!(Root::open(&path).is_ok());
    }

    #[test]
    fn a_file_is_no_folder() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        std::fs::write(&path, b"x").expect("written");
        assert_eq!(Root::open(&path).err(), Some(RootError::NotADirectory(path)));
    }

    #[test]
    fn a_link_or_a_folder_is_no_lock() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let refused = Some(RootError::LockNotAFile(folder.path().to_owned()));
        let lock = folder.path().join(LOCK);
        std::os::unix::fs::symlink("elsewhere", &lock).expect("made");
        assert_eq!(Root::open(folder.path()).err(), refused);
        std::fs::remove_file(&lock).expect("removed");
        std::fs::create_dir(&lock).expect("made");
        assert_eq!(Root::open(folder.path()).err(), refused);
        assert!(!folder.path().join("elsewhere").exists());
    }

    #[test]
    fn free_space_is_known() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(Root::open(folder.path()).expect("opens").free_bytes().is_some());
    }
}
