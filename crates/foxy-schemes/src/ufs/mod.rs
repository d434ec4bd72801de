//! The storage schemes with one file per record: Squid's ufs and its variants. The variants differ
//! in their [`UfsPlan`]. A hit opens, reads and closes a file. A put creates, writes and closes a
//! file with the lowest free number. An eviction deletes a file. Files of other programs stay
//! untouched and are counted.
//!
//! Every file starts with a header that names its record. A store that recovers after a crash has a
//! ledger, which says which files are no longer valid. The opening of such a store scans the
//! headers of all files, so only removals must be durable. A removal, and a put of a key with an
//! older record, is answered after a sync of the ledger. A put of a new key needs no sync.
//!
//! A store without a ledger ([`Recovery::AfterCleanStop`]) never syncs while it serves. Only a
//! clean stop writes its index, as a snapshot. After a crash, such a store starts empty.

mod change;
mod close;
mod commit;
mod index;
mod ledger;
mod load;
mod mapping;
mod open;
mod room;
mod scan;
mod snapshot;

#[cfg(test)]
mod tests;

use crate::SchemeSettings;
use change::{Change, Fill};
use commit::Commit;
use foxy_base::Instant;
use foxy_device::{FileId, IoBuffer, IoDone, IoError, IoId, IoOp, IoOutput};
use foxy_store::contract::{
    AbsentReason, Answer, Key, Outbox, RefusedReason, Scheme, StoreRequest, Ticket,
};
use foxy_store::observe::Observer;
use foxy_store::record::{self, RecordError, Secret};
use foxy_store::settings::Recovery;
use foxy_store::status::{OpenStoreError, StoreStatus, Unable};
use foxy_store::superblock::Superblock;
use index::{FileIndex, FileRecord, file_bytes};
use ledger::Ledger;
use mapping::Mapping;
pub(crate) use mapping::{AUFS, DISKD, MULTIPLE_DIRS, SINGLE_DIRECTORY, SQUIDL, UFS, UfsPlan};
use scan::DirectoryScan;
use std::collections::{HashMap, VecDeque};

/// Name of the file in the store's folder that contains the ledger (the list of valid record
/// files).
pub(crate) const LEDGER_NAME: &str = "foxy-ufs-ledger";
const LEDGER: FileId = FileId(0);
/// Name of the file in the store's folder that contains the snapshot (copy of the index).
const SNAPSHOT_NAME: &str = "foxy-ufs-swap.state";
const SNAPSHOT: FileId = FileId(u32::MAX);
/// Number of times that the opening of the store tries a disk operation before it fails.
const MAX_ATTEMPTS: u8 = 3;

/// Returns whether these storage schemes create a file or folder of this name in the store's
/// folder.
pub(crate) fn owns(name: &str) -> bool {
    name == LEDGER_NAME || name == SNAPSHOT_NAME || mapping::top_entry(name).is_some()
}

/// The purpose of a disk operation in flight.
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

#[derive(Debug)]
enum UfsPhase {
    Opening,
    Scanning,
    /// The scan is finished. The store writes its ledger (list of valid record files), so that
    /// files outside the index are no longer valid.
    Settling,
    Serving,
    Closing(Ticket),
    /// Writes the snapshot. No other operation is in flight.
    Saving(Ticket),
    Closed,
    Unusable(OpenStoreError),
}

pub(crate) struct Ufs {
    settings: SchemeSettings,
    mapping: Mapping,
    /// Number of disk operations in flight at which the store opens no more files.
    max_operations: usize,
    observer: Observer,
    phase: UfsPhase,
    superblock: Superblock,
    secret: Secret,
    /// The scan of the directories in progress. A store with a ledger (a list of valid record
    /// files) scans before it serves. A store without a ledger scans while it serves.
    scan: Option<DirectoryScan>,
    index: FileIndex,
    ledger: Ledger,
    commit: Commit,
    sequence: u64,
    now: Instant,
    /// The time at which changes of the ledger (the list of valid record files) are committed if no
    /// request waits for them.
    commit_by: Option<Instant>,
    maintain_by: Option<Instant>,
    jobs: HashMap<IoId, UfsJob>,
    operations: u64,
    files: Vec<u32>,
    files_made: u32,
    gets: usize,
    /// Keys with a change (put or removal) in progress. The value contains the later changes of the
    /// key, which wait.
    busy: HashMap<Key, VecDeque<Change>>,
    no_room: VecDeque<Change>,
    waiting_bytes: usize,
    /// Number of puts and removals without an answer.
    changes: usize,
    to_unlink: VecDeque<u32>,
    unlinking: usize,
    /// Numbers of files whose deletion failed. When the store next needs space, it tries to delete
    /// them again.
    failed_unlinks: Vec<u32>,
}

impl Ufs {
    pub(crate) fn new(plan: UfsPlan, settings: &SchemeSettings, observer: Observer) -> Self {
        Self {
            settings: settings.clone(),
            mapping: plan.mapping(settings),
            max_operations: plan.max_operations(settings),
            observer,
            phase: UfsPhase::Opening,
            superblock: Superblock::default(),
            secret: Secret::new(settings.store.seed),
            scan: None,
            index: FileIndex::new(settings),
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
            to_unlink: VecDeque::new(),
            unlinking: 0,
            failed_unlinks: Vec::new(),
        }
    }

