//! A store's file, held by one process: the file itself is locked, so that neither another name of
//! it nor a folder whose lock was removed lets a second process in; and looked at while it is in
//! use. Its bytes are not read here.

use crate::block_device::{is_block_device, length, open_block_device};
use crate::io::IoError;
use crate::root::{Root, RootError};
use crate::tree::Place;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, StatVfsMountFlags, flock, fstat,
    fstatvfs, openat, statat,
};
use rustix::io::{Errno, retry_on_intr};
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

/// A file that no other process has. Others may as soon as it is dropped, and when the process ends
/// in any way.
#[derive(Debug)]
pub struct HeldFile {
    descriptor: OwnedFd,
    path: PathBuf,
    size: u64,
    place: Place,
}

/// A block device that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDevice {
    /// Its number, which no file system has while the device is held.
    pub number: u64,
    /// Its bytes when it was opened.
    pub bytes: u64,
}

/// What is wrong with a file in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileTrouble {
    /// There is none by its name any more.
    Gone(Place),
    /// There is another by its name.
    Replaced(Place),
    /// It lost bytes.
    CutShort {
        /// Bytes it has.
        found: u64,
        /// Bytes it had.
        expected: u64,
        /// What lost them.
        place: Place,
    },
    /// Its file system has become read-only.
    ReadOnly,
}

impl fmt::Display for FileTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const COST: &str = "what is stored there now is lost at the next start; restart foxy";
        match self {
            Self::Gone(place) => {
                let what = if *place == Place::File { "file" } else { "link to the device" };
                write!(f, "the {what} was removed, moved or unmounted while in use; {COST}")
            }
            Self::Replaced(Place::File) => {
                write!(f, "another file was put in its place while in use; {COST}")
            }
            Self::Replaced(Place::BlockDevice) => write!(
                f,
                "the link to the device does not lead there any more, another file was put in its place while in use; {COST}"
            ),
            Self::CutShort { found, expected, place } => {
                let what = if *place == Place::File { "file" } else { "device" };
                write!(f, "the {what} was cut from {expected} to {found} bytes while in use; {COST}")
            }
            Self::ReadOnly => f.write_str(
                "its file system has become read-only, so nothing new is stored; look at the disk and the system's log, \
                 mount it for writing and restart foxy",
            ),
        }
    }
}

/// Takes a lock that is free.
///
/// # Errors
/// [`IoError::InUse`] where it is not.
pub(crate) fn lock(file: impl AsFd, how: FlockOperation) -> Result<(), IoError> {
    match retry_on_intr(|| flock(&file, how)) {
        Err(Errno::WOULDBLOCK) => Err(IoError::InUse),
        locked => Ok(locked?),
    }
}

impl Root {
    /// Holds the file of that name, if there is one. It goes on with `before`, what was held by
    /// that name earlier, where that is still the file: since then it may have been created.
    ///
    /// # Errors
    /// [`RootError::InUse`], naming the file: another process has it, by this or another name.
    pub fn hold(
        &self,
        name: &str,
        before: Option<HeldFile>,
    ) -> Result<Option<HeldFile>, RootError> {
        let path = self.path().join(name);
        if let Some(held) = before {
            // A device is not made by its store, and letting go of it would let others in.
            if held.place == Place::BlockDevice {
                return Ok(Some(held));
            }
            if let Some(same) = held.at_its_name() {
                return Ok(Some(HeldFile { size: size(&same), ..held }));
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
                Ok(Some(HeldFile { descriptor, path, size: size(&status), place: Place::File }))
            }
            Err(IoError::InUse) => Err(RootError::InUse(path)),
            Err(error) => Err(RootError::Failed(path, error.to_string())),
        }
    }

    /// Holds the block device that is at that name or that a link there leads to, if one is that
    /// can be opened: as long as it is held the kernel gives it to nobody else who asks to have it
    /// alone, and mounts nothing from it.
    ///
    /// # Errors
    /// [`RootError::DeviceInUse`], naming it: it is mounted, part of a volume, or another process
    /// holds it. [`RootError::NoMedium`], naming it: it has no bytes.
    pub fn hold_block_device(&self, name: &str) -> Result<Option<HeldFile>, RootError> {
        let path = self.path().join(name);
        match open_block_device(self.directory(), name, OFlags::RDWR | OFlags::EXCL) {
            Ok((descriptor, size)) => {
                Ok(Some(HeldFile { descriptor, path, size, place: Place::BlockDevice }))
            }
            Err(IoError::InUse) => Err(RootError::DeviceInUse(path)),
            Err(IoError::NoMedium) => Err(RootError::NoMedium(path)),
            Err(_) => Ok(None),
        }
    }
}

