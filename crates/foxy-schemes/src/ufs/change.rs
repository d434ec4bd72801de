//! Handles puts and removals, here called changes. Each key has at most one change in progress.
//! Later changes of the key wait in order. A put writes its file, and a get then finds the record.
//! If the key is new or the store has no ledger (list of valid record files), the put is answered
//! after this write. After any other put, a crash could bring back an older record of the key. So
//! that put is answered after the ledger, which makes the older record invalid, is synced.

use super::index::{FileRecord, State, disk_bytes, file_bytes};
use super::mapping::FileLocation;
use super::{Ufs, UfsJob};
use foxy_device::{FileId, IoBuffer, IoDone, IoError, IoOp, IoOutput};
use foxy_store::contract::{
    Answer, Key, Outbox, PlacementHint, Record, RefusedReason, Site, Ticket,
};
use foxy_store::record;
use foxy_store::settings::Recovery;
use std::collections::VecDeque;
use std::collections::hash_map::Entry;

const MAX_CHANGES: usize = 1024;

/// A put or removal that has not started its disk operations.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) ticket: Ticket,
    pub(super) key: Key,
    /// The record of a put, or `None` for a removal.
    record: Option<Record>,
    site: Site,
}

impl Change {
    pub(super) const fn remove(ticket: Ticket, key: Key) -> Self {
        Self { ticket, key, record: None, site: Site(0) }
    }

    /// Returns the bytes of this change that count towards the limit of waiting puts: the size of
    /// the file to write.
    fn weight(&self) -> usize {
        self.record.as_ref().map_or(0, |record| file_bytes(record.len()))
    }
}

