//! A folder that is removed with all that is in it, whatever way its owner ends short of being killed.

use crate::terminal::{self, Level};
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
