//! Where a measure of `foxy store bench` makes its stores: folders in one that exists, which no
//! other foxy has or measures in meanwhile. They are removed when the measure ends, also when a
//! signal ends it.

use crate::folder::{claim, existing, store_lock, words};
use crate::leftovers::{self, SIM_PREFIX};
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_cli::signals::interrupted;
use foxy_cli::temporary::Temporary;
use foxy_device::Root;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The place.
pub struct Ground {
    parent: PathBuf,
    interrupted: Arc<AtomicBool>,
    _lock: Option<Root>,
    _claimed: Option<File>,
}

impl Ground {
    /// In the folder that the arguments name, or in the system's for temporary files. From now on a
    /// signal sets a flag.
    ///
    /// # Errors
    /// When there is no such folder, or another foxy has it or measures there.
    pub fn new(matches: &ArgMatches) -> Result<Self, Failure> {
        let parent = parent(matches)?;
        let lock = store_lock(&parent).map_err(|error| failed(&parent, &words(&error)))?;
        let claimed = claim("--folder", &parent)?;
        leftovers::remove(&parent);
        let interrupted = interrupted()?;
        Ok(Self { parent, interrupted, _lock: lock, _claimed: claimed })
    }

    /// A folder for one store. Nothing is made.
    pub fn folder(&self) -> Temporary {
        Temporary::new(self.parent.join(format!("{SIM_PREFIX}{}-0", std::process::id())))
    }

    /// Opens that folder, and makes it when it is not there.
    ///
    /// # Errors
    /// When it cannot be made or is in use.
    pub fn open(&self, folder: &Temporary) -> Result<Root, Failure> {
        Root::open(folder.path()).map_err(|error| self.failed(&words(&error)))
    }

    /// Set when a signal came: what goes on is to end.
    pub fn interrupted(&self) -> &AtomicBool {
        &self.interrupted
    }

    /// What was measured, unless a signal came.
    ///
    /// # Errors
    /// When one did.
    pub fn whole<T>(&self, found: T) -> Result<T, Failure> {
        if self.interrupted.load(Relaxed) {
            return Err(Failure::Failed(
                "store bench: stopped by a signal; what it had made is removed".into(),
            ));
        }
        Ok(found)
    }

    /// It went wrong here.
    pub fn failed(&self, text: &str) -> Failure {
        failed(&self.parent, text)
    }
}

/// The folder that the arguments name, or the system's for temporary files. A measure that needs it
/// late asks for it early.
///
/// # Errors
/// When there is no such folder.
pub fn parent(matches: &ArgMatches) -> Result<PathBuf, Failure> {
    let parent = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_else(std::env::temp_dir);
    existing("--folder", &parent).map(|()| parent)
}

fn failed(parent: &Path, text: &str) -> Failure {
    let parent = parent.display();
    Failure::Failed(format!("{parent}: {text}; name a folder that can be written to with --folder"))
}
