//! Scans the directories of a store while the store opens, after a crash or a clean stop. The scan
//! lists all directories and reads the headers of all files, several at a time. A file is valid if
//! its header is correct, its bytes are complete, and the ledger (the list of valid record files)
//! does not exclude it. If several valid files have the same key, the newest counts. The scan does
//! not read content, because every get verifies it.
//!
//! A store without a ledger reads its index from the snapshot, which a clean stop wrote. Without a
//! snapshot it starts empty. Such a store lists the directories while it serves, and deletes files
//! that the snapshot does not list. A put may wait until the scan ends, because these files may
//! fill the disk.

use super::index::{FileRecord, State, file_bytes};
use super::mapping::{self, Branch, Directory, FileLocation, TopEntry};
use super::{LEDGER_NAME, MAX_ATTEMPTS, SNAPSHOT_NAME, Ufs, UfsJob, UfsPhase};
use foxy_device::{DirectoryEntry, FileId, IoBuffer, IoDone, IoError, IoOp, IoOutput, StorePath};
use foxy_store::contract::{Key, Outbox};
use foxy_store::layout::SLOT;
use foxy_store::record::Header;
use foxy_store::status::{OpenStoreError, StoreStatus};
use std::collections::{HashSet, VecDeque};

const MAX_IN_FLIGHT: usize = 16;
/// Number of low bits of a sequence number that count the puts since the store was opened. The high
/// bits count the openings.
pub(super) const PUT_BITS: u32 = 40;

