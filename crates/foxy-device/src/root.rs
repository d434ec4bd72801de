//! Opens a store's folder on a real file system. Creates the folder, locks it against other
//! processes, and measures its disk space.

use crate::io::IoError;
use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, open, openat,
    statat, statvfs,
};
use rustix::io::{Errno, retry_on_intr};
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the lock file in a store's folder. A device leaves this file out of directory listings.
pub(crate) const LOCK: &str = "foxy.lock";

/// A store's folder that is open and locked. The lock ends when the last clone is dropped or the
/// process ends.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
    directory: Arc<OwnedFd>,
    lock: Arc<OwnedFd>,
}

/// Reason why a folder cannot contain a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RootError {
    /// Another process has opened and locked the folder.
    InUse(PathBuf),
    /// The block device is mounted, part of a volume, or opened exclusively by another process.
    DeviceInUse(PathBuf),
    /// The size of the block device is 0 bytes.
    NoMedium(PathBuf),
    /// The path leads to something other than a directory.
    NotADirectory(PathBuf),
    /// A link or folder has the name of the lock file.
    LockNotAFile(PathBuf),
    /// The user has no permission for the folder.
    Denied(PathBuf),
    /// The folder's file system is mounted read-only.
    ReadOnly(PathBuf),
    /// The folder's disk is full.
    NoSpace(PathBuf),
    /// Any other error, with the text of the operating system.
    Failed(PathBuf, String),
}

impl fmt::Display for RootError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store {}: ", self.path().display())?;
        match self {
            Self::InUse(_) => f.write_str(
                "in use by another foxy; stop that foxy or name another folder with --store",
            ),
            Self::DeviceInUse(_) => f.write_str(
                "the device it leads to is in use: mounted, part of a volume, or used by another \
                 foxy; `lsblk` shows mounts and volumes; free the device or link another device",
            ),
            Self::NoMedium(_) => {
                let what = IoError::NoMedium;
                write!(f, "{what}; attach a disk (`lsblk` shows its size) or link another device")
            }
            Self::NotADirectory(_) => f.write_str("not a folder; name a folder with --store"),
            Self::LockNotAFile(_) => write!(
                f,
                "a link or folder has the name of foxy's lock file {LOCK}; move it away or name \
                 another folder with --store"
            ),
            Self::Denied(_) => f.write_str(
                "no permission to write there; with --store name a folder that this user may write \
                 to",
            ),
            Self::ReadOnly(_) => f.write_str(
                "its file system is read-only; mount it for writing, or name a folder on another \
                 disk with --store; the system's log may give the reason",
            ),
            Self::NoSpace(_) => f.write_str(
                "the disk is full; free some space or name a folder on another disk with --store",
            ),
            Self::Failed(_, reason) => {
                write!(f, "cannot be opened: {reason}; name a folder that this user may write to")
            }
        }
    }
}

impl RootError {
    fn path(&self) -> &Path {
        match self {
            Self::InUse(path)
            | Self::DeviceInUse(path)
            | Self::NoMedium(path)
            | Self::NotADirectory(path)
            | Self::LockNotAFile(path)
            | Self::Denied(path)
            | Self::ReadOnly(path)
            | Self::NoSpace(path)
            | Self::Failed(path, _) => path,
        }
    }
}

impl std::error::Error for RootError {}

impl Root {
    /// Creates missing folders (mode 0700) and locks the folder at `path`.
    ///
    /// # Errors
    /// Returns a [`RootError`] that contains the path.
    pub fn open(path: &Path) -> Result<Self, RootError> {
        make(path)?;
        let failed = |error: Errno| explain(path, error);
        let directory =
            open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock_file = openat(&directory, LOCK, flags, Mode::RUSR | Mode::WUSR).map_err(
            |error| match error {
                Errno::LOOP | Errno::ISDIR | Errno::NXIO => {
                    RootError::LockNotAFile(path.to_owned())
                }
                other => explain(path, other),
            },
        )?;
        lock(&lock_file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| not_locked(path, error))?;
        Ok(Self {
            path: path.to_owned(),
            directory: Arc::new(directory),
            lock: Arc::new(lock_file),
        })
    }

    /// Returns the path of the store's folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the free bytes on the file system for this user, or `None` if unknown.
    #[must_use]
    pub fn free_bytes(&self) -> Option<u64> {
        let status = statvfs(&self.path).ok()?;
        Some(status.f_bavail.saturating_mul(status.f_frsize))
    }

