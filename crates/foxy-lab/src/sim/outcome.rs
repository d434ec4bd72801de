//! What a driven run came to, or why it ended early.

use foxy_store::RefusedReason;
use std::fmt;
use std::time::Duration;

/// What a run came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// From the first operation until the last has ended and all is on disk.
    pub took: Duration,
    /// Operations carried out.
    pub operations: u64,
    /// URL-reads that found what was written.
    pub found: u64,
    /// URL-reads that did not, though it was written: the scheme had given it up.
    pub lost: u64,
    /// URL-writes that were refused for good.
    pub refused: u64,
    /// How long each URL-read and URL-write took until its answer, in microseconds, sorted.
    pub latencies: Vec<u32>,
}

impl Outcome {
    /// The latency that a share of the operations stayed within, in microseconds.
    #[must_use]
    pub fn latency(&self, share: f64) -> u32 {
        let place = (share * self.latencies.len() as f64).ceil() as usize;
        self.latencies.get(place.saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// Why a run ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveError {
    /// The store could not be opened.
    Unusable(RefusedReason),
    /// An operation was never answered.
    Stalled,
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(reason) => write!(f, "the store cannot be used: {reason:?}"),
            Self::Stalled => f.write_str("the store left an operation without an answer"),
        }
    }
}

impl std::error::Error for DriveError {}
