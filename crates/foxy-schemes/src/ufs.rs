//! The schemes that keep one file a record, at system-call level (R17-R19, R58-R60): Squid's ufs
//! and its kin, which differ in their [`UfsPlan`]. The lowest free file number is taken first. A hit
//! opens, reads and closes; a miss creates, writes and closes; what goes is unlinked. Files that
//! are not the store's are left alone and counted.
//!
//! Every file carries its header (R39). With a ledger, opening scans them. What must be durable is
//! forgetting: a put of a key that has or had a record, and every removal, is answered once the
//! ledger is synced. A put of a new key costs no sync. Without ([`Recovery::AfterCleanStop`])
//! nothing is synced while serving, and only a clean stop is recovered from.

mod change;
mod close;
mod commit;
mod get;
mod ledger;
mod load;
mod mapping;
mod open;
mod plan;
mod room;
mod scan;
mod shelf;
mod snapshot;

pub use crate::{UfsMapping, UfsReclaim};

use crate::SchemeSettings;
use change::{Change, Fill};
use commit::Commit;
use foxy_base::Instant;
use foxy_device::{FileId, IoDone, IoError, IoId, IoOp};
use foxy_store::contract::{
    AbsentReason, Answer, Key, Outbox, RefusedReason, Scheme, StoreRequest, Ticket,
};
use foxy_store::observe::Observer;
use foxy_store::record::Secret;
use foxy_store::settings::Recovery;
use foxy_store::status::{OpenStoreError, StoreStatus, Unable};
use foxy_store::superblock::Superblock;
use get::Get;
use ledger::Ledger;
use mapping::Mapping;
pub use plan::{
    AUFS, DISKD, FilePlacement, MULTIPLE_DIRS, Opens, SINGLE_DIRECTORY, SQUIDL, UFS, UfsPlan,
};
use scan::DirectoryScan;
use shelf::Shelf;
use std::collections::{HashMap, VecDeque};

/// The ledger's file, in the store's folder.
pub const LEDGER_NAME: &str = "foxy-ufs-ledger";
const LEDGER: FileId = FileId(0);
/// The snapshot's file, beside it.
const SNAPSHOT_NAME: &str = "foxy-ufs-swap.state";
const SNAPSHOT: FileId = FileId(u32::MAX);
/// How often an operation that opening depends on is tried.
const TRIES: u8 = 3;

/// Whether an entry of that name in the store's folder is one that these schemes make.
pub(crate) fn owns(name: &str) -> bool {
    name == LEDGER_NAME || name == SNAPSHOT_NAME || mapping::top(name).is_some()
}

/// What a completion means.
#[derive(Debug)]
enum UfsJob {
    Open(open::UfsOpenStep),
    Load(load::LoadStep),
    Save(close::Saving),
    Scan(scan::ScanStep),
    GetOpen(Get),
    GetRead(Get),
    FillCreate(Fill),
    FillDirectory(Fill),
    FillWrite(Fill),
    CloseFile(FileId),
    Unlink(u32),
    CommitWrite,
    CommitSync,
}

/// What the store is doing as a whole.
#[derive(Debug)]
enum UfsPhase {
    Opening,
    Scanning,
    /// The scan is done; what it did not find is being forgotten.
    Settling,
    Serving,
    Closing(Ticket),
    /// Nothing is under way any more but the snapshot.
    Saving(Ticket),
    Closed,
    Unusable(OpenStoreError),
}

/// The scheme.
pub struct Ufs {
    settings: SchemeSettings,
    mapping: Mapping,
    /// Operations under way at which nothing more is opened.
    opens_until: usize,
    observer: Observer,
    phase: UfsPhase,
    superblock: Superblock,
    secret: Secret,
    /// A scan under way: before serving with a ledger, while serving without.
    scan: Option<DirectoryScan>,
    shelf: Shelf,
    ledger: Ledger,
    commit: Commit,
    sequence: u64,
    now: Instant,
    /// When changes to the ledger that nobody waits for are committed.
    commit_by: Option<Instant>,
    maintain_by: Option<Instant>,
    jobs: HashMap<IoId, UfsJob>,
    operations: u64,
    files: Vec<u32>,
    files_made: u32,
    gets: usize,
    /// Changes in progress, one a key; later ones of the same key wait behind it.
    busy: HashMap<Key, VecDeque<Change>>,
    /// Puts that wait for room on the disk.
    no_room: VecDeque<Change>,
    waiting_bytes: usize,
    /// Puts and removals not answered yet.
    changes: usize,
    /// Files to unlink.
    doomed: VecDeque<u32>,
    unlinking: usize,
    /// Files whose unlinking failed; tried again when room is wanted.
    stuck: Vec<u32>,
}

impl Ufs {
    /// A scheme that opens nothing until [`Scheme::start`].
    pub fn new(plan: UfsPlan, settings: &SchemeSettings, observer: Observer) -> Self {
        Self {
            settings: settings.clone(),
            mapping: plan.placement.mapping(settings),
            opens_until: plan.opens.limit(settings),
            observer,
            phase: UfsPhase::Opening,
            superblock: Superblock::default(),
            secret: Secret::new(settings.store.seed),
            scan: None,
            shelf: Shelf::new(settings),
            ledger: Ledger::default(),
            commit: Commit::default(),
            sequence: 1,
            now: Instant::ZERO,
            commit_by: None,
            maintain_by: None,
            jobs: HashMap::new(),
            operations: 0,
            files: Vec::new(),
            files_made: 0,
            gets: 0,
            busy: HashMap::new(),
            no_room: VecDeque::new(),
            waiting_bytes: 0,
            changes: 0,
            doomed: VecDeque::new(),
            unlinking: 0,
            stuck: Vec::new(),
        }
    }

