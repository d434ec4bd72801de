//! The folders of measurements. Locks and checks folders, and removes mounts and folders that
//! killed runs left. The name of each such folder contains the process id. So folders of running
//! processes stay.

use crate::mounts::call;
use foxy_cli::failure::Failure;
use foxy_cli::terminal;
use foxy_cli::terminal::Level;
use foxy_device::{IoError, Root, RootError};
use std::fs::{DirEntry, File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// If `folder` is a foxy store, locks it so that no other foxy opens it during the measurement.
/// Returns `None` for any other folder.
pub fn store_lock(folder: &Path) -> Result<Option<Root>, RootError> {
    let is_store = folder.join("foxy.lock").exists();
    is_store.then(|| Root::open(folder)).transpose()
}

/// Fails if the folder does not exist. The command does not create it, because a mistyped path
/// could lead to another disk.
pub fn existing(option: &str, folder: &Path) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    Err(Failure::Unusable(format!(
        "{option} {}: no such folder; name an existing folder",
        folder.display()
    )))
}

/// Locks the folder without creating a lock file. Fails if another foxy has locked it. Returns
/// `None` if the folder cannot be opened or locked.
pub fn claim(option: &str, folder: &Path) -> Result<Option<File>, Failure> {
    let Ok(file) = File::open(folder) else { return Ok(None) };
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(Failure::Failed(format!(
            "{option} {}: in use: another foxy measures there; wait until it has ended or name another folder",
            folder.display()
        ))),
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

pub fn words(error: &RootError) -> String {
    match error {
        RootError::InUse(_) | RootError::DeviceInUse(_) => {
            "the folder is in use by another foxy".into()
        }
        RootError::NoMedium(_) => IoError::NoMedium.to_string(),
        RootError::NotADirectory(_) => "not a folder".into(),
        RootError::LockNotAFile(_) => {
            "there is a link or folder where its lock file should be".into()
        }
        RootError::Denied(_) => "the folder is read-only for this user".into(),
        RootError::ReadOnly(_) => "the folder's file system is read-only".into(),
        RootError::NoSpace(_) => "the disk is full".into(),
        RootError::Failed(_, words) => format!("the folder cannot be used: {words}"),
    }
}

pub const PREFIX: &str = "foxy-figure-";

pub const SIM_PREFIX: &str = "foxy-sim-";

pub const COMPARE_PREFIX: &str = "foxy-compare-";

/// Removes the files of killed runs. The caller must call this function before the process creates
/// anything in the folder.
pub fn remove_leftovers(folder: &Path) {
    for path in left_behind(folder) {
        let text = if let Some(mounted) = disks(&path).find_map(|disk| still_mounted(&disk)) {
            format!(
                "{}: a killed run left a mounted file system that is in use; end the processes \
                 that use it, then unmount and remove it",
                mounted.display()
            )
        } else {
            match std::fs::remove_dir_all(&path) {
                Ok(()) => format!("{}: removed; a killed run had left it", path.display()),
                Err(error) => {
                    format!("{} cannot be removed: {error}; a killed run left it", path.display())
                }
            }
        };
        terminal::report(Level::Warning, &text);
    }
}

/// Lists a folder and its sub-folders. A sub-folder can be the mount point of a file system that
/// `foxy compare` created.
fn disks(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let inner = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_disk = |entry: &DirEntry| {
        entry.file_name().to_string_lossy().starts_with(PREFIX)
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    let inner = inner.filter(is_disk).map(|entry| entry.path());
    std::iter::once(folder.to_path_buf()).chain(inner)
}

fn still_mounted(folder: &Path) -> Option<PathBuf> {
    let (mounted, image) = (folder.join("mounted"), folder.join("image"));
    if image.exists() {
        detach(&image);
    }
    if is_mounted(&mounted) {
        let _looked_at_below = call(Command::new("umount").arg(&mounted), "umount");
    }
    is_mounted(&mounted).then_some(mounted)
}

/// Detaches the loop devices of an image file. A killed run attached them but had not mounted them
/// yet.
fn detach(image: &Path) {
    let Ok(devices) = call(
        Command::new("losetup").args(["--noheadings", "--output", "NAME", "-j"]).arg(image),
        "losetup",
    ) else {
        return;
    };
    for device in devices.lines() {
        let _said_by_the_system =
            call(Command::new("losetup").args(["-d", device.trim()]), "losetup");
    }
}

fn left_behind(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_store = || path.join("foxy.lock").exists();
        let by_lab = process(name, PREFIX).or_else(|| process(name, COMPARE_PREFIX));
        by_lab
            .or_else(|| process(name, SIM_PREFIX).filter(|_| is_store()))
            .is_some_and(|it| !runs(it))
    };
    let own = rustix::process::geteuid().as_raw();
    let folders = entries.filter(|entry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir())
            && entry.metadata().is_ok_and(|data| data.uid() == own)
    });
    folders.map(|entry| entry.path()).filter(is_left).collect()
}