/// A directory or file that the scan visits.
#[derive(Clone, Copy, Debug)]
enum Place {
    Root,
    Branch(Branch),
    Leaf(Directory),
    File(FileLocation),
    /// A record's file in a wrong directory or with a number that is in use. The scan removes it.
    Stray(FileLocation),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum ScanStep {
    Listed(Try),
    Opened(Try, FileId),
    Read(Try, FileId, u64),
    Removed(Try),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Try {
    place: Place,
    tries: u8,
}

#[derive(Debug)]
pub(super) struct DirectoryScan {
    todo: VecDeque<Try>,
    running: usize,
    found: Vec<(FileLocation, Header)>,
    /// Invalid files of the store, with their sizes in bytes.
    junk: Vec<(FileLocation, u64)>,
    highest: u64,
    foreign: u64,
}

impl DirectoryScan {
    pub(super) fn new() -> Self {
        let root = Try { place: Place::Root, tries: 1 };
        Self {
            todo: VecDeque::from([root]),
            running: 0,
            found: Vec::new(),
            junk: Vec::new(),
            highest: 0,
            foreign: 0,
        }
    }

    fn add(&mut self, place: Place) {
        // Visit files before directories, so that the list of places to visit stays short.
        let file = matches!(place, Place::File(_) | Place::Stray(_));
        let entry = Try { place, tries: 1 };
        if file { self.todo.push_front(entry) } else { self.todo.push_back(entry) }
    }

    /// Keeps one file per file number: the newest record, or an invalid file if there is no record.
    /// Deletes other files with this number, which can return in another directory after a power
    /// failure. Also deletes files for whose number `taken` returns true.
    fn drop_duplicates(&mut self, taken: impl Fn(u32) -> bool) {
        self.found.sort_unstable_by_key(|(_, header)| std::cmp::Reverse(header.sequence));
        let mut numbers = HashSet::new();
        let mut strays = Vec::new();
        let mut keep = |location: &FileLocation| {
            let keeps = !taken(location.number) && numbers.insert(location.number);
            if !keeps {
                strays.push(*location);
            }
            keeps
        };
        self.found.retain(|(location, _)| keep(location));
        self.junk.retain(|(location, _)| keep(location));
        strays.into_iter().for_each(|location| self.add(Place::Stray(location)));
    }
}

impl Ufs {
    pub(super) fn begin_scan(&mut self, out: &mut Outbox) {
        self.scan = Some(DirectoryScan::new());
        self.scan_more(out);
    }

    /// Starts the next operations of the scan, or ends it.
    fn scan_more(&mut self, out: &mut Outbox) {
        loop {
            let Some(scan) = &mut self.scan else { return };
            if scan.running >= MAX_IN_FLIGHT {
                return;
            }
            if let Some(next) = scan.todo.pop_front() {
                scan.running += 1;
                self.look_at(next, out);
                continue;
            }
            if scan.running > 0 {
                return;
            }
            let index = &self.index;
            scan.drop_duplicates(|number| !index.is_free(number));
            if scan.todo.is_empty() {
                return self.end_scan(out);
            }
        }
    }

    fn look_at(&mut self, next: Try, out: &mut Outbox) {
        let list = |path| (IoOp::List { path }, UfsJob::Scan(ScanStep::Listed(next)));
        let (op, job) = match next.place {
            Place::Root => list(StorePath::root()),
            Place::Branch(branch) => list(branch.path()),
            Place::Leaf(directory) => list(directory.path()),
            Place::File(location) => {
                let file = self.take_file();
                (
                    IoOp::Open { file, path: location.path() },
                    UfsJob::Scan(ScanStep::Opened(next, file)),
                )
            }
            Place::Stray(location) => {
                (IoOp::Remove { path: location.path() }, UfsJob::Scan(ScanStep::Removed(next)))
            }
        };
        self.submit(op, job, out);
    }

    pub(super) fn scanned(&mut self, step: ScanStep, done: IoDone, out: &mut Outbox) {
        match (step, done.result) {
            (ScanStep::Listed(at), Ok(IoOutput::Listing(entries))) => {
                self.listed(at.place, entries)
            }
            (ScanStep::Opened(at, file), Ok(IoOutput::Opened { size })) => {
                let step = ScanStep::Read(at, file, size);
                let buffer = IoBuffer::zeroed(SLOT);
                return self.submit(
                    IoOp::Read { file, offset: 0, buffer },
                    UfsJob::Scan(step),
                    out,
                );
            }
            (ScanStep::Read(at, file, size), Ok(IoOutput::Moved { count })) => {
                self.close_file(file, out);
                let buffer = done.buffer.filter(|_| count as u64 == size.min(SLOT as u64));
                match (at.place, buffer) {
                    (Place::File(location), Some(buffer)) => self.judge(location, &buffer, size),
                    _ => self.scan_failed(at, IoError::Device, out),
                }
            }
            (ScanStep::Removed(_), Ok(_)) => {}
            (ScanStep::Opened(at, file), result) => {
                self.files.push(file.0);
                self.scan_failed(at, result.err().unwrap_or(IoError::Device), out);
            }
            (ScanStep::Read(at, file, _), result) => {
                self.close_file(file, out);
                self.scan_failed(at, result.err().unwrap_or(IoError::Device), out);
            }
            (ScanStep::Listed(at) | ScanStep::Removed(at), result) => {
                self.scan_failed(at, result.err().unwrap_or(IoError::Device), out);
            }
        }
        if let Some(scan) = &mut self.scan {
            scan.running -= 1;
        }
        self.scan_more(out);
    }

    fn scan_failed(&mut self, at: Try, error: IoError, out: &mut Outbox) {
        let Some(scan) = &mut self.scan else { return };
        match at.place {
            _ if at.tries < MAX_ATTEMPTS && error != IoError::NotFound => {
                scan.todo.push_back(Try { tries: at.tries + 1, ..at });
            }
            Place::File(location) => scan.junk.push((location, 0)),
            _ if error == IoError::NotFound => {}
            _ => self.scan_gives_up(error, out),
        }
    }

    /// Ends a scan that failed. The store is then unusable, because nobody knows how much space its
    /// files use.
    fn scan_gives_up(&mut self, error: IoError, out: &mut Outbox) {
        self.scan = None;
        if matches!(self.phase, UfsPhase::Scanning | UfsPhase::Serving) {
            self.fail_for_good(OpenStoreError::Device(error));
            self.refuse_waiting(foxy_store::contract::RefusedReason::DeviceFailed(error), out);
        }
    }

    fn listed(&mut self, place: Place, entries: Vec<DirectoryEntry>) {
        let (mapping, limit) = (self.mapping, self.settings.store.record_limit);
        let reads = matches!(self.phase, UfsPhase::Scanning);
        let Some(scan) = &mut self.scan else { return };
        for entry in entries {
            let name = entry.name.as_str();
            let found = match place {
                Place::Root if entry.is_directory => {
                    mapping::top_entry(name).map(|top| match top {
                        TopEntry::Branch(branch) => Place::Branch(branch),
                        TopEntry::Leaf(directory) => Place::Leaf(directory),
                    })
                }
                Place::Root if name == LEDGER_NAME || name == SNAPSHOT_NAME => continue,
                Place::Branch(branch) if entry.is_directory => branch.leaf(name).map(Place::Leaf),
                Place::Leaf(directory) if !entry.is_directory => mapping::number(name)
                    .map(|number| Place::File(FileLocation { directory, number })),
                _ => None,
            };
            let Some(found) = found else {
                scan.foreign += 1;
                continue;
            };
            let Place::File(location) = found else {
                scan.add(found);
                continue;
            };
            match mapping.place_of(location).filter(|_| location.number < limit) {
                None => scan.add(Place::Stray(location)),
                Some(_) if reads => scan.add(found),
                Some(place) => {
                    let slot = self.index.slot(location.number);
                    if slot.state == State::Free || slot.record.place != place {
                        scan.junk.push((location, entry.size));
                    }
                }
            }
        }
    }

    fn judge(&mut self, location: FileLocation, buffer: &IoBuffer, size: u64) {
        let Some(scan) = &mut self.scan else { return };
        let Ok(header) = Header::decode(buffer.as_ref(), &self.secret) else {
            return scan.junk.push((location, size));
        };
        scan.highest = scan.highest.max(header.sequence);
        let content = header.head_length as usize + header.body_length as usize;
        let counts = header.sequence >= self.ledger.lowest(location.number)
            && size >= file_bytes(content) as u64;
        if counts { scan.found.push((location, header)) } else { scan.junk.push((location, size)) }
    }

    /// Adds the records that were found to the index, oldest first. Deletes all other files of the
    /// store.
    fn end_scan(&mut self, out: &mut Outbox) {
        let Some(mut scan) = self.scan.take() else { return };
        self.observer.statistics.foreign_files.set(scan.foreign);
        scan.found.sort_unstable_by_key(|(_, header)| header.sequence);
        for (location, header) in scan.found {
            let place = self.mapping.place_of(location).unwrap_or(0);
            let content = header.head_length + header.body_length;
            let (key, sequence) = (header.key, header.sequence);
            self.index.occupy(location.number, FileRecord { key, sequence, place, content });
            if let Some(older) = self.index.find(header.key) {
                self.index.mark_dying(older);
                self.unlink(older, out);
            }
            self.index.make_live(location.number);
        }
        for (location, size) in scan.junk {
            let place = self.mapping.place_of(location).unwrap_or(0);
            let content = u32::try_from(size).unwrap_or(u32::MAX);
            let junk = FileRecord { key: Key([0; 16]), sequence: 0, place, content };
            self.index.occupy(location.number, junk);
            self.index.mark_dying(location.number);
            self.unlink(location.number, out);
        }
        if !matches!(self.phase, UfsPhase::Scanning) {
            self.update_gauges();
            return self.retry_waiting(out);
        }
        self.phase = UfsPhase::Settling;
        let highest = scan.highest.max(self.ledger.highest_mentioned());
        self.sequence = ((highest >> PUT_BITS) + 1) << PUT_BITS;
        self.observer.statistics.recovered.set(self.index.records() as u64);
        let index = &self.index;
        self.ledger.settle(index.numbers(), self.sequence, |number| index.live_sequence(number));
        self.observer.status.set(StoreStatus::Rebuilding);
        self.begin_commit(out);
    }
}
