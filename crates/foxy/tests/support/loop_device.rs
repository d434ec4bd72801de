//! A block device for a test: an image file that is attached to a loop device. Drop detaches the
//! device, even after a panic.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Held while a test asks the system for a free device. Without this lock, the system could give
/// the test a device that another test has just detached.
static ATTACHING: Mutex<()> = Mutex::new(());

/// The loop device. Only root can create a loop device.
pub struct LoopDevice {
    attached: bool,
    folder: TempDir,
    path: PathBuf,
}

impl LoopDevice {
    /// Attaches a device with `bytes` zero bytes. If the kernel provides no device, as in most
    /// containers, prints a message and returns `None`.
    pub fn new(bytes: u64) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let image = folder.path().join("image");
        let file = std::fs::File::create(&image).expect("writable");
        file.set_len(bytes).expect("a sparse file");
        let mut attach = Command::new("losetup");
        let _waits = ATTACHING.lock().unwrap_or_else(PoisonError::into_inner);
        let attached = attach.args(["--find", "--show"]).arg(&image).output();
        match attached {
            Ok(output) if output.status.success() => {
                let path = String::from_utf8(output.stdout).expect("a path").trim().into();
                Some(Self { attached: true, folder, path })
            }
            other => {
                let text = format!(
                    "\nNOT RUN: a test of stores on block devices: no loop device: {other:?}\n"
                );
                std::io::stderr().write_all(text.as_bytes()).expect("standard error is writable");
                None
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the device read-only or writable again, also for processes that already have it open.
    pub fn make_read_only(&self, read_only: bool) {
        let set = self.set_read_only(read_only);
        assert!(set.expect("blockdev runs").success());
    }

    fn set_read_only(&self, read_only: bool) -> std::io::Result<ExitStatus> {
        let mut set = Command::new("blockdev");
        set.arg(if read_only { "--setro" } else { "--setrw" }).arg(&self.path);
        set.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").status()
    }

    /// Detaches the device, so that it has no bytes. No other test can attach a device until the
    /// returned guard is dropped.
    pub fn detach(&mut self) -> MutexGuard<'static, ()> {
        let nobody_attaches = ATTACHING.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(detached(&self.path).expect("losetup runs").success());
        self.attached = false;
        nobody_attaches
    }

    /// Creates a store folder that has a link `name` to the device.
    pub fn linked_as(&self, name: &str) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(&self.path, folder.path().join(name)).expect("made");
        folder
    }

    /// Returns all bytes of the device. No process may write to the device meanwhile.
    pub fn content(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("readable")
    }

    /// Creates an ext4 file system on the device.
    pub fn make_ext4(&self) {
        let mut make = Command::new("mkfs.ext4");
        let made = make
            .args(["-q", "-F"])
            .arg(&self.path)
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .status();
        assert!(made.expect("mkfs.ext4 runs").success());
    }
}

fn detached(device: &Path) -> std::io::Result<ExitStatus> {
    Command::new("losetup").arg("--detach").arg(device).status()
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if !self.attached {
            return;
        }
        // The read-only state outlives the detaching, and another test may get the same device.
        let writable = self.set_read_only(false);
        // If a process still has the device open, the kernel detaches the device when that process
        // closes it.
        let detached = detached(&self.path);
        let text = format!(
            "\n{} is still attached to {} or read-only\n",
            self.path.display(),
            self.folder.path().display()
        );
        if ![writable, detached].into_iter().all(|ended| ended.is_ok_and(|status| status.success()))
        {
            let _nothing_more_to_do = std::io::stderr().write_all(text.as_bytes());
        }
    }
}
