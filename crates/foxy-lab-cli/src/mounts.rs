//! Creates a file system in an image file, and mounts it through a loop device for one measurement.
//! The image is unlinked after the mount, so that no file remains.

use crate::folder::PREFIX;
use foxy_base::ByteSize;
use foxy_cli::temporary::Temporary;
use foxy_cli::terminal::{self, Level};
use rustix::process::geteuid;
use std::fmt;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileSystem {
    Ext2,
    /// ext3. Current kernels mount it with the code of ext4.
    Ext3,
    Ext4,
    Xfs,
    Btrfs,
}

impl FileSystem {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    const fn flags(self) -> &'static [&'static str] {
        match self {
            Self::Ext2 | Self::Ext3 | Self::Ext4 => &["-q", "-F"],
            Self::Xfs | Self::Btrfs => &["-q", "-f"],
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountReason {
    NotRoot,
    NoTool(String),
    NotInKernel(FileSystem),
    NoSpace(u64, u64),
    Folder(PathBuf, String),
    Failed(String, String),
}

impl fmt::Display for MountReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRoot => f.write_str("mounting a file system needs root; run foxy as root"),
            Self::NoTool(name) => {
                write!(f, "{name} is not installed; install the package that contains it")
            }
            Self::NotInKernel(kind) => write!(f, "this kernel has no {}", kind.name()),
            Self::NoSpace(free, needed) => {
                let (free, needed) = (ByteSize(*free), ByteSize(*needed));
                write!(
                    f,
                    "the disk is full: {free} are free, {needed} are needed; name another \
                     --folder"
                )
            }
            Self::Folder(path, words) => {
                write!(f, "{} cannot be written to: {words}; name another --folder", path.display())
            }
            Self::Failed(name, words) => write!(f, "{name} failed: {words}"),
        }
    }
}

impl std::error::Error for MountReason {}

static NEXT: AtomicU64 = AtomicU64::new(0);

pub struct LoopMount {
    /// The parent folder of the mount point. Rust drops this field, and so removes the folder,
    /// after the `drop` of `LoopMount` has unmounted the file system.
    _base: Temporary,
    mounted: PathBuf,
}

impl LoopMount {
    /// Creates the file system and mounts it. Undoes everything if a step fails.
    pub fn new(
        base: &Path,
        kind: FileSystem,
        options: &str,
        size: u64,
    ) -> Result<Self, MountReason> {
        if !geteuid().is_root() {
            return Err(MountReason::NotRoot);
        }
        let unwritable =
            |error: std::io::Error| MountReason::Folder(base.to_owned(), error.to_string());
        let status = rustix::fs::statvfs(base).map_err(|error| unwritable(error.into()))?;
        let free = status.f_bavail.saturating_mul(status.f_frsize);
        if free < size {
            return Err(MountReason::NoSpace(free, size));
        }
        let number = NEXT.fetch_add(1, Relaxed);
        let own = Temporary::new(base.join(format!("{PREFIX}{}-{number}", std::process::id())));
        let (image, mounted) = (own.path().join("image"), own.path().join("mounted"));
        std::fs::create_dir_all(&mounted).map_err(unwritable)?;
        File::create(&image).and_then(|file| file.set_len(size)).map_err(unwritable)?;
        let make = format!("mkfs.{}", kind.name());
        call(Command::new(&make).args(kind.flags()).arg(&image), &make)?;
        let mut attach = Command::new("losetup");
        let device =
            call(attach.args(["--find", "--show", "--direct-io=on"]).arg(&image), "losetup")?;
        let mut mount = Command::new("mount");
        mount.args(["-t", kind.name(), "-o", options, &device]).arg(&mounted);
        let tried = call(&mut mount, "mount");
        // `losetup -d` detaches a device at once if it is not mounted, else as soon as it is
        // unmounted.
        let detached = call(Command::new("losetup").args(["-d", &device]), "losetup");
        tried.map_err(|reason| match reason {
            MountReason::Failed(_, words) if words.contains("unknown filesystem type") => {
                MountReason::NotInKernel(kind)
            }
            other => other,
        })?;
        let made = Self { _base: own, mounted };
        detached?;
        std::fs::remove_file(&image).map_err(unwritable)?;
        Ok(made)
    }

    pub fn folder(&self) -> &Path {
        &self.mounted
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        if let Err(reason) = call(Command::new("umount").arg(&self.mounted), "umount") {
            let text =
                format!("{} cannot be unmounted: {reason}; unmount it", self.mounted.display());
            terminal::report(Level::Warning, &text);
        }
    }
}

/// Runs a system program in its own process group, and returns its standard output.
#[expect(clippy::disallowed_methods, reason = "this binary looks where the system's programs are")]
pub fn call(command: &mut Command, name: &str) -> Result<String, MountReason> {
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin")).env("LC_ALL", "C").process_group(0);
    let Output { status, stdout, stderr } =
        command.output().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => MountReason::NoTool(name.into()),
            _ => MountReason::Failed(name.into(), error.to_string()),
        })?;
    if status.success() {
        return Ok(String::from_utf8_lossy(&stdout).trim().to_owned());
    }
    let text = String::from_utf8_lossy(&stderr);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(MountReason::Failed(name.into(), if words.is_empty() { status.to_string() } else { words }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_mounted_and_gone_again_or_says_why_not() {
        let base = tempfile::tempdir().expect("a temporary folder");
        match LoopMount::new(base.path(), FileSystem::Ext2, "noatime", 16 << 20) {
            Ok(mount) => {
                let mounts = std::fs::read_to_string("/proc/mounts").expect("readable");
                let folder = mount.folder().to_str().expect("UTF-8");
                assert!(mounts.contains(&format!("{folder} ext2 ")), "{mounts}");
            }
            Err(reason) => assert!(!matches!(reason, MountReason::Folder(..)), "{reason}"),
        }
        assert_eq!(std::fs::read_dir(base.path()).expect("there").count(), 0);
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error =
            call(&mut Command::new("foxy-no-such-program"), "mkfs.none").expect_err("not there");
        assert_eq!(error, MountReason::NoTool("mkfs.none".into()));
    }

    #[test]
    fn a_program_that_fails_is_quoted() {
        let error =
            call(Command::new("ls").arg("/no/such/folder"), "ls").expect_err("fails").to_string();
        assert!(error.starts_with("ls failed: ls:") && error.contains("No such file"), "{error}");
    }
}