impl HeldFile {
    /// The block device that it is, if it is one.
    #[must_use]
    pub fn block_device(&self) -> Option<BlockDevice> {
        let number = fstat(&self.descriptor).ok()?.st_rdev;
        (self.place == Place::BlockDevice).then_some(BlockDevice { number, bytes: self.size })
    }

    /// What the system says of its name, while that is its name.
    fn at_its_name(&self) -> Option<Stat> {
        let held = fstat(&self.descriptor).ok()?;
        let named = self.named().ok()?;
        let same = match self.place {
            Place::File => named.st_dev == held.st_dev && named.st_ino == held.st_ino,
            Place::BlockDevice => is_block_device(&named) && named.st_rdev == held.st_rdev,
        };
        same.then_some(named)
    }

    fn named(&self) -> Result<Stat, Errno> {
        let links = match self.place {
            Place::File => AtFlags::SYMLINK_NOFOLLOW,
            Place::BlockDevice => AtFlags::empty(),
        };
        statat(CWD, &self.path, links)
    }

    /// Bytes there are.
    fn bytes(&self, status: &Stat) -> u64 {
        match self.place {
            Place::File => size(status),
            Place::BlockDevice => length(&self.descriptor).unwrap_or(0),
        }
    }

    /// Whether nothing can be written any more. The file system that a device's name lies in says
    /// nothing of the device.
    fn is_read_only(&self) -> bool {
        let read_only = |flags: StatVfsMountFlags| flags.contains(StatVfsMountFlags::RDONLY);
        self.place == Place::File
            && fstatvfs(&self.descriptor).is_ok_and(|system| read_only(system.f_flag))
    }

    /// Looks at it: whether it is still there, as large as it was, and can be written.
    #[must_use]
    pub fn look(&self) -> Option<FileTrouble> {
        let Some(status) = self.at_its_name() else {
            let replaced = self.named().is_ok();
            return Some(if replaced {
                FileTrouble::Replaced(self.place)
            } else {
                FileTrouble::Gone(self.place)
            });
        };
        let (found, expected) = (self.bytes(&status), self.size);
        if found < expected {
            return Some(FileTrouble::CutShort { found, expected, place: self.place });
        }
        self.is_read_only().then_some(FileTrouble::ReadOnly)
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
    fn a_file_is_one_processs_by_whatever_name_and_without_the_folders_lock() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [one, other] =
            ["one", "other"].map(|name| Root::open(&folder.path().join(name)).expect("new"));
        let paths = ["one/store", "other/store"].map(|path| folder.path().join(path));
        assert!(matches!(one.hold("store", None), Ok(None)), "there is none yet");
        std::fs::write(&paths[0], [7; 90]).expect("written");
        let held = one.hold("store", None).expect("free");
        std::fs::hard_link(&paths[0], &paths[1]).expect("linked");
        std::fs::remove_file(folder.path().join("other/foxy.lock")).expect("removed");
        let looking = ReadOnlyFolder::open(&folder.path().join("other")).expect("no lock to ask");
        assert_eq!(other.hold("store", None).err(), Some(RootError::InUse(paths[1].clone())));
        assert_eq!(looking.file(&StorePath::new("store")).err(), Some(IoError::InUse));
        let again = one.hold("store", held).expect("its own").expect("there");
        drop(again);
        assert!(looking.file(&StorePath::new("store")).is_ok());
        assert!(matches!(other.hold("store", None), Ok(Some(_))));
    }

    #[test]
    fn what_happens_to_a_file_in_use_is_seen() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Root::open(folder.path()).expect("opens");
        let (path, away) = (folder.path().join("store"), folder.path().join("away"));
        std::fs::write(&path, [7; 90]).expect("written");
        let held = root.hold("store", None).expect("free").expect("there");
        assert_eq!(held.look(), None);
        std::fs::write(&path, [7; 30]).expect("written");
        assert_eq!(
            held.look(),
            Some(FileTrouble::CutShort { found: 30, expected: 90, place: Place::File })
        );
        std::fs::write(&path, [7; 91]).expect("written");
        assert_eq!(held.look(), None, "it may grow");
        std::fs::rename(&path, &away).expect("moved");
        assert_eq!(held.look(), Some(FileTrouble::Gone(Place::File)));
        std::fs::write(&path, [7; 90]).expect("written");
        assert_eq!(held.look(), Some(FileTrouble::Replaced(Place::File)));
        let held = root.hold("store", Some(held)).expect("free").expect("there");
        assert_eq!(held.look(), None, "the new one is held now");
    }
}
