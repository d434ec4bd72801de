//! Locks a store's file for one process. The lock is on the file itself, so no second process can
//! open the store through another name of the file. The lock also holds if someone removes the lock
//! file of the folder. This module never reads the file's content.

use crate::block_device::{is_block_device, length, open_block_device};
use crate::io::IoError;
use crate::open_file::FileKind;
use crate::root::{Root, RootError, lock};
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, StatVfsMountFlags, fstat, fstatvfs,
    openat, statat,
};
use rustix::io::Errno;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// A file that this process has locked. The lock ends when this value is dropped or the process
/// ends.
#[derive(Debug)]
pub struct LockedFile {
    descriptor: OwnedFd,
    path: PathBuf,
    size: u64,
    kind: FileKind,
}

/// A block device that this process has opened exclusively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// The operating system's number of the device. While this process has the device open, the
    /// kernel mounts no file system from it.
    pub number: u64,
    /// Size in bytes when the device was opened.
    pub bytes: u64,
}

/// A fault of a locked file while a store uses the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFault {
    /// No file exists under the file's name any more.
    Gone(FileKind),
    /// The file's name now leads to another file.
    Replaced(FileKind),
    /// The file is shorter than when it was opened.
    CutShort {
        /// Current size of the file in bytes.
        found: u64,
        /// Size in bytes when the file was opened.
        expected: u64,
        /// Whether the shortened file is a regular file or a block device.
        kind: FileKind,
    },
    /// The file system that contains the file has become read-only.
    ReadOnly,
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const REMEDY: &str = "restart foxy soon, because content that foxy stores there before the \
                            restart is lost";
        match self {
            Self::Gone(kind) => {
                let what = if *kind == FileKind::File { "file" } else { "link to the device" };
                write!(f, "the {what} was removed, moved or unmounted while in use; {REMEDY}")
            }
            Self::Replaced(FileKind::File) => {
                write!(f, "another file replaced the file while in use; {REMEDY}")
            }
            Self::Replaced(FileKind::BlockDevice) => {
                write!(f, "the link to the device was changed or replaced while in use; {REMEDY}")
            }
            // The message does not contain the current size, because this size changes as the store
            // writes.
            Self::CutShort { expected, kind, .. } => {
                let what = if *kind == FileKind::File { "file" } else { "device" };
                write!(
                    f,
                    "the {what}, which had {expected} bytes, was shortened while in use; {REMEDY}"
                )
            }
            Self::ReadOnly => f.write_str(
                "the file system has become read-only, so foxy stores nothing new; check the disk \
                 and the system's log, mount the file system for writing, and restart foxy",
            ),
        }
    }
}

impl Root {
    /// Locks the file `name`, if the file exists. `before` is the lock that an earlier call
    /// returned for this name. If `before` still locks this file, the function keeps that lock.
    /// Otherwise it locks the new file, because a store may have created a file since the earlier
    /// call.
    ///
    /// # Errors
    /// Returns [`RootError::InUse`] with the path if another process has the file open under any
    /// name.
    pub fn lock_file(
        &self,
        name: &str,
        before: Option<LockedFile>,
    ) -> Result<Option<LockedFile>, RootError> {
        let path = self.path().join(name);
        if let Some(held) = before {
            // Keep the earlier lock. A store never replaces its block device. An unlock would let
            // other processes open the device.
            if held.kind == FileKind::BlockDevice {
                return Ok(Some(held));
            }
            if let Some(same) = held.status_at_name() {
                return Ok(Some(LockedFile { size: size(&same), ..held }));
            }
        }
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = openat(self.directory(), name, flags, Mode::empty());
        let opened = opened.and_then(|descriptor| Ok((fstat(&descriptor)?, descriptor)));
        let Some((status, descriptor)) = opened.ok().filter(|(status, _)| is_file(status)) else {
            return Ok(None);
        };
        match lock(&descriptor, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                Ok(Some(LockedFile { descriptor, path, size: size(&status), kind: FileKind::File }))
            }
            Err(IoError::InUse) => Err(RootError::InUse(path)),
            Err(error) => Err(RootError::Failed(path, error.to_string())),
        }
    }

    /// Opens the block device `name` exclusively. If `name` is a symbolic link, opens the target.
    /// Returns `None` if the device cannot be opened. While the device is open, the kernel grants
    /// no other exclusive open and mounts nothing from it.
    ///
    /// # Errors
    /// Returns [`RootError::DeviceInUse`] if the device is mounted, part of a volume, or opened
    /// exclusively by another process. Returns [`RootError::NoMedium`] if the size of the device is
    /// 0 bytes.
    pub fn lock_block_device(&self, name: &str) -> Result<Option<LockedFile>, RootError> {
        let path = self.path().join(name);
        match open_block_device(self.directory(), name, OFlags::RDWR | OFlags::EXCL) {
            Ok((descriptor, size)) => {
                Ok(Some(LockedFile { descriptor, path, size, kind: FileKind::BlockDevice }))
            }
            Err(IoError::InUse) => Err(RootError::DeviceInUse(path)),
            Err(IoError::NoMedium) => Err(RootError::NoMedium(path)),
            Err(_) => Ok(None),
        }
    }
}

