//! The purpose of each operation in flight, and the function that passes a result to the code for
//! this purpose. Also handles `get` requests. A get is answered from the page buffer, or by one
//! read of the record's pages.

use super::StreamPacketizer;
use super::phase::Phase;
use crate::index::{EntryId, EntryState};
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoDone, IoError};
use foxy_store::completion::{read, written};
use foxy_store::contract::{AbsentReason, Answer, Key, Outbox, Ticket};
use foxy_store::layout::{SLOT, SLOTS_PER_PAGE};
use foxy_store::one_file::io_sequence::FailuresBefore;
use foxy_store::record;

pub enum Pending {
    Journal,
    CheckpointHead(usize),
    /// Reads pages of a checkpoint. The value is the number of the first page within the
    /// checkpoint.
    CheckpointPages(u32),
    /// Reads record pages to find the headers of records.
    Scan(crate::pages::Run),
    Read(PendingRead),
    /// Writes a page buffer, in which new records are collected.
    Window,
    /// Performs a step of the sequence of disk operations that runs in this lane (a lane runs one
    /// sequence at a time). A sync carries the state that it makes durable.
    Step(LaneName, Option<Synced>),
    /// Reads pages whose records may not be durable. The storage scheme then writes the same bytes
    /// again and syncs.
    Settle(crate::pages::Run),
}

#[derive(Debug)]
pub struct PendingRead {
    pub ticket: Ticket,
    pub(super) key: Key,
    pub(super) sequence: u64,
    pub(super) entry: EntryId,
}

/// The state that a successful sync makes durable.
pub struct Synced {
    pub(super) overwritten: Vec<EntryId>,
    pub(super) durable: u64,
    pub(super) failures_before: FailuresBefore,
}

/// A lane runs one sequence of disk operations (writes and syncs) at a time. The lanes are
/// independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneName {
    /// Writes the superblock and the journal.
    Journal,
    /// Writes checkpoints. Also syncs the file after records were overwritten or written again.
    Checkpoint,
}

impl StreamPacketizer {
    pub(super) fn dispatch(
        &mut self,
        pending: Pending,
        done: IoDone,
        now: Instant,
        out: &mut Outbox,
    ) {
        match pending {
            Pending::Journal => self.journal_read(read(done), out),
            Pending::CheckpointHead(area) => self.checkpoint_head_read(area, read(done), out),
            Pending::CheckpointPages(from) => self.checkpoint_pages_read(from, read(done), out),
            Pending::Settle(run) => self.settle_read(run, read(done), now, out),
            Pending::Scan(run) => self.scanned(run, read(done), now, out),
            Pending::Read(pending) => self.read_done(pending, read(done), out),
            Pending::Window => self.window_done(done.id, written(&done)),
            Pending::Step(lane, synced) => {
                let result = written(&done);
                drop(done);
                self.step_done(lane, synced, result, now, out);
            }
        }
    }
}

impl StreamPacketizer {
    pub(super) fn get(&mut self, ticket: Ticket, key: Key, out: &mut Outbox) {
        if !matches!(self.lifecycle.phase(), Phase::Serving | Phase::Scanning) {
            return out.reply(ticket, Answer::Absent(self.lifecycle.unable().0));
        }
        let Some(id) = self.index.live_of(key) else {
            let reason = match self.lifecycle.phase() {
                Phase::Scanning => AbsentReason::Recovering,
                _ => AbsentReason::NotIndexed,
            };
            return out.reply(ticket, Answer::Absent(reason));
        };
        self.index.touch(id);
        if let Some(record) = self.buffered.get(&id) {
            return out.reply(ticket, Answer::Found(record.clone()));
        }
        if self.reads_in_flight >= self.settings.store.waiting_reads {
            return out.reply(ticket, Answer::Absent(AbsentReason::Busy));
        }
        self.reads_in_flight += 1;
        let entry = self.index.get(id);
        let run = entry.pages();
        let pending = PendingRead { ticket, key, sequence: entry.sequence, entry: id };
        let offset = self.layout.data_offset(run.first);
        self.file.read(offset, run.bytes(), Pending::Read(pending), out);
    }

    /// Answers a get. If the record was replaced, removed or evicted during the read, the answer is
    /// "absent".
    pub(super) fn read_done(
        &mut self,
        pending: PendingRead,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        self.reads_in_flight -= 1;
        let PendingRead { ticket, key, sequence, entry: id } = pending;
        let entry = *self.index.get(id);
        if entry.state != EntryState::Live || entry.key != key || entry.sequence != sequence {
            return out.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        }
        let skip = (entry.first_slot % SLOTS_PER_PAGE) as usize * SLOT;
        let answer = match result {
            Err(error) => {
                if error == IoError::Device {
                    self.pages.retire(entry.pages());
                }
                Err(AbsentReason::DeviceFailed(error))
            }
            Ok(buffer) => record::decode(buffer, skip, key, sequence, self.file.secret())
                .map_err(AbsentReason::from),
        };
        match answer {
            Ok(record) => out.reply(ticket, Answer::Found(record)),
            Err(reason) => {
                self.drop_live(id);
                out.reply(ticket, Answer::Absent(reason));
            }
        }
    }
}
