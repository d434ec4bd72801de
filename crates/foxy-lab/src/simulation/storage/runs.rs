//! Runs of a scheme with a stream of URL operations: on memory, on the model of a mechanical disk
//! in virtual time, or on a real device that somebody else opened. Each run has a store of its own;
//! no files are opened here.

pub use super::counts::DeviceCounts;
use super::disk::{FLUSH_AFTER, waiting_bytes};
use super::drive::{Drive, DriveError, Outcome, Subject};
use super::operation::{Operation, OperationKind, Operations};
use super::outcome::Shortfall;
use super::pace::{Real, TimeSource, Virtual};
use super::sizing::{self, FewerBuffers};
use foxy_base::{ByteSize, Instant};
use foxy_device::{BlockingDevice, Device, DiskProfile, Mechanical, Memory};
use foxy_schemes::UfsMapping;
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::status::{OpenStoreError, StoreStatus};
use foxy_store::{Observer, Recovery, StoreSettings};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The largest store that is simulated, in bytes: what slots can be numbered for.
pub const LARGEST_STORE: u64 = 1 << 40;

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimulationPlan {
    /// The scheme.
    pub scheme: SchemeName,
    /// Live slots over all slots (R23), for a scheme that keeps its records in one file.
    pub utilization: f64,
    /// Bytes that schemes which gather by origin server read along (R36).
    pub prefetch: usize,
    /// How the scheme `ufs` and its kin spread their files over directories (R18).
    pub ufs_mapping: UfsMapping,
    /// The seed of the store, and of the disk's turn.
    pub seed: u64,
}

/// Where it is run.
pub enum Place {
    /// In memory, for the counts: no time passes.
    Memory,
    /// Without content, for the counts: nothing that is read back is what was written.
    Null,
    /// On the model of a disk, in virtual time.
    Model(Box<DiskProfile>),
    /// On a real device, in real time. The store is closed at the end, and its files stay.
    Real(Box<dyn BlockingDevice>),
}

/// How others follow a run, and end it.
#[derive(Debug, Default)]
pub struct Watch {
    /// URL operations done, of all runs.
    pub done: AtomicU64,
    /// Set to make runs end early.
    pub stop: Arc<AtomicBool>,
}

/// Why a run came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The stream needs a larger store than [`LARGEST_STORE`], so many bytes.
    TooLarge(u64),
    /// The store has so many bytes, the modelled disk has room for so many.
    NoRoom(u64, u64),
    /// It did not do the work.
    FellShort(Shortfall),
    /// The store could not be opened.
    Open(OpenStoreError),
    /// It broke its contract.
    Drive(DriveError),
    /// It was asked to stop.
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
            Self::NoRoom(size, room) => write!(
                f,
                "failed: its store of {} does not fit the modelled disk, which has {} for files; use a higher --utilization or a \
                 smaller --disk",
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

/// What a run came to.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// URL-gets that the operations came from.
    pub gets: u64,
    /// What the drive saw.
    pub outcome: Outcome,
    /// How long all took, where time means anything.
    pub took: Option<Duration>,
    /// What the store asked of its device.
    pub counts: DeviceCounts,
    /// Pages the modelled disk read because a part of them was to be written (R24).
    pub read_modify_writes: Option<u64>,
    /// The locality buffers, where the store has room for fewer than were asked for.
    pub fewer_buffers: Option<FewerBuffers>,
}

/// What a store for these operations is made with. Its own replacement has nothing to do, as the
/// operations say what is deleted.
pub fn settings(plan: &SimulationPlan, operations: &Operations) -> SchemeSettings {
    let writes = operations.list.iter().filter(|operation| operation.kind == OperationKind::Write);
    let records: u64 = writes.map(|operation| sizing::pieces_of(operation.size)).sum();
    let record_limit = (records + 1024).min(u64::from(u32::MAX >> 4));
    let size = sizing::size_for(plan.scheme, plan.utilization, operations, record_limit);
    SchemeSettings {
        high_watermark: 100,
        low_watermark: 100,
        prefetch: plan.prefetch,
        ufs_mapping: plan.ufs_mapping,
        ..SchemeSettings::from(StoreSettings {
            recovery: Recovery::AfterCleanStop,
            record_limit: record_limit as u32,
            waiting_bytes: waiting_bytes(size),
            waiting_reads: 1024,
            flush_after: FLUSH_AFTER,
            checkpoint_interval: Duration::from_secs(1 << 30),
            seed: plan.seed,
            ..StoreSettings::with_size(size)
        })
    }
}

/// Runs all operations on an empty store.
///
/// # Errors
/// [`RunError`].
pub fn run(
    plan: &SimulationPlan,
    operations: &Operations,
    place: Place,
    watch: &Watch,
) -> Result<RunResult, RunError> {
    run_at_once(plan, 1, operations, place, watch)
}

