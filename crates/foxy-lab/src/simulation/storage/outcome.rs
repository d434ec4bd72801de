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
    /// URL-operations that were refused for good.
    pub refused: u64,
    /// Why the first of them was.
    pub first_refusal: Option<RefusedReason>,
    /// The disk was full when something was to be written.
    pub disk_full: bool,
    /// How long each URL-read and URL-write took until its answer, in microseconds, sorted.
    pub latencies: Vec<u32>,
}

impl Outcome {
    /// The latency that a share of the operations stayed within, in microseconds.
    pub fn latency(&self, share: f64) -> u32 {
        let place = (share * self.latencies.len() as f64).ceil() as usize;
        self.latencies.get(place.saturating_sub(1)).copied().unwrap_or(0)
    }

    /// What was not done of the work, if anything.
    pub fn shortfall(&self) -> Option<Shortfall> {
        let Self { operations, found, lost, refused, first_refusal, disk_full, .. } = *self;
        let shortfall =
            Shortfall { lost, reads: found + lost, refused, operations, first_refusal, disk_full };
        (lost + refused > 0 || disk_full).then_some(shortfall)
    }
}

/// Share of the reads, or of all operations, that a scheme may fail to carry out before its run
/// counts as none. Below it the scheme's own limits show: the largest record, a ring that overtakes
/// what is still wanted.
const TOLERATED: f64 = 0.05;

/// What a store did not do of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// Reads that did not find what was written.
    pub lost: u64,
    /// Of so many.
    pub reads: u64,
    /// Operations that were refused.
    pub refused: u64,
    /// Of so many.
    pub operations: u64,
    /// Why the first of them was.
    pub first_refusal: Option<RefusedReason>,
    /// The disk was full: what it did not take is gone, whether it was asked for or not.
    pub disk_full: bool,
}

impl Shortfall {
    /// Whether it is so much that the run's rates say nothing of the scheme.
    pub fn is_failure(&self) -> bool {
        let over = |part: u64, whole: u64| part as f64 > TOLERATED * whole as f64;
        self.disk_full || over(self.lost, self.reads) || over(self.refused, self.operations)
    }
}

impl fmt::Display for Shortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.disk_full {
            parts.push("the disk was full".into());
        }
        if self.lost > 0 {
            parts.push(format!("reads that found nothing: {} of {}", self.lost, self.reads));
        }
        if self.refused > 0 {
            parts.push(format!("operations refused: {} of {}", self.refused, self.operations));
        }
        if let Some(reason) = self.first_refusal {
            parts.push(format!("the first because {}", words(reason)));
        }
        f.write_str(&parts.join(", "))
    }
}

const fn words(reason: RefusedReason) -> &'static str {
    match reason {
        RefusedReason::TooLarge => "it was larger than the scheme takes",
        RefusedReason::Busy => "too much waited already",
        RefusedReason::NoSpace => "the store was full",
        RefusedReason::DeviceFailed(_) => "the device failed",
        RefusedReason::StoresNothing => "the scheme stores nothing",
        RefusedReason::Recovering => "the store was not open yet",
        RefusedReason::Closed => "the store had closed",
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