    /// Returns the space for records in bytes. The ledger (list of valid record files) or the
    /// snapshot (copy of the index) takes the rest of the store's size.
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

    /// Returns whether files that the index does not list may still use disk space, because the
    /// scan has not finished.
    const fn sweeping(&self) -> bool {
        self.scan.is_some() && matches!(self.phase, UfsPhase::Serving)
    }

    fn fail_for_good(&mut self, error: OpenStoreError) {
        self.observer.status.set(StoreStatus::Unusable(error));
        self.phase = UfsPhase::Unusable(error);
    }

    fn update_gauges(&self) {
        let statistics = &self.observer.statistics;
        statistics.records.set(self.index.records() as u64);
        statistics.live_bytes.set(self.index.used_bytes());
        statistics.index_bytes.set((self.index.memory() + self.ledger.memory()) as u64);
    }

    /// Returns the reasons with which a store that does not serve refuses gets and puts. Returns
    /// `None` while the store serves.
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
        self.commit_by.into_iter().chain(self.maintain_by).min()
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Outbox) {
        self.now = now;
        self.run_timers(out);
    }
}

#[derive(Debug)]
struct Get {
    ticket: Ticket,
    key: Key,
    number: u32,
    sequence: u64,
    content: u32,
    file: FileId,
    /// The beginning of the file, if the file is read in several pieces.
    read: Vec<u8>,
}

impl Ufs {
    fn get(&mut self, ticket: Ticket, key: Key, out: &mut Outbox) {
        let Some(number) = self.index.find(key) else {
            return out.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        };
        if self.gets >= self.settings.store.waiting_reads || self.jobs.len() >= self.max_operations
        {
            return out.reply(ticket, Answer::Absent(AbsentReason::Busy));
        }
        self.gets += 1;
        self.index.touch(number);
        let FileRecord { sequence, place, content, .. } = self.index.slot(number).record;
        let file = self.take_file();
        let get = Get { ticket, key, number, sequence, content, file, read: Vec::new() };
        self.submit(
            IoOp::Open { file, path: self.mapping.location(number, place).path() },
            UfsJob::GetOpen(get),
            out,
        );
    }

    fn get_opened(&mut self, get: Get, done: &IoDone, out: &mut Outbox) {
        if let Err(error) = done.result {
            self.files.push(get.file.0);
            return self.miss(&get, AbsentReason::DeviceFailed(error), out);
        }
        self.read_piece(get, out);
    }

    /// Returns the number of bytes of the next read or write, if `rest` bytes of the file remain.
    fn piece(&self, rest: usize) -> usize {
        if self.settings.ufs_piece == 0 { rest } else { rest.min(self.settings.ufs_piece) }
    }

    fn read_piece(&mut self, get: Get, out: &mut Outbox) {
        let (file, offset) = (get.file, get.read.len());
        let buffer = IoBuffer::zeroed(self.piece(file_bytes(get.content as usize) - offset));
        let read = IoOp::Read { file, offset: offset as u64, buffer };
        self.submit(read, UfsJob::GetRead(get), out);
    }

    fn get_read(&mut self, mut get: Get, done: IoDone, out: &mut Outbox) {
        let mut buffer = match (done.result, done.buffer) {
            (Ok(IoOutput::Moved { count }), Some(buffer)) if count == buffer.len() => buffer,
            (result, _) => {
                self.close_file(get.file, out);
                let error = result.err().unwrap_or(IoError::Device);
                return self.miss(&get, AbsentReason::DeviceFailed(error), out);
            }
        };
        let whole = file_bytes(get.content as usize);
        if buffer.len() < whole {
            get.read.extend_from_slice(buffer.as_ref());
            if get.read.len() < whole {
                return self.read_piece(get, out);
            }
            buffer = IoBuffer::copy_of(&get.read);
        }
        self.close_file(get.file, out);
        match record::decode(buffer, 0, get.key, get.sequence, &self.secret) {
            Ok(record) => {
                self.gets -= 1;
                out.reply(get.ticket, Answer::Found(record));
            }
            Err(RecordError::OtherRecord) => self.miss(&get, AbsentReason::KeyMismatch, out),
            Err(_) => self.miss(&get, AbsentReason::ChecksumMismatch, out),
        }
    }

    /// Answers a get without a record. If the file is missing or does not contain the record, also
    /// removes the record from the index.
    fn miss(&mut self, get: &Get, reason: AbsentReason, out: &mut Outbox) {
        self.gets -= 1;
        out.reply(get.ticket, Answer::Absent(reason));
        let lost = matches!(
            reason,
            AbsentReason::KeyMismatch
                | AbsentReason::ChecksumMismatch
                | AbsentReason::DeviceFailed(IoError::NotFound)
        );
        if lost
            && self.index.find(get.key) == Some(get.number)
            && self.index.slot(get.number).record.sequence == get.sequence
        {
            self.forget(get.number, out);
        }
    }
}
