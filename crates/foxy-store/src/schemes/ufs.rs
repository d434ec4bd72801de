//! Squid's `ufs` at system-call level (R18, R58): one file a record, in 16 × 256 directories, lowest free number first.
//! A hit opens, reads and closes; a miss creates, writes and closes; what goes is unlinked.
//!
//! Every file carries its header (R39); opening the store scans them. What must be durable is forgetting, and that is
//! the ledger's: a put of a key that has or had a record, and every removal, is answered once the ledger is synced.
//! A put of a new key costs no sync. Files that are not the store's are left alone and counted.

mod change;
mod commit;
mod get;
mod ledger;
mod mapping;
mod open;
mod room;
mod scan;
mod shelf;

pub use mapping::UfsMapping;
pub use room::UfsReclaim;

use crate::contract::{AbsentReason, Answer, Key, Outbox, RefusedReason, Scheme, StoreRequest, Ticket};
use crate::observe::Observer;
use crate::record::Secret;
use crate::settings::StoreSettings;
use crate::status::{OpenStoreError, StoreStatus};
use change::{Change, Fill};
use commit::Commit;
use foxy_base::Instant;
use foxy_device::{FileId, IoDone, IoError, IoId, IoOp};
use get::Get;
use ledger::Ledger;
use scan::Scan;
use shelf::Shelf;
use std::collections::{HashMap, VecDeque};

/// The ledger's file, in the store's folder.
pub const LEDGER_NAME: &str = "foxy-ufs-ledger";
const LEDGER: FileId = FileId(0);
/// How often an operation that opening depends on is tried.
const TRIES: u8 = 3;
/// Files unlinked at the same time.
const UNLINKS_AT_ONCE: usize = 32;

/// What a completion means.
#[derive(Debug)]
enum Job {
    Open(open::Step),
    Scan(scan::Step),
    GetOpen(Get),
    GetRead(Get),
    FillCreate(Fill),
    FillFirstLevel(Fill),
    FillSecondLevel(Fill),
    FillWrite(Fill),
    CloseFile(FileId),
    Unlink(u32),
    CommitWrite,
    CommitSync,
}

/// What the store is doing as a whole.
#[derive(Debug)]
enum Phase {
    Opening,
    Scanning(Scan),
    /// The scan is done; what it did not find is being forgotten.
    Settling,
    Serving,
    Closing(Ticket),
    Closed,
    Unusable(OpenStoreError),
}

/// The scheme.
pub struct Ufs {
    settings: StoreSettings,
    mapping: UfsMapping,
    observer: Observer,
    phase: Phase,
    secret: Secret,
    shelf: Shelf,
    ledger: Ledger,
    commit: Commit,
    sequence: u64,
    now: Instant,
    /// When changes to the ledger that nobody waits for are committed.
    commit_by: Option<Instant>,
    maintain_by: Option<Instant>,
    jobs: HashMap<IoId, Job>,
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
    #[must_use]
    pub fn new(settings: &StoreSettings, observer: Observer) -> Self {
        Self {
            settings: settings.clone(),
            mapping: settings.ufs_mapping,
            observer,
            phase: Phase::Opening,
            secret: Secret::new(settings.seed),
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
        self.settings.size.saturating_sub(ledger::bytes_for(self.settings.record_limit))
    }

    fn submit(&mut self, op: IoOp, job: Job, out: &mut Outbox) {
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
        self.submit(IoOp::Close { file }, Job::CloseFile(file), out);
    }

    fn unlink(&mut self, number: u32, out: &mut Outbox) {
        self.doomed.push_back(number);
        self.unlink_some(out);
    }

    fn unlink_some(&mut self, out: &mut Outbox) {
        while self.unlinking < UNLINKS_AT_ONCE
            && let Some(number) = self.doomed.pop_front()
        {
            self.unlinking += 1;
            self.submit(IoOp::Remove { path: self.mapping.path(number) }, Job::Unlink(number), out);
        }
    }

    fn unlinked(&mut self, number: u32, result: Result<(), IoError>, out: &mut Outbox) {
        self.unlinking -= 1;
        match result {
            Ok(()) | Err(IoError::NotFound) => self.shelf.release(number),
            Err(_) => self.stuck.push(number),
        }
        self.unlink_some(out);
        self.gauge();
        self.retry_waiting(out);
    }

    fn fail_for_good(&mut self, error: OpenStoreError) {
        self.observer.status.set(StoreStatus::Unusable(error));
        self.phase = Phase::Unusable(error);
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
            Phase::Serving => None,
            Phase::Opening | Phase::Scanning(_) | Phase::Settling => {
                Some((AbsentReason::Recovering, RefusedReason::Recovering))
            }
            Phase::Closing(_) | Phase::Closed => Some((AbsentReason::Closed, RefusedReason::Closed)),
            Phase::Unusable(OpenStoreError::Device(error)) => {
                Some((AbsentReason::DeviceFailed(error), RefusedReason::DeviceFailed(error)))
            }
            Phase::Unusable(_) => Some((AbsentReason::NotIndexed, RefusedReason::StoresNothing)),
        }
    }

    fn close(&mut self, ticket: Ticket, out: &mut Outbox) {
        match self.phase {
            Phase::Closing(_) | Phase::Closed => out.reply(ticket, Answer::Refused(RefusedReason::Closed)),
            Phase::Serving => {
                self.phase = Phase::Closing(ticket);
                self.finish_closing(out);
            }
            _ => {
                self.phase = Phase::Closed;
                out.reply(ticket, Answer::Closed);
            }
        }
    }

    /// Answers the close once nothing is under way any more.
    fn finish_closing(&mut self, out: &mut Outbox) {
        if let Phase::Closing(ticket) = self.phase
            && self.jobs.is_empty()
            && self.busy.is_empty()
        {
            if self.ledger.has_changed() && !self.commit.gives_up() {
                return self.begin_commit(out);
            }
            self.phase = Phase::Closed;
            self.observer.status.set(StoreStatus::Closed);
            out.reply(ticket, Answer::Closed);
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
            (StoreRequest::Get { .. }, Some((absent, _))) => out.reply(ticket, Answer::Absent(absent)),
            (_, Some((_, refused))) => out.reply(ticket, Answer::Refused(refused)),
            (StoreRequest::Get { key, .. }, None) => self.get(ticket, key, out),
            (StoreRequest::Put { key, record, hint, .. }, None) => {
                self.put(ticket, key, record, &hint, out);
            }
            (StoreRequest::Remove { key, .. }, None) => self.change(Change::remove(ticket, key), out),
        }
    }

    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        self.now = now;
        let Some(job) = self.jobs.remove(&done.id) else { return };
        match job {
            Job::Open(step) => self.opening(step, done, out),
            Job::Scan(step) => self.scanned(step, done, out),
            Job::GetOpen(get) => self.get_opened(get, &done, out),
            Job::GetRead(get) => self.get_read(get, done, out),
            Job::FillCreate(fill) => self.fill_created(fill, &done, out),
            Job::FillFirstLevel(fill) => self.fill_first_level(fill, &done, out),
            Job::FillSecondLevel(fill) => self.fill_second_level(fill, &done, out),
            Job::FillWrite(fill) => self.fill_written(fill, &done, out),
            Job::CloseFile(file) => self.files.push(file.0),
            Job::Unlink(number) => self.unlinked(number, done.result.map(|_| ()), out),
            Job::CommitWrite => self.commit_written(&done, out),
            Job::CommitSync => self.commit_synced(done.result.err(), out),
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
