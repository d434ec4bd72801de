//! Runs one trial: a storage scheme carries out the disk operations of the WebCoSM paper's trace on
//! the modelled disk, in virtual time. A probe records progress, free space and head positions.

use crate::simulation::storage::crew::{Crew, requests_at_once};
use crate::simulation::storage::drive::{Drive, Outcome, StoreSetup, VirtualTime};
use crate::simulation::storage::operation::{OperationKind, Operations};
use crate::simulation::storage::outcome::Shortfall;
use crate::simulation::storage::runs::{self, RunError, SimulationPlan};
use foxy_base::Instant;
use foxy_device::mechanical::{AccessTimes, MetadataMode, RequestKind, SECTOR, SystemProfile};
use foxy_device::{DiskProfile, Mechanical, MechanicalCounts};
use foxy_schemes::{BufferChoice, SchemeSettings, UfsMapping};
use foxy_store::Observer;
use foxy_store::layout::SLOT;
use foxy_workload::trace::synthetic::TABLE1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The store deletes an object when the list of operations says so.
    AsTold,
    /// The store chooses the objects to evict. It is as large as the disk cache.
    ByItself,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    pub scheme: &'static str,
    /// The share of the store's slots (units of 512 bytes) that hold live data. Only for storage
    /// schemes that use one file.
    pub utilization: f64,
    /// The largest object, in slots of 512 bytes, that the storage scheme BUDDY puts into its
    /// shared files.
    pub buddy_threshold: u32,
    pub locality_buffers: u16,
    /// The rule that chooses which locality buffer (a write buffer for one origin server) to write
    /// out.
    pub locality_choice: BufferChoice,
    pub mix: Mix,
    /// The rule by which the storage scheme `ufs` distributes its files over directories.
    pub ufs_mapping: UfsMapping,
    pub spindles: usize,
    pub metadata: MetadataMode,
    pub access_times: AccessTimes,
    pub eviction: Eviction,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// The share of the WebCoSM paper's client requests that the trial (simulated run) runs.
    pub gets: f64,
    /// The size of the disk cache, as a share of the WebCoSM paper's 2 GB.
    pub disk: f64,
    /// The size of the memory cache, as a share of the WebCoSM paper's 512 MB.
    pub memory: f64,
    /// The share of requests that repeat an earlier request.
    pub repeats: f64,
    /// The share of the repeats that come soon after the earlier request. Memory probably still has
    /// these objects.
    pub recent: f64,
}

impl Mix {
    pub const PAPER: Self =
        Self { gets: 1.0, disk: 1.0, memory: 1.0, repeats: TABLE1.repeats, recent: TABLE1.recent };

    pub const fn sized(share: f64) -> Self {
        Self { gets: share, disk: share, memory: share, ..Self::PAPER }
    }
}

impl Trial {
    /// Returns a trial (simulated run) of a storage scheme at 75 % utilization (share of the store
    /// that holds live data), with the WebCoSM paper's other settings.
    pub const fn of(scheme: &'static str, seed: u64) -> Self {
        Self {
            scheme,
            utilization: 0.75,
            buddy_threshold: 256,
            locality_buffers: 128,
            locality_choice: BufferChoice::LeastRecentlyUsed,
            mix: Mix::PAPER,
            ufs_mapping: UfsMapping::RoundRobin,
            spindles: 1,
            metadata: MetadataMode::Synchronous,
            access_times: AccessTimes::Updated,
            eviction: Eviction::AsTold,
            seed,
        }
    }

    fn setup(&self, operations: &Operations) -> Result<StoreSetup, RunError> {
        let scheme = self.scheme.parse().expect("figures name schemes there are");
        let usual = SimulationPlan::of(scheme, self.seed);
        let scheme_settings = SchemeSettings {
            buddy_threshold: self.buddy_threshold,
            locality_buffers: self.locality_buffers,
            locality_choice: self.locality_choice,
            ufs_mapping: self.ufs_mapping,
            ..usual.scheme_settings
        };
        let plan = SimulationPlan { utilization: self.utilization, scheme_settings, ..usual };
        let setup = runs::setup(&plan, requests_at_once(scheme), operations)?;
        let mut settings = setup.settings;
        if self.eviction == Eviction::ByItself {
            let defaults = SchemeSettings::with_size(operations.disk);
            settings.high_watermark = defaults.high_watermark;
            settings.low_watermark = defaults.low_watermark;
            settings.store.size = operations.disk;
        }
        Ok(StoreSetup { settings, ..setup })
    }
}

#[derive(Clone, Debug)]
pub struct TrialResult {
    /// The number of URL-gets (client requests), including hits in memory.
    pub gets: u64,
    pub outcome: Outcome,
    pub disk: MechanicalCounts,
    pub creates: u64,
    pub unlinks: u64,
    /// The bytes of all objects that the disk cache read or wrote.
    pub url_bytes: u64,
    pub observed: Observations,
}

impl TrialResult {
    /// Returns the client requests per second. Returns NaN if the store failed to do too much of
    /// its work.
    pub fn gets_per_second(&self) -> f64 {
        self.gets as f64 / self.seconds()
    }

    fn seconds(&self) -> f64 {
        let nothing = self.outcome.operations == 0;
        if nothing || self.failure().is_some() { f64::NAN } else { self.outcome.took.as_secs_f64() }
    }

    /// Returns the work that the store failed to do. Returns `None` if this is so little that the
    /// rate still describes the storage scheme.
    pub fn failure(&self) -> Option<Shortfall> {
        self.outcome.shortfall().filter(Shortfall::is_failure)
    }