    /// Bytes that records can take: the store's size without its bookkeeping.
    fn capacity(&self) -> u64 {
        let books = match self.settings.store.recovery {
            Recovery::AfterCrash => ledger::bytes_for(self.settings.store.record_limit),
            Recovery::AfterCleanStop => {
                ledger::BLOCKS_AT + snapshot::bytes_for(self.settings.store.record_limit)
            }
        };
        self.settings.store.size.saturating_sub(books)
    }

    fn submit(&mut self, op: IoOp, job: UfsJob, out: &mut Outbox) {
        self.operations += 1;
        let id = IoId(self.operations);
        self.jobs.insert(id, job);
        out.submit(id, op);
    }

    fn take_file(&mut self) -> FileId {
        FileId(self.files.pop().unwrap_or_else(|| {
            self.files_made += 1;
            self.files_made
        }))
    }

    fn close_file(&mut self, file: FileId, out: &mut Outbox) {
        self.submit(IoOp::Close { file }, UfsJob::CloseFile(file), out);
    }

    /// Whether files of an earlier process may still take room that is not accounted for.
    const fn sweeping(&self) -> bool {
        self.scan.is_some() && matches!(self.phase, UfsPhase::Serving)
    }

    fn fail_for_good(&mut self, error: OpenStoreError) {
        self.observer.status.set(StoreStatus::Unusable(error));
        self.phase = UfsPhase::Unusable(error);
    }

    fn gauge(&self) {
        let statistics = &self.observer.statistics;
        statistics.records.set(self.shelf.records() as u64);
        statistics.live_bytes.set(self.shelf.used());
        statistics.index_bytes.set((self.shelf.memory() + self.ledger.memory()) as u64);
    }

    /// Why nothing can be served at the moment, if so.
    fn unable(&self) -> Option<(AbsentReason, RefusedReason)> {
        match self.phase {
            UfsPhase::Serving => None,
            UfsPhase::Opening | UfsPhase::Scanning | UfsPhase::Settling => {
                Some(Unable::Recovering.reasons())
            }
            UfsPhase::Closing(_) | UfsPhase::Saving(_) | UfsPhase::Closed => {
                Some(Unable::Closed.reasons())
            }
            UfsPhase::Unusable(error @ OpenStoreError::Device(_)) => {
                Some(Unable::Failed(error).reasons())
            }
            UfsPhase::Unusable(_) => Some((AbsentReason::NotIndexed, RefusedReason::StoresNothing)),
        }
    }
}

impl Scheme for Ufs {
    fn start(&mut self, now: Instant, out: &mut Outbox) {
        self.now = now;
        self.observer.status.set(StoreStatus::Opening);
        self.observer.statistics.capacity_bytes.set(self.capacity());
        self.begin_opening(1, out);
    }

    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox) {
        self.now = now;
        let ticket = request.ticket();
        match (request, self.unable()) {
            (StoreRequest::Close { .. }, _) => self.close(ticket, out),
            (StoreRequest::Get { .. }, Some((absent, _))) => {
                out.reply(ticket, Answer::Absent(absent))
            }
            (_, Some((_, refused))) => out.reply(ticket, Answer::Refused(refused)),
            (StoreRequest::Get { key, .. }, None) => self.get(ticket, key, out),
            (StoreRequest::Put { key, record, hint, .. }, None) => {
                self.put(ticket, key, record, &hint, out);
            }
            (StoreRequest::Remove { key, .. }, None) => {
                self.change(Change::remove(ticket, key), out)
            }
        }
    }

    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        self.now = now;
        let Some(job) = self.jobs.remove(&done.id) else { return };
        if done.result.as_ref().is_err_and(|&error| error != IoError::NotFound) {
            self.observer.statistics.device_errors.add(1);
        }
        match job {
            UfsJob::Open(step) => self.opening(step, done, out),
            UfsJob::Load(step) => self.loading(step, done, out),
            UfsJob::Save(step) => self.saving(step, &done, out),
            UfsJob::Scan(step) => self.scanned(step, done, out),
            UfsJob::GetOpen(get) => self.get_opened(get, &done, out),
            UfsJob::GetRead(get) => self.get_read(get, done, out),
            UfsJob::FillCreate(fill) => self.fill_created(fill, &done, out),
            UfsJob::FillDirectory(fill) => self.fill_directory(fill, &done, out),
            UfsJob::FillWrite(fill) => self.fill_written(fill, &done, out),
            UfsJob::CloseFile(file) => self.files.push(file.0),
            UfsJob::Unlink(number) => self.unlinked(number, done.result.map(|_| ()), out),
            UfsJob::CommitWrite => self.commit_written(&done, out),
            UfsJob::CommitSync => self.commit_synced(done.result.err(), out),
        }
        self.finish_closing(out);
    }

    fn deadline(&self) -> Option<Instant> {
        self.next_deadline()
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Outbox) {
        self.now = now;
        self.keep_time(out);
    }
}

#[cfg(test)]
#[path = "ufs/tests.rs"]
mod tests;