    /// Returns a duplicate of the folder's lock for another process, such as a helper. The folder
    /// is unlocked when all processes have closed their duplicates.
    ///
    /// # Errors
    /// Returns an error if the process has no free descriptor.
    pub fn share_lock(&self) -> std::io::Result<OwnedFd> {
        self.lock.try_clone()
    }

    pub(crate) fn directory(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.directory)
    }
}

/// Locks `file` with flock(2). Returns [`IoError::InUse`] if another process has locked the file.
pub(crate) fn lock(file: impl AsFd, how: FlockOperation) -> Result<(), IoError> {
    match retry_on_intr(|| flock(&file, how)) {
        Err(Errno::WOULDBLOCK) => Err(IoError::InUse),
        locked => Ok(locked?),
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

pub(crate) fn not_locked(path: &Path, error: IoError) -> RootError {
    match error {
        IoError::InUse => RootError::InUse(path.to_owned()),
        other => RootError::Failed(path.to_owned(), other.to_string()),
    }
}

/// Size in bytes of one unit of `st_blocks`. The size is 512 on every file system (stat(3type)).
const STAT_BLOCK_BYTES: u64 = 512;
/// Maximum depth of nested folders that [`Root::used_bytes`] enters. No store has deeper folders.
const MAX_DEPTH: usize = 3;

impl Root {
    /// Returns the device number of the file system. All folders on one file system share this
    /// number.
    #[must_use]
    pub fn file_system(&self) -> Option<u64> {
        fstat(self.directory()).ok().map(|status| status.st_dev)
    }

    /// Returns the disk space in bytes that entries of the folder use. Counts only top-level
    /// entries whose name `ours` accepts, and their content. Counting stops when the sum reaches
    /// `enough` bytes. An unreadable entry counts as 0.
    #[must_use]
    pub fn used_bytes(&self, ours: impl Fn(&str) -> bool, enough: u64) -> u64 {
        let mut taken = 0;
        let Ok(top) = reopened(&self.directory()) else { return 0 };
        let mut folders = vec![(top, 0)];
        while let Some((folder, depth)) = folders.pop() {
            for (name, entry) in entries(&folder) {
                if taken >= enough {
                    return taken;
                }
                if depth == 0 && !ours(&name) {
                    continue;
                }
                match entry {
                    Entry::File(bytes) => taken += bytes,
                    Entry::Folder if depth < MAX_DEPTH => {
                        folders.extend(inner(&folder, &name).map(|inner| (inner, depth + 1)));
                    }
                    Entry::Folder => {}
                }
            }
        }
        taken
    }
}

enum Entry {
    File(u64),
    Folder,
}

fn reopened(folder: &OwnedFd) -> Result<OwnedFd, Errno> {
    openat(folder, ".", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn inner(folder: &OwnedFd, name: &str) -> Option<OwnedFd> {
    openat(folder, name, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty()).ok()
}

fn entries(folder: &OwnedFd) -> impl Iterator<Item = (String, Entry)> {
    let listing = Dir::read_from(folder).into_iter().flatten().filter_map(Result::ok);
    listing.filter_map(move |entry| {
        let name = entry.file_name().to_str().ok()?;
        if name == "." || name == ".." {
            return None;
        }
        let status = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let entry = match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => {
                Entry::File(u64::try_from(status.st_blocks).unwrap_or(0) * STAT_BLOCK_BYTES)
            }
            FileType::Directory => Entry::Folder,
            _ => return None,
        };
        Some((name.to_owned(), entry))
    })
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
    fn a_link_or_folder_is_refused_as_lock_file() {
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

    #[test]
    fn only_accepted_entries_and_their_content_count() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Root::open(folder.path()).expect("opens");
        std::fs::create_dir_all(folder.path().join("00/1F")).expect("made");
        for (name, bytes) in [("own", 5000), ("00/1F/a", 9000), ("stranger", 70_000)] {
            std::fs::write(folder.path().join(name), vec![1; bytes]).expect("written");
        }
        std::os::unix::fs::symlink("stranger", folder.path().join("00/link")).expect("made");
        let ours = |name: &str| name == "own" || name == "00";
        let all = root.used_bytes(ours, u64::MAX);
        assert!((14_000..70_000).contains(&all), "{all}");
        assert!((5000..14_000).contains(&root.used_bytes(|name| name == "own", u64::MAX)));
        assert!(root.used_bytes(ours, 1) > 0, "it ends early, with what was counted");
        assert_eq!(root.used_bytes(|_| false, u64::MAX), 0);
        assert!(root.file_system().is_some());
    }
}
