//! Recovery of ufs (R39): every directory is listed and every file's header read, a few at a time.
//! A file counts when its header is sound, its bytes are all there and the ledger has not outlived
//! it; the newest of a key wins. What cannot be read does not count. Content is not read here:
//! every get checks it.
//!
//! A store that recovers from a clean stop only knows its files already, or has none: there the
//! directories are listed while it serves, and what is not its own is unlinked. Until that is done,
//! puts wait: the disk may still be full.

use super::mapping::{self, Branch, Directory, Spot, Top};
use super::shelf::{State, file_bytes};
use super::{LEDGER_NAME, SNAPSHOT_NAME, TRIES, Ufs, UfsJob, UfsPhase};
use foxy_device::{DirectoryEntry, FileId, IoBuffer, IoDone, IoError, IoOp, IoOutput, StorePath};
use foxy_store::contract::{Key, Outbox};
use foxy_store::layout::SLOT;
use foxy_store::record::Header;
use foxy_store::status::{OpenStoreError, StoreStatus};
use std::collections::{HashSet, VecDeque};

/// Operations under way at once.
const AT_ONCE: usize = 16;
/// The part of a sequence number that counts puts; above it, how often the store was opened.
pub(super) const PUT_BITS: u32 = 40;

/// What is still to be looked at.
#[derive(Clone, Copy, Debug)]
enum Place {
    Root,
    Branch(Branch),
    Leaf(Directory),
    File(Spot),
    /// A file that lies where no record of its number does: it is removed.
    Stray(Spot),
}

/// What is awaited.
#[derive(Clone, Copy, Debug)]
pub(super) enum ScanStep {
    Listed(Try),
    Opened(Try, FileId),
    Read(Try, FileId, u64),
    Removed(Try),
}

/// A place, and how often it was tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Try {
    place: Place,
    tries: u8,
}

/// A scan under way.
#[derive(Debug)]
pub(super) struct DirectoryScan {
    todo: VecDeque<Try>,
    running: usize,
    found: Vec<(Spot, Header)>,
    /// Files of ours that do not count, and their sizes.
    junk: Vec<(Spot, u64)>,
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
        // Files before directories, so that the list stays short.
        let file = matches!(place, Place::File(_) | Place::Stray(_));
        let entry = Try { place, tries: 1 };
        if file { self.todo.push_front(entry) } else { self.todo.push_back(entry) }
    }

    /// One file a number stays: the newest record, else the first other file. The rest, which only
    /// a power failure can have brought back, is to be removed; so is a file of a number that is
    /// `taken`.
    fn part_with_doubles(&mut self, taken: impl Fn(u32) -> bool) {
        self.found.sort_unstable_by_key(|(_, header)| std::cmp::Reverse(header.sequence));
        let mut numbers = HashSet::new();
        let mut strays = Vec::new();
        let mut keep = |spot: &Spot| {
            let keeps = !taken(spot.number) && numbers.insert(spot.number);
            if !keeps {
                strays.push(*spot);
            }
            keeps
        };
        self.found.retain(|(spot, _)| keep(spot));
        self.junk.retain(|(spot, _)| keep(spot));
        strays.into_iter().for_each(|spot| self.add(Place::Stray(spot)));
    }
}

impl Ufs {
    pub(super) fn begin_scan(&mut self, out: &mut Outbox) {
        self.scan = Some(DirectoryScan::new());
        self.scan_more(out);
    }