    /// Returns the duration in minutes. Returns NaN if too many of the store's
    /// operations failed.
    pub fn minutes(&self) -> f64 {
        self.seconds() / 60.0
    }
}

pub fn run(
    trial: &Trial,
    profile: &DiskProfile,
    operations: &Operations,
    mut probe: TrialProbe,
) -> Result<TrialResult, RunError> {
    let Trial { metadata, access_times, .. } = *trial;
    let system = SystemProfile { metadata, access_times, ..profile.system };
    let profile = DiskProfile { system, ..*profile };
    let mut disks = Mechanical::new(profile, trial.spindles, trial.seed);
    disks.keep_records(if probe.follows_requests { 1 << 20 } else { 0 });
    let setup = trial.setup(operations)?;
    let device = Crew::new(disks, setup.scheme, setup.settings.aufs_writes);
    runs::fits(&setup, &profile)?;
    let observer = Observer::default();
    let mut drive = Drive::start(setup, device, VirtualTime::default(), observer.clone())
        .map_err(RunError::Drive)?;
    let total = operations.list.len().max(1);
    let (mut asked, mut written) = (0, 0);
    let mut sample = |gets, asked, written, drive: &mut Drive<_, _>| {
        let fills = written as f64 / operations.disk.max(1) as f64;
        let seconds = drive.elapsed().as_secs_f64();
        probe.sample(gets, ProgressSample { asked, fills, seconds }, drive);
    };
    for (count, &operation) in operations.list.iter().enumerate() {
        let deletes = operation.kind == OperationKind::Delete;
        if deletes && trial.eviction == Eviction::ByItself {
            continue;
        }
        drive.operation(operation).map_err(RunError::Drive)?;
        asked += u64::from(!deletes);
        written += if operation.kind == OperationKind::Write { operation.size } else { 0 };
        if count.is_multiple_of((total / SAMPLES).max(1)) {
            let gets = operations.gets as f64 * count as f64 / total as f64;
            sample(gets, asked, written, &mut drive);
        }
    }
    sample(operations.gets as f64, asked, written, &mut drive);
    let (mut outcome, mut device) = drive.finish();
    let end = device.disks().settle(Instant::ZERO);
    outcome.took = outcome.took.max(end.since(Instant::ZERO));
    let statistics = observer.statistics;
    Ok(TrialResult {
        gets: operations.gets,
        outcome,
        disk: device.disks().counts(),
        creates: statistics.creates.get(),
        unlinks: statistics.unlinks.get(),
        url_bytes: operations.bytes(),
        observed: probe.observed,
    })
}

/// The number of times at which a trial (simulated run) records its progress.
const SAMPLES: usize = 100;
/// The size of a file block in bytes, the unit of distances in Figure 15.
const BLOCK: u64 = 8192;
/// The number of disk requests in a plot of head positions (Figures 8 and 9).
const HEAD_REQUESTS: usize = 3000;

#[derive(Clone, Debug, Default)]
pub struct Observations {
    pub progress: Vec<ProgressSample>,
    /// The mean size of free chunks during the run, as pairs: the thousands of client requests so
    /// far, and the size in KB.
    pub chunks: Vec<(f64, f64)>,
    /// The free space at the end of the trial (simulated run): the first slot and the length, in
    /// slots of 512 bytes, of each row of free slots.
    pub free_runs: Vec<(u32, u32)>,
    /// The number of reads for each distance in blocks between the end of one read and the start of
    /// the next. The last element counts all larger distances.
    pub distances: Vec<u64>,
    /// The positions of the disk head at the last `HEAD_REQUESTS` requests.
    pub heads: Vec<HeadPosition>,
}

#[derive(Clone, Copy, Debug)]
pub struct HeadPosition {
    pub seconds: f64,
    /// The distance of the disk head from the start of the disk in MB.
    pub megabytes: f64,
    pub is_read: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgressSample {
    /// The number of reads and writes of objects so far.
    pub asked: u64,
    /// The bytes of written objects so far, divided by the size of the disk cache.
    pub fills: f64,
    /// The virtual time in seconds since the start.
    pub seconds: f64,
}

#[derive(Debug, Default)]
pub struct TrialProbe {
    follows_requests: bool,
    last_read: Option<u64>,
    observed: Observations,
}

impl TrialProbe {
    /// Creates a probe that also records each request to the disk.
    pub fn following_requests() -> Self {
        let observed = Observations { distances: vec![0; 32], ..Observations::default() };
        Self { follows_requests: true, observed, ..Self::default() }
    }

    fn sample(
        &mut self,
        gets: f64,
        progress: ProgressSample,
        drive: &mut Drive<Crew, VirtualTime>,
    ) {
        self.observed.progress.push(progress);
        let runs = drive.engine().scheme().free_runs();
        if !runs.is_empty() {
            let free: f64 = runs.iter().map(|run| f64::from(run.1)).sum();
            self.observed
                .chunks
                .push((gets / 1000.0, free * SLOT as f64 / runs.len() as f64 / 1000.0));
            self.observed.free_runs = runs;
        }
        if !self.follows_requests {
            return;
        }
        let (records, _) = drive.engine().device().disks().take_records();
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
        heads.extend(records.iter().map(|record| HeadPosition {
            seconds: record.start.0 as f64 / 1e9,
            megabytes: (record.address * SECTOR) as f64 / 1e6,
            is_read: record.kind.reads(),
        }));
        heads.drain(..heads.len().saturating_sub(HEAD_REQUESTS));
    }
}
