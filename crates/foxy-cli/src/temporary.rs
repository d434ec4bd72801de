//! A temporary folder that Drop removes with its contents, and a temporary file without a name that
//! vanishes on close.

use crate::terminal::{self, Level};
use foxy_base::clock;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A temporary folder. Drop removes it with its contents.
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

/// Creates a file without a name in `folder`. No other process can open the file. The system frees
/// its space when it is closed.
///
/// # Errors
/// The system cannot create the file.
pub fn file_without_name(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!(".foxy-{}-{}", std::process::id(), clock::monotonic().0));
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
