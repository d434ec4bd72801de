//! The state of a fleet's member and its counts of purges, for the operator.

use super::chain::Broken;
use super::engine::{Durability, EngineError};
use super::entry::Process;
use super::session::ValidateCause;
use foxy_base::{Instant, clock};
use foxy_proxy::cache::purge::NotPurged;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Upper bounds in seconds of the histogram buckets for the time until a purge is acknowledged.
pub const ACKNOWLEDGED_WITHIN: [f64; 8] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 2.5];

/// The state and the counts of a fleet's member.
#[derive(Clone, Debug, Default)]
pub struct FleetPurgeFigures {
    /// The state of the member.
    pub report: NodeReport,
    /// The time when `report` was made.
    pub at: Instant,
    /// The error of the engine since the last connection. `None` if the engine answers.
    pub engine_error: Option<EngineError>,
    /// Whether the engine writes each entry to disk before it confirms the entry. `None` before the
    /// first connection.
    pub durability: Option<Durability>,
    /// Number of acknowledged purges in each bucket of `ACKNOWLEDGED_WITHIN`. The last number
    /// counts slower purges.
    pub acknowledged: [u64; ACKNOWLEDGED_WITHIN.len() + 1],
    /// Sum of the times from the request to the acknowledgement, over all acknowledged purges.
    pub acknowledged_time: Duration,
    /// Number of purges of this member that failed.
    pub failed: u64,
    /// How often this node had to validate everything that it had stored, for each
    /// [`ValidateCause`]: new chain, missed entries, no proof.
    pub validations: [u64; 3],
}

/// Passes a member's state and counts from the member's thread to the code that shows them to the
/// operator.
#[derive(Debug, Default)]
pub struct FleetPurgeStatus(Mutex<FleetPurgeFigures>);

impl FleetPurgeStatus {
    fn lock(&self) -> MutexGuard<'_, FleetPurgeFigures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state and the counts. The remaining time of the lease is computed at this call.
    pub fn figures(&self) -> FleetPurgeFigures {
        let mut figures = self.lock().clone();
        let passed = clock::since_boot().since(figures.at);
        figures.report.lease_left = figures.report.lease_left.saturating_sub(passed);
        figures
    }

    pub(super) fn set_report(&self, report: NodeReport) {
        let mut figures = self.lock();
        (figures.report, figures.at) = (report, clock::since_boot());
    }

    /// Keeps the first error since the last connection, so that the operator sees no changing text.
    pub(super) fn set_away(&self, error: EngineError) {
        self.lock().engine_error.get_or_insert(error);
    }

    pub(super) fn set_connected(&self, durability: Durability) {
        let mut figures = self.lock();
        (figures.engine_error, figures.durability) = (None, Some(durability));
    }

    pub(super) fn count_validation(&self, cause: ValidateCause) {
        let number = match cause {
            ValidateCause::NewChain => 0,
            ValidateCause::Missed => 1,
            ValidateCause::NoProof => 2,
        };
        self.lock().validations[number] += 1;
    }

    pub(super) fn count_purge(&self, answer: Result<u64, NotPurged>, time: Duration) {
        let mut figures = self.lock();
        if answer.is_err() {
            figures.failed += 1;
            return;
        }
        let class = ACKNOWLEDGED_WITHIN.iter().position(|end| time.as_secs_f64() <= *end);
        figures.acknowledged[class.unwrap_or(ACKNOWLEDGED_WITHIN.len())] += 1;
        figures.acknowledged_time += time;
    }
}

/// The state of a member, and the states of the other members as this member knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeReport {
    /// Whether the engine answers.
    pub is_connected: bool,
    /// The remaining time of this member's lease.
    pub lease_left: Duration,
    /// Position of the last log entry that this member has applied.
    pub position: u64,
    /// Number of log entries that this member has not applied yet. `None` if the engine does not
    /// answer.
    pub lag: Option<u64>,
    /// The reason why the chain of log entries is broken now. `None` if it is not broken.
    pub broken: Option<Broken>,
    /// How often the chain of log entries was found broken, for each reason.
    pub breaks: Vec<(Broken, u64)>,
    /// Number of purges that wait for their acknowledgement.
    pub waiting: usize,
    /// The processes of other members. Each has the position of its last applied log entry, and the
    /// remaining time of its lease.
    pub others: Vec<(Process, u64, Duration)>,
}
