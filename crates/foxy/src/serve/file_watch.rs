//! Looks at the stores' files every second: whether each is still there, whole and writable. On a
//! thread of its own, so that a disk that does not answer keeps nobody else waiting.

use foxy_device::{FileTrouble, HeldFile};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// How often.
const EVERY: Duration = Duration::from_secs(1);

/// What was seen last. The looking ends when this is dropped.
pub struct FileWatch(Arc<Mutex<Vec<Option<FileTrouble>>>>);

impl FileWatch {
    /// Looks at these from now on; a store without a file has no trouble with it.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(files: Vec<Option<Weak<HeldFile>>>) -> std::io::Result<Self> {
        let seen = Arc::new(Mutex::new(vec![None; files.len()]));
        let ours = Arc::downgrade(&seen);
        std::thread::Builder::new().name("files".into()).spawn(move || {
            while let Some(seen) = ours.upgrade() {
                let look = |file: &Option<Weak<HeldFile>>| file.as_ref()?.upgrade()?.look();
                let now = files.iter().map(look).collect();
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = now;
                drop(seen);
                std::thread::sleep(EVERY);
            }
        })?;
        Ok(Self(seen))
    }

    /// What is wrong with the file of the store of that number.
    pub fn trouble(&self, store: usize) -> Option<FileTrouble> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(store).copied().flatten()
    }
}