#[derive(Debug)]
pub(super) struct Fill {
    ticket: Ticket,
    key: Key,
    record: Record,
    number: u32,
    sequence: u64,
    file: FileId,
    location: FileLocation,
    /// Number of bytes of the file that are written, or that a write in progress contains.
    written: usize,
    /// The content of the file, if the file is written in several pieces.
    content: Option<IoBuffer>,
    /// Number of parent directories that were created because they were missing. `None` before the
    /// first attempt to create the file.
    directories_made: Option<usize>,
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
            || !self.index.admits(whole)
            || !record.is_within_limits()
            || disk_bytes(record.len()) > self.capacity();
        if too_large {
            return out.reply(ticket, Answer::Refused(RefusedReason::TooLarge));
        }
        let waiting = self.waiting_bytes + file_bytes(record.len());
        let many = self.waiting_bytes > 0 && waiting > self.settings.store.waiting_bytes;
        if many || self.jobs.len() >= self.max_operations {
            return out.reply(ticket, Answer::Refused(RefusedReason::Busy));
        }
        self.waiting_bytes = waiting;
        self.change(Change { ticket, key, record: Some(record), site: hint.site }, out);
    }

    pub(super) fn change(&mut self, change: Change, out: &mut Outbox) {
        if self.changes >= MAX_CHANGES {
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
        if let Some(number) = self.index.find(change.key) {
            self.forget(number, out);
        }
        self.answer_when_settled(change.ticket, change.key, Answer::Removed, out);
    }

    /// Answers a change. Then starts the next change of the key.
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
        let room = self.index.used_bytes() + disk_bytes(length) <= self.capacity();
        let content = u32::try_from(length).unwrap_or(u32::MAX);
        let (key, sequence) = (change.key, self.sequence);
        let place = self.mapping.place(change.site);
        let record = FileRecord { key, sequence, place, content };
        let number = if room { self.index.take(record) } else { None };
        match (number, change) {
            (Some(number), Change { ticket, key, record: Some(record), .. }) => {
                self.sequence += 1;
                let file = self.take_file();
                let location = self.mapping.location(number, place);
                self.create(
                    Fill {
                        ticket,
                        key,
                        record,
                        number,
                        sequence,
                        file,
                        location,
                        written: 0,
                        content: None,
                        directories_made: None,
                    },
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

    /// Tries again all puts that wait for disk space.
    pub(super) fn retry_waiting(&mut self, out: &mut Outbox) {
        for _ in 0..self.no_room.len() {
            if let Some(change) = self.no_room.pop_front() {
                self.begin_fill(change, out);
            }
        }
    }

    /// Refuses all puts that wait for disk space.
    pub(super) fn refuse_waiting(&mut self, reason: RefusedReason, out: &mut Outbox) {
        while let Some(change) = self.no_room.pop_front() {
            self.waiting_bytes -= change.weight();
            self.finish_change(change.ticket, change.key, Answer::Refused(reason), out);
        }
    }

    fn create(&mut self, fill: Fill, out: &mut Outbox) {
        let (file, path) = (fill.file, fill.location.path());
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
                let is_whole = self.piece(buffer.len()) == buffer.len();
                if is_whole {
                    fill.written = buffer.len();
                    let write = IoOp::Write { file: fill.file, offset: 0, buffer };
                    return self.submit(write, UfsJob::FillWrite(fill), out);
                }
                fill.content = Some(buffer);
                self.write_piece(fill, out);
            }
            Err(IoError::NotFound) if fill.directories_made.is_none() => {
                fill.directories_made = Some(0);
                self.make_directory(fill, out);
            }
            Err(error) => {
                self.files.push(fill.file.0);
                self.fill_failed(&fill, error, out);
            }
        }
    }

    /// Writes the next piece of a file that is written in several pieces.
    fn write_piece(&mut self, mut fill: Fill, out: &mut Outbox) {
        let rest =
            fill.content.as_ref().map_or(&[][..], |content| &content.as_ref()[fill.written..]);
        let buffer = IoBuffer::copy_of(&rest[..self.piece(rest.len())]);
        let offset = fill.written as u64;
        fill.written += buffer.len();
        let write = IoOp::Write { file: fill.file, offset, buffer };
        self.submit(write, UfsJob::FillWrite(fill), out);
    }

    /// Creates the next parent directory. After the last directory, tries again to create the file.
    fn make_directory(&mut self, fill: Fill, out: &mut Outbox) {
        let next =
            fill.location.directory.chain().into_iter().nth(fill.directories_made.unwrap_or(0));
        match next {
            Some(path) => self.submit(IoOp::MakeDir { path }, UfsJob::FillDirectory(fill), out),
            None => self.create(fill, out),
        }
    }

    pub(super) fn fill_directory(&mut self, mut fill: Fill, done: &IoDone, out: &mut Outbox) {
        match done.result {
            Ok(_) => {
                fill.directories_made =
                    fill.directories_made.map(|directories_made| directories_made + 1);
                self.make_directory(fill, out);
            }
            Err(error) => {
                self.files.push(fill.file.0);
                self.fill_failed(&fill, error, out);
            }
        }
    }

    pub(super) fn fill_written(&mut self, fill: Fill, done: &IoDone, out: &mut Outbox) {
        let asked = done.buffer.as_ref().map_or(0, |buffer| buffer.len());
        let failure = match done.result {
            Ok(IoOutput::Moved { count }) if count == asked => None,
            Err(error) => Some(error),
            Ok(_) => Some(IoError::Device),
        };
        if failure.is_none() && fill.written < file_bytes(fill.record.len()) {
            return self.write_piece(fill, out);
        }
        self.close_file(fill.file, out);
        if let Some(error) = failure {
            return self.fill_failed(&fill, error, out);
        }
        self.waiting_bytes -= file_bytes(fill.record.len());
        if let Some(old) = self.index.find(fill.key) {
            self.forget(old, out);
        }
        self.index.make_live(fill.number);
        self.update_gauges();
        self.answer_when_settled(fill.ticket, fill.key, Answer::Stored, out);
    }

    /// Handles a put whose file could not be written. Deletes the file, which may exist in part.
    fn fill_failed(&mut self, fill: &Fill, error: IoError, out: &mut Outbox) {
        self.waiting_bytes -= file_bytes(fill.record.len());
        self.forget(fill.number, out);
        let reason = match error {
            IoError::NoSpace => RefusedReason::NoSpace,
            error => RefusedReason::DeviceFailed(error),
        };
        self.finish_change(fill.ticket, fill.key, Answer::Refused(reason), out);
    }

    /// Undoes a put, because the ledger could not record durably that the key's older record is
    /// invalid. Afterwards a get finds neither the new nor the older record.
    pub(super) fn undo_put(&mut self, key: Key, out: &mut Outbox) {
        if let Some(number) = self.index.find(key) {
            self.forget(number, out);
        }
    }

    /// Removes a file from the index and deletes it. If the store has a ledger (a list of valid
    /// record files), the next commit of the ledger makes the removal durable.
    pub(super) fn forget(&mut self, number: u32, out: &mut Outbox) {
        let slot = self.index.slot(number);
        assert!(
            slot.state == State::Live || slot.state == State::Filling,
            "only a file can be forgotten"
        );
        self.observer.statistics.forgets.add(1);
        if self.settings.store.recovery == Recovery::AfterCrash {
            self.ledger.raise(number, slot.record.sequence + 1);
            self.commit.unsettle(slot.record.key);
            self.commit_by.get_or_insert(self.now + self.settings.store.flush_after);
        }
        self.index.mark_dying(number);
        self.unlink(number, out);
    }
}
