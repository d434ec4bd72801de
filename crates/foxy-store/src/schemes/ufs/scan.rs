//! Recovery of ufs (R39): every directory is listed and every file's header read, a few at a time. A file counts when
//! its header is sound, its bytes are all there and the ledger has not outlived it; the newest of a key wins. What
//! cannot be read does not count. Content is not read here: every get checks it.

use super::mapping::{self, FIRST_LEVEL, SECOND_LEVEL, directory_of};
use super::shelf::file_bytes;
use super::{Job, LEDGER_NAME, Phase, TRIES, Ufs};
use crate::contract::{Key, Outbox};
use crate::layout::SLOT;
use crate::record::Header;
use crate::status::{OpenStoreError, StoreStatus};
use foxy_device::{DirectoryEntry, FileId, IoBuffer, IoDone, IoError, IoOp, IoOutput, StorePath};
use std::collections::VecDeque;

/// Operations under way at once.
const AT_ONCE: usize = 16;
/// The part of a sequence number that counts puts; above it, how often the store was opened.
const PUT_BITS: u32 = 40;

/// What is still to be looked at.
#[derive(Clone, Copy, Debug)]
enum Place {
    Root,
    First(u32),
    Second(u32, u32),
    File(u32),
    /// A file that lies where the other mapping puts it, or above the limit on files: it is removed.
    Stray(u32, u32, u32),
}

/// What is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Listed(Try),
    Opened(Try, FileId),
    Read(Try, FileId, u64),
    Removed,
}

/// A place, and how often it was tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Try {
    place: Place,
    tries: u8,
}

/// A scan under way.
#[derive(Debug)]
pub(super) struct Scan {
    todo: VecDeque<Try>,
    running: usize,
    found: Vec<(u32, Header)>,
    /// Files of ours that do not count, and their sizes.
    junk: Vec<(u32, u64)>,
    highest: u64,
    foreign: u64,
}

impl Scan {
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
        // Files before directories, so that the list stays short.
        let file = matches!(place, Place::File(_) | Place::Stray(..));
        let entry = Try { place, tries: 1 };
        if file { self.todo.push_front(entry) } else { self.todo.push_back(entry) }
    }
}

impl Ufs {
    /// Goes on with the scan, or ends it.
    pub(super) fn scan_more(&mut self, out: &mut Outbox) {
        loop {
            let Phase::Scanning(scan) = &mut self.phase else { return };
            if scan.running >= AT_ONCE {
                return;
            }
            let Some(next) = scan.todo.pop_front() else { break };
            scan.running += 1;
            self.look_at(next, out);
        }
        if let Phase::Scanning(scan) = &self.phase
            && scan.running == 0
        {
            self.end_scan(out);
        }
    }

    fn look_at(&mut self, next: Try, out: &mut Outbox) {
        let list = |path| (IoOp::List { path }, Job::Scan(Step::Listed(next)));
        let (op, job) = match next.place {
            Place::Root => list(StorePath::root()),
            Place::First(first) => list(mapping::first_level(first)),
            Place::Second(first, second) => list(mapping::second_level(first, second)),
            Place::File(number) => {
                let file = self.take_file();
                (IoOp::Open { file, path: self.mapping.path(number) }, Job::Scan(Step::Opened(next, file)))
            }
            Place::Stray(first, second, number) => {
                let path = format!("{}/{number:08X}", mapping::second_level(first, second).as_str());
                (IoOp::Remove { path: StorePath::new(path) }, Job::Scan(Step::Removed))
            }
        };
        self.submit(op, job, out);
    }

    pub(super) fn scanned(&mut self, step: Step, done: IoDone, out: &mut Outbox) {
        match (step, done.result) {
            (Step::Listed(at), Ok(IoOutput::Listing(entries))) => self.listed(at.place, entries),
            (Step::Opened(at, file), Ok(IoOutput::Opened { size })) => {
                let step = Step::Read(at, file, size);
                let buffer = IoBuffer::zeroed(SLOT);
                return self.submit(IoOp::Read { file, offset: 0, buffer }, Job::Scan(step), out);
            }
            (Step::Read(at, file, size), Ok(IoOutput::Moved { count })) => {
                self.close_file(file, out);
                let buffer = done.buffer.filter(|_| count as u64 == size.min(SLOT as u64));
                match (at.place, buffer) {
                    (Place::File(number), Some(buffer)) => self.judge(number, &buffer, size),
                    _ => self.scan_failed(at, IoError::Device),
                }
            }
            (Step::Removed, _) => {}
            (Step::Opened(at, file), result) => {
                self.files.push(file.0);
                self.scan_failed(at, result.err().unwrap_or(IoError::Device));
            }
            (Step::Read(at, file, _), result) => {
                self.close_file(file, out);
                self.scan_failed(at, result.err().unwrap_or(IoError::Device));
            }
            (Step::Listed(at), result) => self.scan_failed(at, result.err().unwrap_or(IoError::Device)),
        }
        if let Phase::Scanning(scan) = &mut self.phase {
            scan.running -= 1;
        }
        self.scan_more(out);
    }

