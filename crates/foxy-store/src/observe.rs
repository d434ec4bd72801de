//! What a scheme shows to the outside besides its answers: counters and status, shared by
//! reference.

use crate::beginning::{Beginning, BeginningCell};
use crate::owed::Owed;
use crate::statistics::StoreStatistics;
use crate::status::StatusCell;
use std::sync::Arc;

/// Handed to a scheme when it is made; clones show the same values.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// Counters and gauges.
    pub statistics: Arc<StoreStatistics>,
    /// Whether it serves, and if not why.
    pub status: Arc<StatusCell>,
    /// How it came to be open.
    pub beginning: Arc<BeginningCell>,
    /// Since when its device owes an answer.
    pub owed: Arc<Owed>,
}

impl Observer {
    /// Takes note of how the store comes to be open.
    pub fn begins(&self, beginning: Beginning) {
        self.statistics.begun_anew.set(u64::from(matches!(beginning, Beginning::Anew(_))));
        self.beginning.set(beginning);
    }
}
