//! The folder of a store benchmark. The benchmark removes its stores at the end, even if a signal
//! stopped it.

use crate::folder::{SIM_PREFIX, remove_leftovers};
use crate::folder::{claim, existing, store_lock, words};
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_cli::signals::interrupted;
use foxy_cli::temporary::Temporary;
use foxy_device::Root;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub struct Ground {
    parent: PathBuf,
    interrupted: Arc<AtomicBool>,
    _lock: Option<Root>,
    _claimed: Option<File>,
}

impl Ground {
    pub fn new(matches: &ArgMatches) -> Result<Self, Failure> {
        let parent = parent(matches)?;
        let lock = store_lock(&parent).map_err(|error| failed(&parent, &words(&error)))?;
        let claimed = claim("--folder", &parent)?;
        remove_leftovers(&parent);
        let interrupted = interrupted()?;
        Ok(Self { parent, interrupted, _lock: lock, _claimed: claimed })
    }

    pub fn folder(&self) -> Temporary {
        Temporary::new(self.parent.join(format!("{SIM_PREFIX}{}-0", std::process::id())))
    }

    pub fn open(&self, folder: &Temporary) -> Result<Root, Failure> {
        Root::open(folder.path()).map_err(|error| self.failed(&words(&error)))
    }

    pub fn interrupted(&self) -> &AtomicBool {
        &self.interrupted
    }

    pub fn whole<T>(&self, found: T) -> Result<T, Failure> {
        if self.interrupted.load(Relaxed) {
            return Err(Failure::Failed(
                "store bench: stopped by a signal; its files are removed".into(),
            ));
        }
        Ok(found)
    }

    pub fn failed(&self, text: &str) -> Failure {
        failed(&self.parent, text)
    }
}

pub fn parent(matches: &ArgMatches) -> Result<PathBuf, Failure> {
    let parent = matches.get_one::<PathBuf>("folder").cloned().unwrap_or_else(std::env::temp_dir);
    existing("--folder", &parent).map(|()| parent)
}

fn failed(parent: &Path, text: &str) -> Failure {
    let parent = parent.display();
    Failure::Failed(format!("{parent}: {text}; name a folder that can be written to with --folder"))
}
