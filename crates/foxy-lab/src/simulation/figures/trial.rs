//! One trial: a scheme, with all that a figure varies, driven with the paper's stream of URL
//! operations on the model of its disk, in virtual time.

use super::observe::{Observed, Observer as Eye};
use crate::simulation::storage::drive::{Drive, Outcome, Subject};
use crate::simulation::storage::operation::{OperationKind, Operations};
use crate::simulation::storage::outcome::Shortfall;
use crate::simulation::storage::pace::Virtual;
use crate::simulation::storage::runs::{self, RunError, SimulationPlan};
use foxy_base::Instant;
use foxy_device::{DiskProfile, Mechanical, MechanicalCounts};
use foxy_schemes::BufferChoice;
use foxy_schemes::SchemeSettings;
use foxy_schemes::UfsMapping;
use foxy_store::{Observer, StoreSettings};
use foxy_workload::trace::synthetic::TABLE1;

/// Who chooses what goes when the cache is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// The stream of operations, which says what is deleted.
    AsTold,
    /// The store, which is as large as the cache and is told nothing.
    ByItself,
}

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The scheme's name.
    pub scheme: &'static str,
    /// Live slots over all slots, for schemes in one file.
    pub utilization: f64,
    /// BUDDY's threshold, in slots (R21).
    pub buddy_threshold: u32,
    /// Locality buffers (R28).
    pub locality_buffers: u16,
    /// Which of them is emptied (R29).
    pub locality_choice: BufferChoice,
    /// What is asked for, of which caches.
    pub mix: Mix,
    /// How ufs spreads its files over directories (R18).
    pub ufs_mapping: UfsMapping,
    /// Disks.
    pub spindles: usize,
    /// URL-writes under way at once.
    pub writes_at_once: usize,
    /// Who evicts.
    pub eviction: Eviction,
    /// The seed of trace and disk.
    pub seed: u64,
}

/// The gets of a trial and the caches they go through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Share of the paper's gets that are made.
    pub gets: f64,
    /// Share of the paper's 2 GB that the disk cache has.
    pub disk: f64,
    /// Share of the paper's 512 MB that the memory cache has.
    pub memory: f64,
    /// Share of the fetches that repeat an earlier one.
    pub repeats: f64,
    /// Share of these that are soon after it, and so more likely to be in memory.
    pub recent: f64,
}

impl Mix {
    /// The paper's trace and caches.
    pub const PAPER: Self =
        Self { gets: 1.0, disk: 1.0, memory: 1.0, repeats: TABLE1.repeats, recent: TABLE1.recent };

    /// The same with a share of the gets and of the caches.
    pub const fn sized(share: f64) -> Self {
        Self { gets: share, disk: share, memory: share, ..Self::PAPER }
    }
}

impl Trial {
    /// A scheme at 75 % utilization with the paper's other settings.
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
            writes_at_once: 1,
            eviction: Eviction::AsTold,
            seed,
        }
    }

    /// The store and how it is asked, as in every run on the paper's stream, with what the figure
    /// varies.
    fn subject(&self, operations: &Operations) -> Result<Subject, RunError> {
        let Self { utilization, ufs_mapping, seed, .. } = *self;
        let scheme = self.scheme.parse().expect("figures name schemes there are");
        let plan = SimulationPlan { scheme, utilization, prefetch: 0, ufs_mapping, seed };
        let subject = runs::subject(&plan, self.writes_at_once, operations)?;
        let settings = SchemeSettings {
            buddy_threshold: self.buddy_threshold,
            locality_buffers: self.locality_buffers,
            locality_choice: self.locality_choice,
            ..subject.settings
        };
        let settings = match self.eviction {
            Eviction::AsTold => settings,
            Eviction::ByItself => {
                let SchemeSettings { high_watermark, low_watermark, .. } =
                    SchemeSettings::with_size(operations.disk);
                SchemeSettings {
                    high_watermark,
                    low_watermark,
                    store: StoreSettings { size: operations.disk, ..settings.store },
                    ..settings
                }
            }
        };
        Ok(Subject { settings, ..subject })
    }
}

/// What a trial came to.
#[derive(Clone, Debug)]
pub struct TrialResult {
    /// URL-gets, those that memory answered included.
    pub gets: u64,
    /// What the drive saw.
    pub outcome: Outcome,
    /// What the disks did.
    pub disk: MechanicalCounts,
    /// Files created, by the store's own count (R2).
    pub creates: u64,
    /// Files removed.
    pub unlinks: u64,
    /// Bytes of URL-reads and URL-writes.
    pub url_bytes: u64,
    /// What was looked at on the way.
    pub observed: Observed,
}

impl TrialResult {
    /// URL-gets a second; not a number when the store did not do the work.
    pub fn gets_per_second(&self) -> f64 {
        self.gets as f64 / self.seconds()
    }

    fn seconds(&self) -> f64 {
        let nothing = self.outcome.operations == 0;
        if nothing || self.failure().is_some() { f64::NAN } else { self.outcome.took.as_secs_f64() }
    }

    /// What the store did not do, where that is so much that the trial says nothing of the scheme.
    pub fn failure(&self) -> Option<Shortfall> {
        self.outcome.shortfall().filter(Shortfall::is_failure)
    }

    /// Minutes until all was done; not a number when the store did not do the work.
    pub fn minutes(&self) -> f64 {
        self.seconds() / 60.0
    }
}

/// Runs a trial. `eye` is what is looked at on the way.
///
/// # Errors
/// [`RunError`]: the stream needs too large a store, or the store breaks its contract.
///
/// # Panics
/// When the trial names no scheme there is.
pub fn run(
    trial: &Trial,
    profile: &DiskProfile,
    operations: &Operations,
    mut eye: Eye,
) -> Result<TrialResult, RunError> {
    let mut device = Mechanical::new(*profile, trial.spindles, trial.seed);
    eye.prepare(&mut device);
    let subject = trial.subject(operations)?;
    runs::fits(&subject, profile)?;
    let observer = Observer::default();
    let mut drive = Drive::start(subject, device, Virtual::default(), observer.clone())
        .map_err(RunError::Drive)?;
    let total = operations.list.len().max(1);
    let (mut asked, mut written, cache) = (0, 0, operations.disk.max(1) as f64);
    for (count, &operation) in operations.list.iter().enumerate() {
        let deletes = operation.kind == OperationKind::Delete;
        if deletes && trial.eviction == Eviction::ByItself {
            continue;
        }
        drive.operation(operation).map_err(RunError::Drive)?;
        asked += u64::from(!deletes);
        written += if operation.kind == OperationKind::Write { operation.size } else { 0 };
        if eye.is_due(count, total) {
            let gets = operations.gets as f64 * count as f64 / total as f64;
            eye.look(gets, (asked, written as f64 / cache), &mut drive);
        }
    }
    eye.look(operations.gets as f64, (asked, written as f64 / cache), &mut drive);
    let (mut outcome, mut device) = drive.finish();
    let end = device.settle(Instant::ZERO);
    outcome.took = outcome.took.max(end.since(Instant::ZERO));
    let statistics = observer.statistics;
    Ok(TrialResult {
        gets: operations.gets,
        outcome,
        disk: device.counts(),
        creates: statistics.creates.get(),
        unlinks: statistics.unlinks.get(),
        url_bytes: operations.bytes(),
        observed: eye.into_observed(),
    })
}
