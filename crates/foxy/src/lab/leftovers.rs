//! What measured figures left in their folder when they were killed: file systems that are still mounted, and folders. They
//! carry the number of their process in their name, so those of processes that run are left alone.

use crate::lab::mounts::call;
use crate::terminal::{self, Level};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How the folders of measured figures begin; the number of the process follows.
pub const PREFIX: &str = "foxy-figure-";

/// Unmounts and removes what killed figures left in a folder, and says so.
pub fn remove(folder: &Path) {
    for path in left_behind(folder) {
        let (mounted, image) = (path.join("mounted"), path.join("image"));
        if image.exists() {
            detach(&image);
        }
        if is_mounted(&mounted) {
            let _looked_at_below = call(Command::new("umount").arg(&mounted), "umount");
        }
        let text = if is_mounted(&mounted) {
            format!(
                "{}: a figure that was killed left a file system mounted there; unmount and remove it",
                mounted.display()
            )
        } else {
            match std::fs::remove_dir_all(&path) {
                Ok(()) => format!("{}: removed; a figure that was killed had left it", path.display()),
                Err(error) => {
                    format!("{} cannot be removed: {error}; a figure that was killed left it", path.display())
                }
            }
        };
        terminal::report(Level::Warning, &text);
    }
}

/// Takes an image from the loop devices that have it: a figure that was killed before it could mount.
fn detach(image: &Path) {
    let Ok(devices) =
        call(Command::new("losetup").args(["--noheadings", "--output", "NAME", "-j"]).arg(image), "losetup")
    else {
        return;
    };
    for device in devices.lines() {
        let _said_by_the_system = call(Command::new("losetup").args(["-d", device.trim()]), "losetup");
    }
}

/// This user's folders of figures whose process does not run any more.
fn left_behind(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_left = |path: &PathBuf| {
        path.file_name().and_then(|name| process(name.to_str()?)).is_some_and(|process| !runs(process))
    };
    let own = rustix::process::geteuid().as_raw();
    let folders = entries.filter(|entry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir())
            && entry.metadata().is_ok_and(|data| data.uid() == own)
    });
    folders.map(|entry| entry.path()).filter(is_left).collect()
}

/// The process that made a folder of that name, if a figure did.
fn process(name: &str) -> Option<u32> {
    let (process, what) = name.strip_prefix(PREFIX)?.split_once('-')?;
    (!what.is_empty()).then(|| process.parse().ok()).flatten()
}

fn runs(process: u32) -> bool {
    Path::new("/proc").join(process.to_string()).exists()
}

/// Whether something is mounted there: it is on another device than the folder that it lies in.
fn is_mounted(path: &Path) -> bool {
    let device = |path: &Path| path.symlink_metadata().map(|metadata| metadata.dev()).ok();
    let (here, above) = (device(path), path.parent().and_then(device));
    here.is_some() && here != above
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_processes_that_are_gone_are_removed_and_no_others() {
        let base = tempfile::tempdir().expect("a temporary folder");
        let own = format!("{PREFIX}{}-0", std::process::id());
        let gone = format!("{PREFIX}{}-0", u32::MAX);
        for name in [own.as_str(), &gone, "foxy-figure-x-0", "foxy-figure-7", "mine"] {
            std::fs::create_dir_all(base.path().join(name).join("mounted")).expect("made");
        }
        remove(base.path());
        assert!(!base.path().join(gone).exists());
        for name in [own.as_str(), "foxy-figure-x-0", "foxy-figure-7", "mine"] {
            assert!(base.path().join(name).exists(), "{name}");
        }
    }
}