impl LockedFile {
    /// Returns the device number and size of the block device, or `None` for a regular file.
    #[must_use]
    pub fn block_device(&self) -> Option<BlockDevice> {
        let number = fstat(&self.descriptor).ok()?.st_rdev;
        (self.kind == FileKind::BlockDevice).then_some(BlockDevice { number, bytes: self.size })
    }

    /// Returns the metadata (stat) of the file under the locked file's name. Returns `None` if the
    /// name no longer leads to the locked file.
    fn status_at_name(&self) -> Option<Stat> {
        let held = fstat(&self.descriptor).ok()?;
        let named = self.named().ok()?;
        let same = match self.kind {
            FileKind::File => named.st_dev == held.st_dev && named.st_ino == held.st_ino,
            FileKind::BlockDevice => is_block_device(&named) && named.st_rdev == held.st_rdev,
        };
        same.then_some(named)
    }

    fn named(&self) -> Result<Stat, Errno> {
        let links = match self.kind {
            FileKind::File => AtFlags::SYMLINK_NOFOLLOW,
            FileKind::BlockDevice => AtFlags::empty(),
        };
        statat(CWD, &self.path, links)
    }

    /// Returns the current size of the locked file or device in bytes.
    fn bytes(&self, status: &Stat) -> u64 {
        match self.kind {
            FileKind::File => size(status),
            FileKind::BlockDevice => length(&self.descriptor).unwrap_or(0),
        }
    }

    /// Returns whether the file system of the file is read-only. For a block device the result is
    /// always false, because the file system that contains the name does not limit writes to the
    /// device.
    fn is_read_only(&self) -> bool {
        let read_only = |flags: StatVfsMountFlags| flags.contains(StatVfsMountFlags::RDONLY);
        self.kind == FileKind::File
            && fstatvfs(&self.descriptor).is_ok_and(|system| read_only(system.f_flag))
    }

    /// Returns a fault if the file's name leads elsewhere, the file has shrunk, or its file system
    /// became read-only.
    #[must_use]
    pub fn check(&self) -> Option<FileFault> {
        let Some(status) = self.status_at_name() else {
            let replaced = self.named().is_ok();
            return Some(if replaced {
                FileFault::Replaced(self.kind)
            } else {
                FileFault::Gone(self.kind)
            });
        };
        let (found, expected) = (self.bytes(&status), self.size);
        if found < expected {
            return Some(FileFault::CutShort { found, expected, kind: self.kind });
        }
        self.is_read_only().then_some(FileFault::ReadOnly)
    }
}

fn is_file(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
}

fn size(status: &Stat) -> u64 {
    u64::try_from(status.st_size).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::StorePath;
    use crate::read_only::ReadOnlyFolder;

    #[test]
    fn a_locked_file_is_exclusive_under_every_name_and_without_the_folder_lock() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [one, other] =
            ["one", "other"].map(|name| Root::open(&folder.path().join(name)).expect("new"));
        let paths = ["one/store", "other/store"].map(|path| folder.path().join(path));
        assert!(matches!(one.lock_file("store", None), Ok(None)), "there is none yet");
        std::fs::write(&paths[0], [7; 90]).expect("written");
        let held = one.lock_file("store", None).expect("free");
        std::fs::hard_link(&paths[0], &paths[1]).expect("linked");
        std::fs::remove_file(folder.path().join("other/foxy.lock")).expect("removed");
        let looking = ReadOnlyFolder::open(&folder.path().join("other")).expect("no lock to ask");
        assert_eq!(other.lock_file("store", None).err(), Some(RootError::InUse(paths[1].clone())));
        assert_eq!(looking.file(&StorePath::new("store")).err(), Some(IoError::InUse));
        let again = one.lock_file("store", held).expect("its own").expect("there");
        drop(again);
        assert!(looking.file(&StorePath::new("store")).is_ok());
        assert!(matches!(other.lock_file("store", None), Ok(Some(_))));
    }

    #[test]
    fn faults_of_a_file_in_use_are_found() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Root::open(folder.path()).expect("opens");
        let (path, away) = (folder.path().join("store"), folder.path().join("away"));
        std::fs::write(&path, [7; 90]).expect("written");
        let held = root.lock_file("store", None).expect("free").expect("there");
        assert_eq!(held.check(), None);
        std::fs::write(&path, [7; 30]).expect("written");
        assert_eq!(
            held.check(),
            Some(FileFault::CutShort { found: 30, expected: 90, kind: FileKind::File })
        );
        std::fs::write(&path, [7; 91]).expect("written");
        assert_eq!(held.check(), None, "it may grow");
        std::fs::rename(&path, &away).expect("moved");
        assert_eq!(held.check(), Some(FileFault::Gone(FileKind::File)));
        std::fs::write(&path, [7; 90]).expect("written");
        assert_eq!(held.check(), Some(FileFault::Replaced(FileKind::File)));
        let held = root.lock_file("store", Some(held)).expect("free").expect("there");
        assert_eq!(held.check(), None, "the new one is held now");
    }
}
