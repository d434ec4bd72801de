//! Block devices in place of a file: finding one at a name, opening it, its length and its blocks.
//! None is ever made, cut, lengthened, trimmed or removed; what is on it is not read here.

use crate::io::IoError;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, SeekFrom, Stat, fstat, ioctl_blksszget, openat, seek, statat,
};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, ioctl, opcode};
use std::ffi::c_int;
use std::os::fd::{AsFd, OwnedFd};

/// The largest logical block in bytes. A page is what the stores write as a whole: larger blocks
/// would tear its neighbours.
const LARGEST_BLOCK: u32 = 4096;

/// Opens the block device of that name, or the one that a symbolic link of that name leads to, and
/// says how many bytes it has. With `OFlags::EXCL` the kernel refuses one that is mounted, part of
/// a volume, or held so by anybody else (open(2)).
///
/// # Errors
/// [`IoError::WrongKind`] for anything else, [`IoError::InUse`], [`IoError::ReadOnlyDevice`],
/// [`IoError::LargeBlocks`], [`IoError::NoMedium`], or what else the system has against it.
pub(crate) fn open_block_device(
    folder: impl AsFd,
    name: &str,
    flags: OFlags,
) -> Result<(OwnedFd, u64), IoError> {
    // Opening something else could wait or act, so that it is looked at before as well.
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

/// Whether an open block device can only be read. The kernel refuses to open one for writing as
/// where the user may not, or refuses the writes.
fn is_read_only(device: impl AsFd) -> bool {
    const BLKROGET: Opcode = opcode::none(0x12, 94);
    // SAFETY: BLKROGET takes a pointer to an int and writes one there (block/ioctl.c).
    let asked = unsafe { ioctl(device, Getter::<BLKROGET, c_int>::new()) };
    asked.is_ok_and(|read_only| read_only != 0)
}

/// Bytes that an open block device has now; its status does not say.
pub(crate) fn length(descriptor: impl AsFd) -> Result<u64, Errno> {
    seek(descriptor, SeekFrom::End(0))
}

pub(crate) fn is_block_device(status: &Stat) -> bool {
    FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice
}

const fn judge_block(bytes: u32) -> Result<(), IoError> {
    if bytes > LARGEST_BLOCK { Err(IoError::LargeBlocks) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_at_most_a_page_will_do() {
        for bytes in [512, 4096] {
            assert_eq!(judge_block(bytes), Ok(()));
        }
        assert_eq!(judge_block(8192), Err(IoError::LargeBlocks));
    }

    #[test]
    fn nothing_but_a_block_device_is_taken_for_one() {
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