/// The same, with so many URL-reads and as many URL-writes under way at once, for schemes that
/// nobody waits for.
///
/// # Errors
/// [`RunError`].
pub fn run_at_once(
    plan: &SimulationPlan,
    at_once: usize,
    operations: &Operations,
    place: Place,
    watch: &Watch,
) -> Result<RunResult, RunError> {
    let subject = subject(plan, at_once, operations)?;
    let fewer_buffers = sizing::fewer_buffers(plan.scheme, &subject.settings);
    let list = &operations.list;
    let keeps_content = !matches!(place, Place::Null);
    let result = match place {
        Place::Memory => {
            drive(subject, list, Memory::default(), Virtual::default(), watch)?.finish().0
        }
        Place::Null => drive(subject, list, Memory::null(), Virtual::default(), watch)?.finish().0,
        Place::Model(profile) => {
            fits(&subject, &profile)?;
            let device = Mechanical::new(*profile, 1, plan.seed);
            let (mut result, mut device) =
                drive(subject, list, device, Virtual::default(), watch)?.finish();
            let end = device.settle(Instant::ZERO).since(Instant::ZERO);
            result.took = Some(result.outcome.took.max(end));
            result.read_modify_writes = Some(device.counts().read_modify_writes);
            result
        }
        Place::Real(device) => drive(subject, list, device, Real, watch)?.close(),
    };
    if let Some(shortfall) =
        result.outcome.shortfall().filter(|shortfall| keeps_content && shortfall.is_failure())
    {
        return Err(RunError::FellShort(shortfall));
    }
    Ok(RunResult { gets: operations.gets, fewer_buffers, ..result })
}

/// Whether a store in one file has room on a modelled disk.
pub(crate) fn fits(subject: &Subject, profile: &DiskProfile) -> Result<(), RunError> {
    let (size, room) = (subject.settings.store.size, profile.room());
    if sizing::has_utilization(subject.scheme) && size > room {
        return Err(RunError::NoRoom(size, room));
    }
    Ok(())
}

/// Reads from the store that a run on a real device left behind, with a device that knows nothing
/// of it.
///
/// # Errors
/// [`RunError`].
pub fn read_again(
    plan: &SimulationPlan,
    at_once: usize,
    operations: &Operations,
    reads: &[Operation],
    device: Box<dyn BlockingDevice>,
    watch: &Watch,
) -> Result<Outcome, RunError> {
    let subject = subject(plan, at_once, operations)?;
    Ok(drive(subject, reads, device, Real, watch)?.finish().0.outcome)
}

/// A plan's store, asked for as many at once.
pub(crate) fn subject(
    plan: &SimulationPlan,
    at_once: usize,
    operations: &Operations,
) -> Result<Subject, RunError> {
    let settings = settings(plan, operations);
    if settings.store.size > LARGEST_STORE {
        return Err(RunError::TooLarge(settings.store.size));
    }
    let gathers = matches!(plan.scheme, SchemeName::LazyReads | SchemeName::LazyReadsLoc);
    let reads_at_once = if gathers { at_once.max(32) } else { at_once };
    Ok(Subject { scheme: plan.scheme, settings, reads_at_once, writes_at_once: at_once })
}

/// A store that has been asked for all operations.
struct Driven<D, P> {
    drive: Drive<D, P>,
    observer: Observer,
    /// What it asked of its device to open.
    opening: DeviceCounts,
}

fn drive<D: Device, P: TimeSource<D>>(
    subject: Subject,
    list: &[Operation],
    device: D,
    pace: P,
    watch: &Watch,
) -> Result<Driven<D, P>, RunError> {
    let observer = Observer::default();
    let opened = Drive::start(subject, device, pace, observer.clone());
    let mut drive = match (opened, observer.status.get()) {
        (_, StoreStatus::Unusable(error)) => return Err(RunError::Open(error)),
        (opened, _) => opened.map_err(RunError::Drive)?,
    };
    let opening = DeviceCounts::of(&observer.statistics);
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
        let counts = DeviceCounts::of(&self.observer.statistics).since(self.opening);
        (Self::result(outcome, counts), device)
    }

    /// The time includes closing, which writes what is buffered; the counts do not.
    fn close(self) -> RunResult {
        let mut counts = DeviceCounts::default();
        let count = || counts = DeviceCounts::of(&self.observer.statistics).since(self.opening);
        let (outcome, _) = self.drive.close(count);
        RunResult { took: Some(outcome.took), ..Self::result(outcome, counts) }
    }

    /// What is known here of a run.
    const fn result(outcome: Outcome, counts: DeviceCounts) -> RunResult {
        RunResult {
            gets: 0,
            outcome,
            took: None,
            counts,
            read_modify_writes: None,
            fewer_buffers: None,
        }
    }
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
