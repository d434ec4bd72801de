//! Puts and removals in ufs. One change a key is under way at a time; others of the key wait behind
//! it in order. A put writes its file, becomes visible, and is answered at once if its key was new
//! or there is no ledger, else after the ledger's sync.

use super::mapping::Spot;
use super::shelf::{State, disk_bytes, file_bytes};
use super::{Ufs, UfsJob};
use foxy_device::{FileId, IoBuffer, IoDone, IoError, IoOp, IoOutput};
use foxy_store::contract::{
    Answer, Key, Outbox, PlacementHint, Record, RefusedReason, Site, Ticket,
};
use foxy_store::record;
use foxy_store::settings::Recovery;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;

/// Puts and removals that may be unanswered.
const CHANGES_LIMIT: usize = 1024;

/// A put or removal that has not begun to work on the disk.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) ticket: Ticket,
    pub(super) key: Key,
    /// What is put; `None` for a removal.
    record: Option<Record>,
    site: Site,
}

impl Change {
    pub(super) const fn remove(ticket: Ticket, key: Key) -> Self {
        Self { ticket, key, record: None, site: Site(0) }
    }

    /// Bytes that count as waiting: those of the file it will be.
    fn weight(&self) -> usize {
        self.record.as_ref().map_or(0, |record| file_bytes(record.len()))
    }
}

/// A put whose file is being written.
#[derive(Debug)]
pub(super) struct Fill {
    ticket: Ticket,
    key: Key,
    record: Record,
    number: u32,
    sequence: u64,
    file: FileId,
    /// Where it goes.
    spot: Spot,
    /// Directories on the way that were made because the file could not be; `None` before the first
    /// try.
    made: Option<usize>,
}

impl Ufs {
    pub(super) fn put(
        &mut self,
        ticket: Ticket,
        key: Key,
        record: Record,
        hint: &PlacementHint,
        out: &mut Outbox,
    ) {
        let whole = hint.size.max(record.len() as u64);
        let too_large = whole > self.settings.store.object_limit
            || !self.shelf.admits(whole)
            || !record.is_within_limits()
            || disk_bytes(record.len()) > self.capacity();
        if too_large {
            return out.reply(ticket, Answer::Refused(RefusedReason::TooLarge));
        }
        let waiting = self.waiting_bytes + file_bytes(record.len());
        let many = self.waiting_bytes > 0 && waiting > self.settings.store.waiting_bytes;
        if many || self.jobs.len() >= self.opens_until {
            return out.reply(ticket, Answer::Refused(RefusedReason::Busy));
        }
        self.waiting_bytes = waiting;
        self.change(Change { ticket, key, record: Some(record), site: hint.site }, out);
    }

    pub(super) fn change(&mut self, change: Change, out: &mut Outbox) {
        if self.changes >= CHANGES_LIMIT {
            self.waiting_bytes -= change.weight();
            return out.reply(change.ticket, Answer::Refused(RefusedReason::Busy));
        }
        self.changes += 1;
        match self.busy.entry(change.key) {
            Entry::Vacant(entry) => {
                entry.insert(VecDeque::new());
                self.begin_change(change, out);
            }
            Entry::Occupied(mut entry) => entry.get_mut().push_back(change),
        }
    }

    fn begin_change(&mut self, change: Change, out: &mut Outbox) {
        if change.record.is_some() {
            return self.begin_fill(change, out);
        }
        if let Some(number) = self.shelf.find(change.key) {
            self.forget(number, out);
        }
        self.answer_when_settled(change.ticket, change.key, Answer::Removed, out);
    }

    /// Gives the change its answer and lets the next one of the key begin.
    pub(super) fn finish_change(
        &mut self,
        ticket: Ticket,
        key: Key,
        answer: Answer,
        out: &mut Outbox,
    ) {
        self.changes -= 1;
        out.reply(ticket, answer);
        let next = self.busy.get_mut(&key).and_then(VecDeque::pop_front);
        match next {
            Some(change) => self.begin_change(change, out),
            None => {
                self.busy.remove(&key);
            }
        }
    }

    fn begin_fill(&mut self, change: Change, out: &mut Outbox) {
        if self.sweeping() {
            return self.no_room.push_back(change);
        }
        let length = change.record.as_ref().map_or(0, Record::len);
        self.make_room(disk_bytes(length), out);
        let room = self.shelf.used() + disk_bytes(length) <= self.capacity();
        let content = u32::try_from(length).unwrap_or(u32::MAX);
        let sequence = self.sequence;
        let place = self.mapping.place(change.site);
        let number =
            if room { self.shelf.take(change.key, sequence, content, place) } else { None };
        match (number, change) {
            (Some(number), Change { ticket, key, record: Some(record), .. }) => {
                self.sequence += 1;
                let file = self.take_file();
                let spot = self.mapping.spot(number, place);
                self.create(
                    Fill { ticket, key, record, number, sequence, file, spot, made: None },
                    out,
                );
            }
            (_, change) if self.unlinking > 0 => self.no_room.push_back(change),
            (_, Change { ticket, key, .. }) => {
                self.waiting_bytes -= file_bytes(length);
                self.finish_change(ticket, key, Answer::Refused(RefusedReason::NoSpace), out);
            }
        }
    }

