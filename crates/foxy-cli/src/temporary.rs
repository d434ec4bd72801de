//! A temporary folder that disappears with its contents when its value is dropped. Also a temporary
//! file without a name, which disappears when it is closed.

use crate::terminal::{self, Level};
use foxy_base::clock;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A temporary folder. Dropping the value removes the folder with its contents.
pub struct Temporary(PathBuf);

impl Temporary {
    /// Marks `path` for removal on drop. The caller creates the folder.
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        match std::fs::remove_dir_all(&self.0) {
            Err(error) if self.0.exists() => {
                let text = format!("{} cannot be removed: {error}; remove it", self.0.display());
                terminal::report(Level::Warning, &text);
            }
            _ => {}
        }
    }
}

/// Creates a file without a name in `folder`, so no other process can open the file by a path. The
/// system frees the file's space when the file is closed.
///
/// # Errors
/// Returns an error if the system cannot create the file.
pub fn file_without_name(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!(".foxy-{}-{}", std::process::id(), clock::monotonic().0));
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