    fn scan_failed(&mut self, at: Try, error: IoError) {
        let Phase::Scanning(scan) = &mut self.phase else { return };
        match at.place {
            _ if at.tries < TRIES && error != IoError::NotFound => {
                scan.todo.push_back(Try { tries: at.tries + 1, ..at });
            }
            Place::File(number) => scan.junk.push((number, 0)),
            _ if error == IoError::NotFound => {}
            _ => self.fail_for_good(OpenStoreError::Device(error)),
        }
    }

    fn listed(&mut self, place: Place, entries: Vec<DirectoryEntry>) {
        let (mapping, limit) = (self.mapping, self.settings.record_limit);
        let Phase::Scanning(scan) = &mut self.phase else { return };
        for entry in entries {
            let name = entry.name.as_str();
            let found = match place {
                Place::Root if entry.is_directory => directory_of(name, FIRST_LEVEL).map(Place::First),
                Place::Root if name == LEDGER_NAME => continue,
                Place::First(first) if entry.is_directory => {
                    directory_of(name, SECOND_LEVEL).map(|second| Place::Second(first, second))
                }
                Place::Second(first, second) if !entry.is_directory => {
                    let ours = mapping.number_of(first, second, name);
                    let other = mapping.other().number_of(first, second, name);
                    match ours.or(other) {
                        Some(number) if ours.is_some() && number < limit => Some(Place::File(number)),
                        Some(number) => Some(Place::Stray(first, second, number)),
                        None => None,
                    }
                }
                _ => None,
            };
            match found {
                Some(place) => scan.add(place),
                None => scan.foreign += 1,
            }
        }
    }

    fn judge(&mut self, number: u32, buffer: &IoBuffer, size: u64) {
        let Phase::Scanning(scan) = &mut self.phase else { return };
        let Ok(header) = Header::decode(buffer.as_ref(), &self.secret) else {
            return scan.junk.push((number, size));
        };
        scan.highest = scan.highest.max(header.sequence);
        let content = header.head_length as usize + header.body_length as usize;
        let counts = header.sequence >= self.ledger.lowest(number) && size >= file_bytes(content) as u64;
        if counts { scan.found.push((number, header)) } else { scan.junk.push((number, size)) }
    }

    /// Puts what was found on the shelf, oldest first, and forgets all the rest for good.
    fn end_scan(&mut self, out: &mut Outbox) {
        let Phase::Scanning(mut scan) = std::mem::replace(&mut self.phase, Phase::Settling) else { return };
        let highest = scan.highest.max(self.ledger.highest_mentioned());
        self.sequence = ((highest >> PUT_BITS) + 1) << PUT_BITS;
        scan.found.sort_unstable_by_key(|(_, header)| header.sequence);
        for (number, header) in scan.found {
            self.shelf.occupy(number, header.key, header.sequence, header.head_length + header.body_length);
            if let Some(older) = self.shelf.find(header.key) {
                self.shelf.condemn(older);
                self.unlink(older, out);
            }
            self.shelf.enliven(number);
        }
        for (number, size) in scan.junk {
            self.shelf.occupy(number, Key([0; 16]), 0, u32::try_from(size).unwrap_or(u32::MAX));
            self.shelf.condemn(number);
            self.unlink(number, out);
        }
        let statistics = &self.observer.statistics;
        statistics.recovered.set(self.shelf.records() as u64);
        statistics.foreign_files.set(scan.foreign);
        let shelf = &self.shelf;
        self.ledger.settle(shelf.numbers(), self.sequence, |number| shelf.live_sequence(number));
        self.observer.status.set(StoreStatus::Rebuilding);
        self.begin_commit(out);
    }
}
