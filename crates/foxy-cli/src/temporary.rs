//! A folder that is removed with its content on drop, and a file without a name that vanishes on
//! close.

use crate::terminal::{self, Level};
use foxy_base::clock;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A temporary folder.
pub struct Temporary(PathBuf);

impl Temporary {
    /// Removes `path` on drop. Creates nothing.
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// The path of the folder.
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

/// Creates a file in `folder` that no other process can open. Its space is free after close.
///
/// # Errors
/// The file cannot be created.
pub fn file_without_name(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!(".foxy-{}-{}", std::process::id(), clock::monotonic().0));
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
