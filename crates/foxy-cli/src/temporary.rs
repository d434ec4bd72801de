//! A folder that is removed with all that is in it, whatever way its owner ends short of being
//! killed; and a file without a name, which is gone then too.

use crate::terminal::{self, Level};
use foxy_base::clock;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The folder.
pub struct Temporary(PathBuf);

impl Temporary {
    /// To be removed from now on; nothing is made.
    pub const fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Where it is.
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

/// A file in this folder that nobody else can open, and whose room is free again when it is closed.
///
/// # Errors
/// When it cannot be made there.
pub fn file_without_name(folder: &Path) -> io::Result<File> {
    let path = folder.join(format!(".foxy-{}-{}", std::process::id(), clock::monotonic().0));
    let file =
        OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}