    /// Goes on with the scan, or ends it.
    fn scan_more(&mut self, out: &mut Outbox) {
        loop {
            let Some(scan) = &mut self.scan else { return };
            if scan.running >= AT_ONCE {
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
            let shelf = &self.shelf;
            scan.part_with_doubles(|number| !shelf.is_free(number));
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
            Place::File(spot) => {
                let file = self.take_file();
                (IoOp::Open { file, path: spot.path() }, UfsJob::Scan(ScanStep::Opened(next, file)))
            }
            Place::Stray(spot) => {
                (IoOp::Remove { path: spot.path() }, UfsJob::Scan(ScanStep::Removed(next)))
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
                    (Place::File(spot), Some(buffer)) => self.judge(spot, &buffer, size),
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
            _ if at.tries < TRIES && error != IoError::NotFound => {
                scan.todo.push_back(Try { tries: at.tries + 1, ..at });
            }
            Place::File(spot) => scan.junk.push((spot, 0)),
            _ if error == IoError::NotFound => {}
            _ => self.scan_gives_up(error, out),
        }
    }

    /// What lies on the disk cannot be told, so neither can how much may be added.
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
                Place::Root if entry.is_directory => mapping::top(name).map(|top| match top {
                    Top::Branch(branch) => Place::Branch(branch),
                    Top::Leaf(directory) => Place::Leaf(directory),
                }),
                Place::Root if name == LEDGER_NAME || name == SNAPSHOT_NAME => continue,
                Place::Branch(branch) if entry.is_directory => branch.leaf(name).map(Place::Leaf),
                Place::Leaf(directory) if !entry.is_directory => {
                    mapping::number(name).map(|number| Place::File(Spot { directory, number }))
                }
                _ => None,
            };
            let Some(found) = found else {
                scan.foreign += 1;
                continue;
            };
            let Place::File(spot) = found else {
                scan.add(found);
                continue;
            };
            match mapping.place_of(spot).filter(|_| spot.number < limit) {
                None => scan.add(Place::Stray(spot)),
                Some(_) if reads => scan.add(found),
                Some(place) => {
                    let slot = self.shelf.slot(spot.number);
                    if slot.state == State::Free || slot.place != place {
                        scan.junk.push((spot, entry.size));
                    }
                }
            }
        }
    }

    fn judge(&mut self, spot: Spot, buffer: &IoBuffer, size: u64) {
        let Some(scan) = &mut self.scan else { return };
        let Ok(header) = Header::decode(buffer.as_ref(), &self.secret) else {
            return scan.junk.push((spot, size));
        };
        scan.highest = scan.highest.max(header.sequence);
        let content = header.head_length as usize + header.body_length as usize;
        let counts = header.sequence >= self.ledger.lowest(spot.number)
            && size >= file_bytes(content) as u64;
        if counts { scan.found.push((spot, header)) } else { scan.junk.push((spot, size)) }
    }

    /// Puts what was found on the shelf, oldest first, and forgets all the rest for good.
    fn end_scan(&mut self, out: &mut Outbox) {
        let Some(mut scan) = self.scan.take() else { return };
        self.observer.statistics.foreign_files.set(scan.foreign);
        scan.found.sort_unstable_by_key(|(_, header)| header.sequence);
        for (spot, header) in scan.found {
            let place = self.mapping.place_of(spot).unwrap_or(0);
            let content = header.head_length + header.body_length;
            self.shelf.occupy(spot.number, header.key, header.sequence, content, place);
            if let Some(older) = self.shelf.find(header.key) {
                self.shelf.condemn(older);
                self.unlink(older, out);
            }
            self.shelf.enliven(spot.number);
        }
        for (spot, size) in scan.junk {
            let place = self.mapping.place_of(spot).unwrap_or(0);
            let size = u32::try_from(size).unwrap_or(u32::MAX);
            self.shelf.occupy(spot.number, Key([0; 16]), 0, size, place);
            self.shelf.condemn(spot.number);
            self.unlink(spot.number, out);
        }
        if !matches!(self.phase, UfsPhase::Scanning) {
            self.gauge();
            return self.retry_waiting(out);
        }
        self.phase = UfsPhase::Settling;
        let highest = scan.highest.max(self.ledger.highest_mentioned());
        self.sequence = ((highest >> PUT_BITS) + 1) << PUT_BITS;
        self.observer.statistics.recovered.set(self.shelf.records() as u64);
        let shelf = &self.shelf;
        self.ledger.settle(shelf.numbers(), self.sequence, |number| shelf.live_sequence(number));
        self.observer.status.set(StoreStatus::Rebuilding);
        self.begin_commit(out);
    }
}
