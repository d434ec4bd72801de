//! What figures look at while a trial runs: how far it has come, free chunks (Figs 13, 14),
//! distances between reads (Fig 15), the head's way (Figs 8, 9).

use crate::simulation::storage::drive::Drive;
use crate::simulation::storage::pace::TimeSource;
use foxy_device::Mechanical;
use foxy_device::mechanical::{RequestKind, SECTOR};

/// Bytes of a slot.
const SLOT: f64 = 512.0;
/// How often a trial is looked at.
const LOOKS: usize = 100;
/// Bytes of a file block, for the distances of Fig 15.
const BLOCK: u64 = 8192;
/// Requests whose place is kept for a head plot.
const HEAD_REQUESTS: usize = 3000;

/// What has been seen.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// How far the run had come, look by look.
    pub progress: Vec<Progress>,
    /// Thousands of URL-gets, and the mean free chunk in KB then.
    pub chunks: Vec<(f64, f64)>,
    /// The free runs of slots at the end: first slot, length.
    pub free_runs: Vec<(u32, u32)>,
    /// Reads, by the distance in blocks from the end of the one before; the last counts those
    /// further than that.
    pub distances: Vec<u64>,
    /// Seconds, megabytes from the disk's start, and whether it read: the head's way late in the
    /// run.
    pub heads: Vec<(f64, f64, bool)>,
}

/// How far a run has come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// URL-reads and URL-writes so far.
    pub asked: u64,
    /// Bytes of URL-writes so far, over the size of the disk cache.
    pub fills: f64,
    /// Virtual time since the beginning.
    pub seconds: f64,
}

/// Looks at a trial.
#[derive(Debug, Default)]
pub struct Observer {
    records: bool,
    last_read: Option<u64>,
    observed: Observed,
}

impl Observer {
    /// One that also follows the disk's requests.
    pub fn following_requests() -> Self {
        let observed = Observed { distances: vec![0; 32], ..Observed::default() };
        Self { records: true, observed, ..Self::default() }
    }

    pub(super) fn prepare(&self, device: &mut Mechanical) {
        device.keep_records(if self.records { 1 << 20 } else { 0 });
    }

    pub(super) fn is_due(&self, count: usize, total: usize) -> bool {
        count.is_multiple_of((total / LOOKS).max(1))
    }

    /// Looks at it after so many gets. `asked` and `fills` are as in [`Progress`].
    pub(super) fn look<P: TimeSource<Mechanical>>(
        &mut self,
        gets: f64,
        (asked, fills): (u64, f64),
        drive: &mut Drive<Mechanical, P>,
    ) {
        self.observed.progress.push(Progress {
            asked,
            fills,
            seconds: drive.elapsed().as_secs_f64(),
        });
        let runs = drive.scheme().free_runs();
        if !runs.is_empty() {
            let free: f64 = runs.iter().map(|run| f64::from(run.1)).sum();
            self.observed.chunks.push((gets / 1000.0, free * SLOT / runs.len() as f64 / 1000.0));
            self.observed.free_runs = runs;
        }
        if !self.records {
            return;
        }
        let (records, _) = drive.device().take_records();
        let last = self.observed.distances.len() - 1;
        for record in records.iter().filter(|record| record.kind == RequestKind::Read) {
            if let Some(end) = self.last_read {
                let blocks = (record.address * SECTOR).abs_diff(end) / BLOCK;
                let place = usize::try_from(blocks).unwrap_or(usize::MAX).min(last);
                self.observed.distances[place] += 1;
            }
            self.last_read = Some(record.address * SECTOR + record.size);
        }
        let heads = &mut self.observed.heads;
        heads.extend(records.iter().map(|record| {
            let seconds = record.start.0 as f64 / 1e9;
            (seconds, (record.address * SECTOR) as f64 / 1e6, record.kind.reads())
        }));
        heads.drain(..heads.len().saturating_sub(HEAD_REQUESTS));
    }

    pub(super) fn into_observed(self) -> Observed {
        self.observed
    }
}
