//! Runs a storage scheme with URL operations (reads, writes and deletions of objects) on an empty
//! store. The store is in memory, on a modelled disk in virtual time, or on a real device that the
//! caller opened.

use super::crew::{Crew, requests_at_once};
use super::drive::{Drive, DriveError, Outcome, RealTime, StoreSetup, TimeSource, VirtualTime};
use super::operation::{Operation, OperationKind, Operations};
use super::outcome::Shortfall;
use super::sizing::{self, FLUSH_AFTER, FewerBuffers, waiting_bytes};
use foxy_base::{ByteSize, Instant};
use foxy_device::{BlockingDevice, Device, DiskProfile, Mechanical, Memory};
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::layout::PAGE;
use foxy_store::settings::MINIMUM_SIZE;
use foxy_store::statistics::StoreStatistics;
use foxy_store::status::{OpenStoreError, StoreStatus};
use foxy_store::{Observer, Recovery, StoreSettings};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The size in bytes of the largest store. In a larger store, the numbers of the slots (units of
/// 512 bytes) would overflow.
pub const LARGEST_STORE: u64 = 1 << 40;

#[derive(Clone, Debug, PartialEq)]
pub struct SimulationPlan {
    pub scheme: SchemeName,
    /// The share of the store's slots (units of 512 bytes) that hold live data. Only for storage
    /// schemes that use one file.
    pub utilization: f64,
    /// The settings of the storage scheme. The run replaces the size and the watermarks in these
    /// settings.
    pub scheme_settings: SchemeSettings,
    /// The seed of the store, and of the modelled disk's angle of rotation at the start.
    pub seed: u64,
}

impl SimulationPlan {
    /// Returns a plan with 75 % utilization (share of slots with live data) as in the WebCoSM
    /// paper, and with the usual settings of the storage scheme.
    pub fn of(scheme: SchemeName, seed: u64) -> Self {
        let scheme_settings = SchemeSettings::with_size(0);
        Self { scheme, utilization: 0.75, scheme_settings, seed }
    }
}

pub enum Place {
    /// The files are in memory. The run only counts operations, and no time passes.
    Memory,
    /// The files store no content. The run only counts operations. A read returns other data than
    /// was written.
    Null,
    Model(Box<DiskProfile>),
    /// The files are on a real device, and the run takes real time. The run closes the store at the
    /// end, and its files stay.
    Real(Box<dyn BlockingDevice>),
}

/// The progress of runs, and a flag to stop them.
#[derive(Debug, Default)]
pub struct Watch {
    /// The number of operations done so far, over all runs.
    pub done: AtomicU64,
    pub stop: Arc<AtomicBool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunError {
    TooLarge(u64),
    NoRoom { size: u64, room: u64 },
    FellShort(Shortfall),
    Open(OpenStoreError),
    Drive(DriveError),
    Stopped,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(size) => write!(
                f,
                "needs a store of {}, the most is {}; use a smaller --disk or --scale",
                ByteSize(*size),
                ByteSize(LARGEST_STORE)
            ),
            Self::NoRoom { size, room } => write!(
                f,
                "failed: its store of {} does not fit the modelled disk, which has {} \
                 for files; use a higher --utilization or a smaller --disk",
                ByteSize(*size),
                ByteSize(*room)
            ),
            Self::FellShort(shortfall) => write!(f, "failed: {shortfall}"),
            Self::Open(error) => error.fmt(f),
            Self::Drive(error) => error.fmt(f),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for RunError {}

#[derive(Clone, Debug, Default)]
pub struct RunResult {
    pub gets: u64,
    pub outcome: Outcome,
    /// The duration of the run, including the time for pending work or for closing. `None` if no
    /// time passes.
    pub took: Option<Duration>,
    pub counts: DeviceCounts,
    /// The number of pages that the modelled disk read because a write covered only a part of the
    /// page.
    pub read_modify_writes: Option<u64>,
    pub fewer_buffers: Option<FewerBuffers>,
}

/// Returns the settings of a store for these operations. The store never evicts, because the list
/// of operations has the deletions.
pub fn settings(plan: &SimulationPlan, operations: &Operations) -> SchemeSettings {
    let writes = operations.list.iter().filter(|operation| operation.kind == OperationKind::Write);
    let records: u64 = writes.map(|operation| sizing::pieces_of(operation.size)).sum();
    let record_limit = (records + 1024).min(u64::from(u32::MAX >> 4));
    let size = sizing::size_for(plan.scheme, plan.utilization, operations, record_limit);
    SchemeSettings {
        high_watermark: 100,
        low_watermark: 100,
        store: StoreSettings {
            recovery: Recovery::AfterCleanStop,
            record_limit: record_limit as u32,
            waiting_bytes: waiting_bytes(size),
            waiting_reads: 1024,
            flush_after: FLUSH_AFTER,
            checkpoint_interval: Duration::from_secs(1 << 30),
            seed: plan.seed,
            ..StoreSettings::with_size(size)
        },
        ..plan.scheme_settings.clone()
    }
}

/// Runs the operations on an empty store. The storage scheme decides how many operations its proxy
/// has in progress at the same time.
pub fn run(
    plan: &SimulationPlan,
    operations: &Operations,
    place: Place,
    watch: &Watch,
) -> Result<RunResult, RunError> {
    run_at_once(plan, requests_at_once(plan.scheme), operations, place, watch)
}

/// Runs the operations as [`run`] does, but with up to `at_once` reads and `at_once` writes in
/// progress.
pub fn run_at_once(
    plan: &SimulationPlan,
    at_once: usize,
    operations: &Operations,
    place: Place,
    watch: &Watch,
) -> Result<RunResult, RunError> {
    let mut setup = setup(plan, at_once, operations)?;
    if let Place::Model(profile) = &place {
        shrink_to(&mut setup, profile.room());
    }
    let fewer_buffers = sizing::fewer_buffers(plan.scheme, &setup.settings);
    let list = &operations.list;
    let keeps_content = !matches!(place, Place::Null);
    let result = match place {
        Place::Memory => {
            drive(setup, list, Memory::default(), VirtualTime::default(), watch)?.finish().0
        }
        Place::Null => {
            drive(setup, list, Memory::null(), VirtualTime::default(), watch)?.finish().0
        }
        Place::Model(profile) => {
            fits(&setup, &profile)?;
            let disks = Mechanical::new(*profile, 1, plan.seed);
            let device = Crew::new(disks, plan.scheme, plan.scheme_settings.aufs_writes);
            let (mut result, mut device) =
                drive(setup, list, device, VirtualTime::default(), watch)?.finish();
            let end = device.disks().settle(Instant::ZERO).since(Instant::ZERO);
            result.took = Some(result.outcome.took.max(end));
            result.read_modify_writes = Some(device.disks().counts().read_modify_writes);
            result
        }
        Place::Real(device) => drive(setup, list, device, RealTime, watch)?.close(),
    };
    if let Some(shortfall) =
        result.outcome.shortfall().filter(|shortfall| keeps_content && shortfall.is_failure())
    {
        return Err(RunError::FellShort(shortfall));
    }
    Ok(RunResult { gets: operations.gets, fewer_buffers, ..result })
}

/// Limits a store that takes its whole size at once to a size whose file fits on a modelled disk.
/// The disk has `room` bytes for files. A sixteenth of them stays free for directories and for
/// partly filled cylinder groups. Other stores keep their size, because it depends on the
/// operations.
fn shrink_to(setup: &mut StoreSetup, room: u64) {
    let settings = &mut setup.settings.store;
    let room = room - room / 16;
    if !setup.scheme.row().has_utilization() && !setup.scheme.row().grows() {
        settings.size = settings.size.min(room / PAGE as u64 * PAGE as u64).max(MINIMUM_SIZE);
    }
}

/// Returns an error if the store does not fit on a modelled disk. Checks only storage schemes that
/// use one file.
pub(crate) fn fits(setup: &StoreSetup, profile: &DiskProfile) -> Result<(), RunError> {
    let (size, room) = (setup.settings.store.size, profile.room());
    if setup.scheme.row().has_utilization() && size > room {
        return Err(RunError::NoRoom { size, room });
    }
    Ok(())
}

/// Reads from the store that an earlier run left on a real device. The device was opened anew, so
/// its caches are empty.
pub fn read_again(
    plan: &SimulationPlan,
    at_once: usize,
    operations: &Operations,
    reads: &[Operation],
    device: Box<dyn BlockingDevice>,
    watch: &Watch,
) -> Result<Outcome, RunError> {
    let setup = setup(plan, at_once, operations)?;
    Ok(drive(setup, reads, device, RealTime, watch)?.finish().0.outcome)
}

pub(crate) fn setup(
    plan: &SimulationPlan,
    at_once: usize,
    operations: &Operations,
) -> Result<StoreSetup, RunError> {
    let settings = settings(plan, operations);
    if settings.store.size > LARGEST_STORE {
        return Err(RunError::TooLarge(settings.store.size));
    }
    let batch = if plan.scheme.row().batches_reads() { settings.read_batch } else { 1 };
    let reads_at_once = at_once.max(batch);
    Ok(StoreSetup { scheme: plan.scheme, settings, reads_at_once, writes_at_once: at_once })
}

struct Driven<D, P> {
    drive: Drive<D, P>,
    observer: Observer,
    /// The counts of device operations while the store opened, which do not belong to the run.
    opening: DeviceCounts,
}

fn drive<D: Device, P: TimeSource<D>>(
    setup: StoreSetup,
    list: &[Operation],
    device: D,
    pace: P,
    watch: &Watch,
) -> Result<Driven<D, P>, RunError> {
    let observer = Observer::default();
    let opened = Drive::start(setup, device, pace, observer.clone());
    let mut drive = match (opened, observer.status.get()) {
        (_, StoreStatus::Unusable(error)) => return Err(RunError::Open(error)),
        (opened, _) => opened.map_err(RunError::Drive)?,
    };
    let opening = DeviceCounts::since(DeviceCounts::default(), &observer.statistics);
    for &operation in list {
        if watch.stop.load(Relaxed) {
            return Err(RunError::Stopped);
        }
        drive.operation(operation).map_err(RunError::Drive)?;
        watch.done.fetch_add(1, Relaxed);
    }
    Ok(Driven { drive, observer, opening })
}

impl<D: Device, P: TimeSource<D>> Driven<D, P> {
    fn finish(self) -> (RunResult, D) {
        let (outcome, device) = self.drive.finish();
        let counts = DeviceCounts::since(self.opening, &self.observer.statistics);
        (RunResult { outcome, counts, ..RunResult::default() }, device)
    }

    /// Closes the store. The duration includes the closing, which writes buffers. The counts
    /// exclude it.
    fn close(self) -> RunResult {
        let mut counts = DeviceCounts::default();
        let count = || counts = DeviceCounts::since(self.opening, &self.observer.statistics);
        let (outcome, _) = self.drive.close(count);
        RunResult { took: Some(outcome.took), outcome, counts, ..RunResult::default() }
    }
}

/// The counts of a store's device operations, without the opening of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounts {
    pub creates: u64,
    pub opens: u64,
    pub unlinks: u64,
    pub reads: u64,
    pub writes: u64,
    /// The number of reads and writes that did not begin where the previous read or write ended.
    pub seeks: u64,
    pub bytes: u64,
    /// The number of records that the storage scheme read in advance.
    pub prefetched: u64,
    /// The number of records read in advance that a `get` then returned.
    pub prefetch_useful: u64,
    /// The number of records read in advance that the store dropped before any `get`.
    pub prefetch_wasted: u64,
}

impl DeviceCounts {
    fn since(before: Self, statistics: &StoreStatistics) -> Self {
        let bytes = statistics.read_bytes.get() + statistics.written_bytes.get();
        Self {
            creates: statistics.creates.get() - before.creates,
            opens: statistics.opens.get() - before.opens,
            unlinks: statistics.unlinks.get() - before.unlinks,
            reads: statistics.reads.get() - before.reads,
            writes: statistics.writes.get() - before.writes,
            seeks: statistics.seeks.get() - before.seeks,
            bytes: bytes - before.bytes,
            prefetched: statistics.prefetched.get() - before.prefetched,
            prefetch_useful: statistics.prefetch_useful.get() - before.prefetch_useful,
            prefetch_wasted: statistics.prefetch_wasted.get() - before.prefetch_wasted,
        }
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
