//! Opens block devices that a store uses instead of a file, and returns their sizes. This module
//! never creates, resizes, trims or removes a device, and never reads its content.

use crate::io::IoError;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, SeekFrom, Stat, fstat, ioctl_blksszget, openat, seek, statat,
};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl, opcode};
use std::ffi::c_int;
use std::os::fd::{AsFd, OwnedFd};

/// Maximum logical block size in bytes. Stores write whole pages of 4096 bytes. With larger blocks,
/// a torn write would damage neighbouring pages.
const MAX_BLOCK_BYTES: u32 = 4096;

/// Opens the block device `name` and returns its size in bytes. If `name` is a symbolic link, opens
/// the target. With `OFlags::EXCL` the kernel refuses a device that is mounted, part of a volume,
/// or opened exclusively by another process (open(2)).
pub(crate) fn open_block_device(
    folder: impl AsFd,
    name: &str,
    flags: OFlags,
) -> Result<(OwnedFd, u64), IoError> {
    // Checks the kind before opening, because opening a pipe could block and opening another kind
    // of device could have side effects.
    if !is_block_device(&statat(&folder, name, AtFlags::empty())?) {
        return Err(IoError::WrongKind);
    }
    let open = |flags| openat(&folder, name, flags | OFlags::CLOEXEC, Mode::empty());
    let descriptor = open(flags).map_err(|error| match error {
        Errno::BUSY => IoError::InUse,
        Errno::ACCESS | Errno::PERM if open(OFlags::RDONLY).is_ok_and(is_read_only) => {
            IoError::ReadOnlyDevice
        }
        other => other.into(),
    })?;
    if !is_block_device(&fstat(&descriptor)?) {
        return Err(IoError::WrongKind);
    }
    if flags.contains(OFlags::RDWR) && is_read_only(&descriptor) {
        return Err(IoError::ReadOnlyDevice);
    }
    judge_block(ioctl_blksszget(&descriptor)?)?;
    match length(&descriptor)? {
        0 => Err(IoError::NoMedium),
        bytes => Ok((descriptor, bytes)),
    }
}

/// Returns whether an open block device is read-only. If a process opens such a device for writing,
/// the kernel either reports a missing permission or refuses later writes.
fn is_read_only(device: impl AsFd) -> bool {
    const BLKROGET: Opcode = opcode::none(0x12, 94);
    // SAFETY: BLKROGET takes a pointer to an int and writes one int to that address
    // (block/ioctl.c).
    let asked = unsafe { ioctl(device, Getter::<BLKROGET, c_int>::new()) };
    asked.is_ok_and(|read_only| read_only != 0)
}

/// Returns the size of an open block device in bytes. `fstat` does not return this size.
pub(crate) fn length(descriptor: impl AsFd) -> Result<u64, Errno> {
    seek(descriptor, SeekFrom::End(0))
}

pub(crate) fn is_block_device(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice
}

const fn judge_block(bytes: u32) -> Result<(), IoError> {
    if bytes > MAX_BLOCK_BYTES { Err(IoError::LargeBlocks) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_at_most_a_page_are_accepted() {
        for bytes in [512, 4096] {
            assert_eq!(judge_block(bytes), Ok(()));
        }
        assert_eq!(judge_block(8192), Err(IoError::LargeBlocks));
    }

    #[test]
    fn only_block_devices_are_opened_as_block_devices() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("file"), b"x").expect("written");
        std::fs::create_dir(folder.path().join("folder")).expect("made");
        let links = [
            ("to-file", "file"),
            ("to-folder", "folder"),
            ("to-itself", "to-itself"),
            ("to-null", "/dev/null"),
            ("dangling", "nowhere"),
        ];
        for (link, target) in links {
            std::os::unix::fs::symlink(target, folder.path().join(link)).expect("made");
        }
        let pipe = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
        assert!(pipe.expect("mkfifo runs").success());
        let at = std::fs::File::open(folder.path()).expect("a folder");
        let refused = |name| open_block_device(&at, name, OFlags::RDWR).err();
        for name in ["file", "folder", "to-file", "to-folder", "to-itself", "to-null", "pipe"] {
            assert_eq!(refused(name), Some(IoError::WrongKind), "{name}");
        }
        for name in ["missing", "dangling"] {
            assert_eq!(refused(name), Some(IoError::NotFound), "{name}");
        }
    }
}
