//! The conditions for verdicts on simulated rows of figures. A run must fill the cache often
//! enough, and counts must show the cause that the figure's paper names.

use super::trial::TrialResult;
use foxy_report::figure::{Condition, FigureRow};
use std::sync::Arc;

/// The results of a storage scheme, with one element for each seed of the random generator.
pub(super) type Results = [Arc<TrialResult>];

/// Returns the condition that each run wrote at least 1.5 times the cache's size (requirement R6 of
/// `foxy figure requirements`).
pub(super) fn fills(results: &[&Results]) -> Condition {
    let reached = |result: &Arc<TrialResult>| {
        result.observed.progress.last().map_or(0.0, |sample| sample.fills)
    };
    let all = results.iter().flat_map(|results| results.iter().map(reached));
    Condition::Fills { reached: all.fold(f64::INFINITY, f64::min) }
}

/// A count of a run that shows the cause of a difference between two storage schemes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    name: &'static str,
    of: fn(&TrialResult) -> f64,
}

impl Count {
    fn values(self, results: &Results) -> Vec<f64> {
        results.iter().map(|result| (self.of)(result)).collect()
    }

    /// Returns the condition that `few` has a smaller count than `many`.
    pub(super) fn fewer(self, named: &str, few: &Results, many: &Results) -> Condition {
        Condition::smaller(named, self.name, &self.values(few), &self.values(many))
    }
}

/// The number of files created and deleted, per URL-get (a client request).
pub(super) const FILES: Count = Count {
    name: "files created and deleted for a URL-get",
    of: |result| (result.creates + result.unlinks) as f64 / result.gets as f64,
};

/// The number of movements of the disk arm, per URL-get (a client request).
pub(super) const SEEKS: Count = Count {
    name: "movements of the arm for a URL-get",
    of: |result| result.disk.seeks as f64 / result.gets as f64,
};

/// The number of pages that the disk had to read because a write covered only a part of them, per
/// URL-get (a client request).
pub(super) const PAGES_READ_FOR_WRITES: Count = Count {
    name: "pages read for writes, for a URL-get",
    of: |result| result.disk.read_modify_writes as f64 / result.gets as f64,
};

/// The number of inode and directory blocks written, per URL-get (a client request).
pub(super) const METADATA_WRITES: Count = Count {
    name: "inode and directory blocks written for a URL-get",
    of: |result| result.disk.metadata_writes as f64 / result.gets as f64,
};

/// The number of free chunks per megabyte of free space. The fewer chunks, the larger they are.
pub(super) const FREE_CHUNKS: Count = Count {
    name: "free chunks for a MB of free space",
    of: |result| {
        let late = &result.observed.chunks[result.observed.chunks.len() / 2..];
        let sum: f64 = late.iter().map(|chunk| chunk.1).sum();
        1000.0 * late.len() as f64 / sum
    },
};

/// Returns the condition that the disk is busy for less than half of the time. The figure's paper
/// says that the disk does not limit this storage scheme.
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

/// Returns whether the row of a figure is a ratio. A ratio gets a verdict, such as `reproduced`,
/// only if experiments of two sizes agree on it (requirement R8 of `foxy figure requirements`).
pub(super) fn is_ratio(row: &FigureRow) -> bool {
    row.unit.starts_with("times") || row.unit.starts_with('%')
}
