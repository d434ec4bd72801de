//! The outcome of a run, the work that the store failed to do, and the reasons why a run ends
//! early.

use foxy_store::RefusedReason;
use std::fmt;
use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The time from the first operation until all data is on disk.
    pub took: Duration,
    pub operations: u64,
    pub found: u64,
    /// The number of reads that did not find an object although it was written.
    pub lost: u64,
    pub refused: u64,
    pub first_refusal: Option<RefusedReason>,
    pub disk_full: bool,
    /// The latency of each read and write of an object in microseconds, sorted.
    pub latencies: Vec<u32>,
    /// The latency of each read of an object in microseconds, sorted.
    pub read_latencies: Vec<u32>,
}

impl Outcome {
    /// Returns the latency in microseconds that `share` of the operations did not exceed.
    pub fn latency(&self, share: f64) -> u32 {
        within(&self.latencies, share)
    }

    /// Returns the latency in seconds that `share` of the reads did not exceed.
    pub fn read_seconds(&self, share: f64) -> f64 {
        f64::from(within(&self.read_latencies, share)) / 1e6
    }

    /// Returns the mean latency of reads in seconds. Returns NaN without reads.
    pub fn mean_read_seconds(&self) -> f64 {
        let sum: f64 = self.read_latencies.iter().copied().map(f64::from).sum();
        sum / self.read_latencies.len() as f64 / 1e6
    }

    pub fn shortfall(&self) -> Option<Shortfall> {
        let Self { operations, found, lost, refused, first_refusal, disk_full, .. } = *self;
        let shortfall =
            Shortfall { lost, reads: found + lost, refused, operations, first_refusal, disk_full };
        (lost + refused > 0 || disk_full).then_some(shortfall)
    }
}

fn within(latencies: &[u32], share: f64) -> u32 {
    let place = (share * latencies.len() as f64).ceil() as usize;
    latencies.get(place.saturating_sub(1)).copied().unwrap_or(0)
}

/// The largest share of the reads, or of all operations, in which a storage scheme may fail. Small
/// shares come from limits of the scheme. For example, a record is too large, or a log overwrites
/// live records.
const TOLERATED: f64 = 0.05;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    pub lost: u64,
    pub reads: u64,
    pub refused: u64,
    pub operations: u64,
    pub first_refusal: Option<RefusedReason>,
    /// Whether the disk was full. Then the data of the refused writes is lost.
    pub disk_full: bool,
}

impl Shortfall {
    /// Whether the store failed to do so much of its work that the rates do not describe the
    /// storage scheme.
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
            parts.push(format!("the first operation because {}", words(reason)));
        }
        f.write_str(&parts.join(", "))
    }
}

const fn words(reason: RefusedReason) -> &'static str {
    match reason {
        RefusedReason::TooLarge => "the record was larger than the scheme accepts",
        RefusedReason::Busy => "too many operations were waiting",
        RefusedReason::NoSpace => "the store was full",
        RefusedReason::DeviceFailed(_) => "the device failed",
        RefusedReason::StoresNothing => "the scheme stores nothing",
        RefusedReason::Recovering => "the store was not open yet",
        RefusedReason::Closed => "the store had closed",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveError {
    Unusable(RefusedReason),
    Stalled,
}

impl fmt::Display for DriveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(reason) => write!(f, "the store cannot be used: {}", words(*reason)),
            Self::Stalled => f.write_str("the store did not answer an operation"),
        }
    }
}

impl std::error::Error for DriveError {}
