//! A block device of the test's own: an image file attached to a loop device, detached when it is
//! dropped, also by a panic.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;

/// Held while the system is asked for a device that is free: it may give one that another test has
/// detached.
static ATTACHING: Mutex<()> = Mutex::new(());

/// The device. Only root has one.
pub struct LoopDevice {
    attached: bool,
    folder: TempDir,
    path: PathBuf,
}

impl LoopDevice {
    /// Attaches a device of `bytes` zeros. Where the kernel gives none, as in most containers, says
    /// so on the terminal, past the capture of passing tests.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes it read-only, also for those that have it open, or writable again.
    pub fn make_read_only(&self, read_only: bool) {
        let set = self.set_read_only(read_only);
        assert!(set.expect("blockdev runs").success());
    }

    fn set_read_only(&self, read_only: bool) -> std::io::Result<ExitStatus> {
        let mut set = Command::new("blockdev");
        set.arg(if read_only { "--setro" } else { "--setrw" }).arg(&self.path);
        set.env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").status()
    }

    /// Detaches it: it has no bytes then, and stays so until what is returned is dropped.
    pub fn detach(&mut self) -> MutexGuard<'static, ()> {
        let nobody_attaches = ATTACHING.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(detached(&self.path).expect("losetup runs").success());
        self.attached = false;
        nobody_attaches
    }

    /// A folder for a store, with a link to it of that name.
    pub fn linked_as(&self, name: &str) -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(&self.path, folder.path().join(name)).expect("made");
        folder
    }

    /// All of its bytes. Nobody may be writing.
    pub fn content(&self) -> Vec<u8> {
        std::fs::read(&self.path).expect("readable")
    }

    /// Makes a file system on it.
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
        // It would stay so for whoever gets it next.
        let writable = self.set_read_only(false);
        // A device in use is detached when it is not any more.
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
