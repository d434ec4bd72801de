//! How much of a disk a store's folder takes already: counted by names and sizes, no file is
//! opened.

use crate::root::Root;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;

/// What `st_blocks` counts in, whatever the file system's blocks are (stat(3type)).
const BLOCK: u64 = 512;
/// Folders within folders that a store makes at most.
const DEPTH: usize = 3;

impl Root {
    /// A number that folders on one file system share.
    #[must_use]
    pub fn file_system(&self) -> Option<u64> {
        fstat(self.directory()).ok().map(|status| status.st_dev)
    }

    /// Bytes of disk that the entries named by `ours` take, with all that is in them. Counting ends
    /// early once there are `enough`. What cannot be read counts as nothing.
    #[must_use]
    pub fn taken_bytes(&self, ours: impl Fn(&str) -> bool, enough: u64) -> u64 {
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
                    Entry::Folder if depth < DEPTH => {
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

/// The files and folders in one, lazily.
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
                Entry::File(u64::try_from(status.st_blocks).unwrap_or(0) * BLOCK)
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
    fn what_is_ours_is_counted_with_all_in_it_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Root::open(folder.path()).expect("opens");
        std::fs::create_dir_all(folder.path().join("00/1F")).expect("made");
        for (name, bytes) in [("own", 5000), ("00/1F/a", 9000), ("stranger", 70_000)] {
            std::fs::write(folder.path().join(name), vec![1; bytes]).expect("written");
        }
        std::os::unix::fs::symlink("stranger", folder.path().join("00/link")).expect("made");
        let ours = |name: &str| name == "own" || name == "00";
        let all = root.taken_bytes(ours, u64::MAX);
        assert!((14_000..70_000).contains(&all), "{all}");
        assert!((5000..14_000).contains(&root.taken_bytes(|name| name == "own", u64::MAX)));
        assert!(root.taken_bytes(ours, 1) > 0, "it ends early, with what was counted");
        assert_eq!(root.taken_bytes(|_| false, u64::MAX), 0);
        assert!(root.file_system().is_some());
    }
}