    /// Puts that wait for room try again.
    pub(super) fn retry_waiting(&mut self, out: &mut Outbox) {
        for _ in 0..self.no_room.len() {
            if let Some(change) = self.no_room.pop_front() {
                self.begin_fill(change, out);
            }
        }
    }

    /// Puts that wait for room will not get it.
    pub(super) fn refuse_waiting(&mut self, reason: RefusedReason, out: &mut Outbox) {
        while let Some(change) = self.no_room.pop_front() {
            self.waiting_bytes -= change.weight();
            self.finish_change(change.ticket, change.key, Answer::Refused(reason), out);
        }
    }

    fn create(&mut self, fill: Fill, out: &mut Outbox) {
        let (file, path) = (fill.file, fill.spot.path());
        self.submit(IoOp::Create { file, path, size: 0 }, UfsJob::FillCreate(fill), out);
    }

    pub(super) fn fill_created(&mut self, mut fill: Fill, done: &IoDone, out: &mut Outbox) {
        match done.result {
            Ok(_) => {
                let mut buffer = IoBuffer::zeroed(file_bytes(fill.record.len()));
                record::encode(
                    buffer.as_mut(),
                    fill.key,
                    fill.sequence,
                    &fill.record,
                    &self.secret,
                );
                self.submit(
                    IoOp::Write { file: fill.file, offset: 0, buffer },
                    UfsJob::FillWrite(fill),
                    out,
                );
            }
            Err(IoError::NotFound) if fill.made.is_none() => {
                fill.made = Some(0);
                self.make_directory(fill, out);
            }
            Err(error) => {
                self.files.push(fill.file.0);
                self.fill_failed(&fill, error, out);
            }
        }
    }

    /// Makes the next directory on the way, or tries the file again when there is none left.
    fn make_directory(&mut self, fill: Fill, out: &mut Outbox) {
        let next = fill.spot.directory.chain().into_iter().nth(fill.made.unwrap_or(0));
        match next {
            Some(path) => self.submit(IoOp::MakeDir { path }, UfsJob::FillDirectory(fill), out),
            None => self.create(fill, out),
        }
    }

    pub(super) fn fill_directory(&mut self, mut fill: Fill, done: &IoDone, out: &mut Outbox) {
        match done.result {
            Ok(_) => {
                fill.made = fill.made.map(|made| made + 1);
                self.make_directory(fill, out);
            }
            Err(error) => {
                self.files.push(fill.file.0);
                self.fill_failed(&fill, error, out);
            }
        }
    }

    pub(super) fn fill_written(&mut self, fill: Fill, done: &IoDone, out: &mut Outbox) {
        self.close_file(fill.file, out);
        let whole = file_bytes(fill.record.len());
        match done.result {
            Ok(IoOutput::Moved { count }) if count == whole => {}
            Err(error) => return self.fill_failed(&fill, error, out),
            Ok(_) => return self.fill_failed(&fill, IoError::Device, out),
        }
        self.waiting_bytes -= file_bytes(fill.record.len());
        if let Some(old) = self.shelf.find(fill.key) {
            self.forget(old, out);
        }
        self.shelf.enliven(fill.number);
        self.gauge();
        self.answer_when_settled(fill.ticket, fill.key, Answer::Stored, out);
    }

    /// The file may be there, wholly or in part: it is forgotten as a record would be.
    fn fill_failed(&mut self, fill: &Fill, error: IoError, out: &mut Outbox) {
        self.waiting_bytes -= file_bytes(fill.record.len());
        self.forget(fill.number, out);
        let reason = match error {
            IoError::NoSpace => RefusedReason::NoSpace,
            error => RefusedReason::DeviceFailed(error),
        };
        self.finish_change(fill.ticket, fill.key, Answer::Refused(reason), out);
    }

    /// A put whose old record could not be forgotten durably did not happen: neither may be found
    /// from here on.
    pub(super) fn take_back(&mut self, key: Key, out: &mut Outbox) {
        if let Some(number) = self.shelf.find(key) {
            self.forget(number, out);
        }
    }

    /// Takes a file out of the index, durably with the next commit if there is a ledger, and
    /// unlinks it.
    pub(super) fn forget(&mut self, number: u32, out: &mut Outbox) {
        let slot = self.shelf.slot(number);
        assert!(
            slot.state == State::Live || slot.state == State::Filling,
            "only a file can be forgotten"
        );
        self.observer.statistics.forgets.add(1);
        if self.settings.store.recovery == Recovery::AfterCrash {
            self.ledger.raise(number, slot.sequence + 1);
            self.commit.unsettle(slot.key);
            self.commit_by.get_or_insert(self.now + self.settings.store.flush_after);
        }
        self.shelf.condemn(number);
        self.unlink(number, out);
    }
}
