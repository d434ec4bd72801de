//! Since when the device owes an answer: what shows that a disk hangs, which fails nothing and says
//! nothing.

use foxy_base::Instant;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Written by the store's thread, read from any.
#[derive(Debug, Default)]
pub struct Owed(AtomicU64);

impl Owed {
    /// When the oldest operation that has not ended was given to the device, on the clock that the
    /// store is driven by.
    #[must_use]
    pub fn since(&self) -> Option<Instant> {
        self.0.load(Relaxed).checked_sub(1).map(Instant)
    }

    /// That is the oldest now, or there is none.
    pub(crate) fn set(&self, since: Option<Instant>) {
        self.0.store(since.map_or(0, |since| since.0.saturating_add(1)), Relaxed);
    }
}
