//! Notices that files have changed, and that a change is complete.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::SystemTime;

/// The versions of all files: inode number and time of the last change. `None` for a missing file.
pub type Versions = Vec<Option<(u64, SystemTime)>>;

/// File versions when foxy last read the files (`read`), and at the last check for changes
/// (`last`).
#[derive(Debug)]
pub struct SeenVersions {
    read: Versions,
    last: Versions,
}

impl SeenVersions {
    /// Remembers the versions of files that foxy reads now.
    pub fn new(now: Versions) -> Self {
        Self { read: now.clone(), last: now }
    }

    /// Returns true if the files differ from the read versions, but not from the last check. A
    /// renewal writes several files, and foxy must not read them before all are written.
    pub fn have_settled(&mut self, now: Versions) -> bool {
        let has_settled = now == self.last && now != self.read;
        if has_settled {
            self.read.clone_from(&now);
        }
        self.last = now;
        has_settled
    }
}

/// Returns the version of each file: inode number and time of the last change.
pub fn versions<'a>(files: impl Iterator<Item = &'a Path>) -> Versions {
    let version = |path: &Path| {
        let facts = std::fs::metadata(path).ok()?;
        Some((facts.ino(), facts.modified().ok()?))
    };
    files.map(version).collect()
}