fn process(name: &str, prefix: &str) -> Option<u32> {
    let (process, what) = name.strip_prefix(prefix)?.split_once('-')?;
    (!what.is_empty()).then(|| process.parse().ok()).flatten()
}

/// Returns whether the process is a running foxy. The function checks the name of the process,
/// because in containers another process soon has the same id.
fn runs(process: u32) -> bool {
    let name = |process: u32| std::fs::read(format!("/proc/{process}/comm")).unwrap_or_default();
    let (of_it, own) = (name(process), std::process::id());
    process != own && !of_it.is_empty() && (of_it.starts_with(b"foxy") || of_it == name(own))
}

/// Returns whether `path` is a mount point, which lies on another device than its parent folder.
fn is_mounted(path: &Path) -> bool {
    let device = |path: &Path| path.symlink_metadata().map(|metadata| metadata.dev()).ok();
    let (here, above) = (device(path), path.parent().and_then(device));
    here.is_some() && here != above
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::{FileSystem, LoopMount};
    use std::os::unix::process::CommandExt;

    #[test]
    fn folders_of_processes_that_are_gone_are_removed_and_no_others() {
        let base = tempfile::tempdir().expect("a temporary folder");
        let own = std::process::id();
        let gone = [PREFIX, COMPARE_PREFIX, SIM_PREFIX]
            .map(|prefix| [u32::MAX, 1, own].map(|process| format!("{prefix}{process}-0")))
            .concat();
        let kept = ["foxy-figure-x-0", "foxy-figure-7", "foxy-sim-7-", "mine", "foxy-sim-2026-11"];
        for name in gone.iter().map(String::as_str).chain(kept) {
            std::fs::create_dir_all(base.path().join(name).join("mounted")).expect("made");
        }
        for name in gone.iter().map(String::as_str).chain(kept[..4].iter().copied()) {
            std::fs::write(base.path().join(name).join("foxy.lock"), "").expect("written");
        }
        remove_leftovers(base.path());
        for name in &gone {
            assert!(!base.path().join(name).exists(), "{name}");
        }
        for name in kept {
            assert!(base.path().join(name).exists(), "{name}");
        }
    }

    #[test]
    fn the_disk_of_a_proxy_of_a_killed_comparison_is_unmounted_unless_it_is_in_use() {
        let base = tempfile::tempdir().expect("a temporary folder");
        let folder = base.path().join(format!("{COMPARE_PREFIX}{}-run", u32::MAX));
        std::fs::create_dir(&folder).expect("made");
        let Ok(mount) = LoopMount::new(&folder, FileSystem::Ext2, "noatime", 16 << 20) else {
            return;
        };
        let file = std::fs::File::create(mount.folder().join("kept")).expect("made");
        std::mem::forget(mount);
        remove_leftovers(base.path());
        assert!(folder.exists(), "in use");
        assert_eq!(file.metadata().expect("there").nlink(), 1, "nothing in it was removed");
        drop(file);
        remove_leftovers(base.path());
        assert!(!folder.exists());
    }

    #[test]
    fn the_folder_of_a_foxy_that_runs_under_another_name_is_left_alone() {
        let base = tempfile::tempdir().expect("a temporary folder");
        let other = base.path().join("foxy-other");
        std::os::unix::fs::symlink("/bin/sleep", &other).expect("linked");
        let mut runs = Command::new(&other).arg0("sleep").arg("60").spawn().expect("started");
        // The kernel sets the name of a process shortly after its start. This loop waits for the
        // name.
        let name = format!("/proc/{}/comm", runs.id());
        while std::fs::read(&name).is_ok_and(|name| name != b"foxy-other\n") {
            std::thread::yield_now();
        }
        let folder = base.path().join(format!("{PREFIX}{}-0", runs.id()));
        std::fs::create_dir(&folder).expect("made");
        remove_leftovers(base.path());
        assert!(folder.exists());
        runs.kill().and_then(|()| runs.wait()).expect("ended");
        remove_leftovers(base.path());
        assert!(!folder.exists());
    }
}
