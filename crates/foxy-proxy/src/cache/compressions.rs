//! Limits the work of compression. The proxy compresses one body at a time. After it has compressed
//! a body, it usually waits [`RETRY_SECONDS`] before it compresses the same body again. The proxy
//! waits even if the store refused the compressed body.

use foxy_base::WallTime;
use foxy_store::Key;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of recently compressed bodies that the proxy remembers, in 24 KiB of memory.
const MAX_RECENT: usize = 1024;

/// Shortest time in seconds between two compressions of the same body.
const RETRY_SECONDS: u64 = 300;

/// The bodies that were compressed recently, and the permit to compress the next body.
pub(crate) struct Compressions {
    permit: Arc<Semaphore>,
    recent: Mutex<Vec<Option<(Key, WallTime)>>>,
}

impl Default for Compressions {
    fn default() -> Self {
        let permit = Arc::new(Semaphore::new(1));
        Self { permit, recent: Mutex::new(vec![None; MAX_RECENT]) }
    }
}

impl Compressions {
    /// Returns the permit to compress a body for `key`. Returns `None` if another body is being
    /// compressed, or if this body was compressed a short time ago. Two keys may share an element
    /// of `recent`. The later key then overwrites the earlier key.
    pub(crate) fn begin(&self, key: Key, now: WallTime) -> Option<OwnedSemaphorePermit> {
        let permit = Arc::clone(&self.permit).try_acquire_owned().ok()?;
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let number = usize::from(u16::from_le_bytes([key.0[0], key.0[1]])) % MAX_RECENT;
        let is_recent = |(other, at): &(Key, WallTime)| {
            *other == key && now.seconds() < at.seconds() + RETRY_SECONDS
        };
        if recent[number].as_ref().is_some_and(is_recent) {
            return None;
        }
        recent[number] = Some((key, now));
        Some(permit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_body_is_compressed_at_a_time_and_none_twice_soon() {
        let compressions = Compressions::default();
        let [first, second] = [1, 2].map(|number| Key([number; 16]));
        let at = WallTime::from_seconds;
        let permit = compressions.begin(first, at(10)).expect("nothing runs");
        assert!(compressions.begin(second, at(10)).is_none(), "another runs");
        drop(permit);
        assert!(compressions.begin(first, at(309)).is_none(), "too soon");
        assert!(compressions.begin(second, at(309)).is_some());
        assert!(compressions.begin(first, at(310)).is_some());
    }
}
