//! The conditions of simulated rows: fills of the cache, and the counts that show a cause which the
//! paper names.

use super::trial::TrialResult;
use foxy_report::figure::{Condition, FigureRow};
use std::sync::Arc;

/// The results of a scheme, one for each seed.
pub(super) type Results = [Arc<TrialResult>];

/// Returns the condition that each run filled its cache often enough (R6).
pub(super) fn fills(results: &[&Results]) -> Condition {
    let reached = |result: &Arc<TrialResult>| {
        result.observed.progress.last().map_or(0.0, |sample| sample.fills)
    };
    let all = results.iter().flat_map(|results| results.iter().map(reached));
    Condition::Fills { reached: all.fold(f64::INFINITY, f64::min) }
}

/// A count that shows a cause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    name: &'static str,
    of: fn(&TrialResult) -> f64,
}

impl Count {
    fn values(self, results: &Results) -> Vec<f64> {
        results.iter().map(|result| (self.of)(result)).collect()
    }

    /// Returns the condition that the count of `few` is below the count of `many`.
    pub(super) fn fewer(self, named: &str, few: &Results, many: &Results) -> Condition {
        Condition::smaller(named, self.name, &self.values(few), &self.values(many))
    }
}

/// Files created and deleted for a URL-get.
pub(super) const FILES: Count = Count {
    name: "files created and deleted for a URL-get",
    of: |result| (result.creates + result.unlinks) as f64 / result.gets as f64,
};

/// Movements of the arm for a URL-get.
pub(super) const SEEKS: Count = Count {
    name: "movements of the arm for a URL-get",
    of: |result| result.disk.seeks as f64 / result.gets as f64,
};

/// Pages that a write of a part had to read.
pub(super) const PAGES_READ_FOR_WRITES: Count = Count {
    name: "pages read for writes, for a URL-get",
    of: |result| result.disk.read_modify_writes as f64 / result.gets as f64,
};

/// Inode and directory blocks written for a URL-get.
pub(super) const METADATA_WRITES: Count = Count {
    name: "inode and directory blocks written for a URL-get",
    of: |result| result.disk.metadata_writes as f64 / result.gets as f64,
};

/// Free chunks for a megabyte of free space. Fewer chunks are larger.
pub(super) const FREE_CHUNKS: Count = Count {
    name: "free chunks for a MB of free space",
    of: |result| {
        let late = &result.observed.chunks[result.observed.chunks.len() / 2..];
        let sum: f64 = late.iter().map(|chunk| chunk.1).sum();
        1000.0 * late.len() as f64 / sum
    },
};

/// Returns the condition that the disk does not limit the rate, as the paper says.
pub(super) fn disk_is_no_limit(named: &str, results: &Results) -> Condition {
    let busy = |result: &Arc<TrialResult>| {
        result.disk.busy().as_secs_f64() / result.outcome.took.as_secs_f64() * 100.0
    };
    let most = results.iter().map(busy).fold(0.0, f64::max);
    Condition::Cause {
        named: named.into(),
        ours: format!("the disk is busy {most:.0} % of the time"),
        shown: most < 50.0,
    }
}

/// Returns whether the row is a ratio, which must hold at two scales (R8).
pub(super) fn is_ratio(row: &FigureRow) -> bool {
    row.unit.starts_with("times") || row.unit.starts_with('%')
}
