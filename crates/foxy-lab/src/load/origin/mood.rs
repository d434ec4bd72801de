//! How an origin is at the moment: well, or in trouble on purpose.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The health of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// Healthy.
    Well,
    /// Closes connections, at once or after a request.
    Down,
    /// Delays each answer.
    Slow(Duration),
}

const DOWN: u64 = u64::MAX;

/// Nanoseconds of delay, or [`DOWN`].
#[derive(Debug, Default)]
pub(super) struct SharedMood(AtomicU64);

impl SharedMood {
    pub(super) fn set(&self, mood: Mood) {
        let value = match mood {
            Mood::Well => 0,
            Mood::Down => DOWN,
            Mood::Slow(delay) => u64::try_from(delay.as_nanos()).unwrap_or(DOWN - 1),
        };
        self.0.store(value, Relaxed);
    }

    pub(super) fn get(&self) -> Mood {
        match self.0.load(Relaxed) {
            0 => Mood::Well,
            DOWN => Mood::Down,
            nanoseconds => Mood::Slow(Duration::from_nanos(nanoseconds)),
        }
    }
}
