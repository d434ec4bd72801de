//! Closes a store. Writes the records that wait in memory, syncs the data files, then writes the
//! index. If the index is incomplete, the next opening starts with an empty store.

use super::files::Access;
use super::image::{self, ListedSlot};
use super::work::Job;
use super::{CONTROL, SUPERBLOCKS, Slotted, SlottedPhase, index_bytes};
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError, IoOp};
use foxy_store::contract::{Answer, Outbox, RefusedReason, Ticket};
use foxy_store::layout::PAGE;
use foxy_store::status::StoreStatus;

const MAX_SYNCS: usize = 16;
const MAX_WRITE_BYTES: usize = 256 << 10;

#[derive(Debug)]
pub enum Closing {
    /// Waits until all earlier operations have finished.
    Draining,
    /// Syncs the data files. `in_flight` syncs are not finished.
    SyncingData {
        in_flight: usize,
        has_failed: bool,
    },
    /// Writes the index, encoded as `image`. The bytes of `image` up to `end` are written or in
    /// flight.
    WritingIndex {
        image: Vec<u8>,
        end: usize,
    },
    SyncingIndex,
}

impl Slotted {
    pub(super) fn close(&mut self, ticket: Ticket, now: Instant, out: &mut Outbox) {
        match self.phase {
            SlottedPhase::Serving => {
                self.flush_all(now, out);
                self.release_reads(usize::MAX, out);
                self.phase = SlottedPhase::Closing { ticket, step: Closing::Draining };
                self.progress_close(now, out);
            }
            SlottedPhase::Closing { .. } | SlottedPhase::Closed => {
                out.reply(ticket, Answer::Refused(RefusedReason::Closed));
            }
            SlottedPhase::New | SlottedPhase::Opening(_) | SlottedPhase::Unusable(_) => {
                self.finish_close(ticket, out)
            }
        }
    }

    fn flush_all(&mut self, now: Instant, out: &mut Outbox) {
        if let Some(locality) = &mut self.locality {
            let leaving = locality.flush(now);
            self.place_all(&leaving, now, out);
        }
        self.flush_gathered(out);
    }

    /// Takes the next step of closing once all earlier operations have finished.
    pub(super) fn progress_close(&mut self, now: Instant, out: &mut Outbox) {
        let SlottedPhase::Closing { ticket, step: Closing::Draining } = self.phase else { return };
        self.flush_all(now, out);
        if self.jobs.is_empty() && self.hits.count() == 0 {
            let step = Closing::SyncingData { in_flight: 0, has_failed: false };
            self.phase = SlottedPhase::Closing { ticket, step };
            self.settle_more(out);
        }
    }

    fn settle_more(&mut self, out: &mut Outbox) {
        let SlottedPhase::Closing { ticket, step: Closing::SyncingData { in_flight, has_failed } } =
            &mut self.phase
        else {
            return;
        };
        let ticket = *ticket;
        if *has_failed {
            if *in_flight == 0 {
                self.finish_close(ticket, out);
            }
            return;
        }
        let mut files = Vec::new();
        while *in_flight < MAX_SYNCS
            && let Some(file) = self.files.take_dirty()
        {
            *in_flight += 1;
            files.push(file);
        }
        if *in_flight == 0 {
            let image = self.image();
            return self.write_index(ticket, image, 0, out);
        }
        for file in files {
            self.access(file, Access::Sync, Job::Settle(file), out);
        }
    }

    /// Handles the result of a data file's sync. If a sync fails, no index is written, so the next
    /// opening starts with an empty store.
    pub(super) fn settled(&mut self, result: Result<(), IoError>, out: &mut Outbox) {
        if let SlottedPhase::Closing {
            step: Closing::SyncingData { in_flight, has_failed }, ..
        } = &mut self.phase
        {
            *in_flight -= 1;
            *has_failed |= result.is_err();
            self.settle_more(out);
        }
    }

    /// Returns the index of all records as bytes for the control file. If the bytes exceed the
    /// space in this file, leaves out the records that would be evicted first.
    fn image(&mut self) -> Vec<u8> {
        let all = self.entries.coldest_first();
        let listed: Vec<ListedSlot> = all
            .into_iter()
            .map(|id| self.entries.get(id))
            .filter(|entry| entry.in_memory.is_none())
            .map(|entry| ListedSlot {
                key: entry.key,
                site: entry.site,
                sequence: entry.sequence,
                content: entry.content,
                pieces: entry.pieces.clone(),
            })
            .collect();
        let mut room = index_bytes(self.settings.store.size) as usize - image::HEAD;
        let fitting = listed.iter().rev().take_while(|record| {
            let fits = record.bytes() <= room;
            room = room.saturating_sub(record.bytes());
            fits
        });
        let from = listed.len() - fitting.count();
        image::encode(&listed[from..], self.superblock.generation, &self.secret)
    }

    fn write_index(&mut self, ticket: Ticket, image: Vec<u8>, at: usize, out: &mut Outbox) {
        if at >= image.len() {
            self.phase = SlottedPhase::Closing { ticket, step: Closing::SyncingIndex };
            return self.submit(IoOp::Sync { file: CONTROL }, Job::CloseStep, out);
        }
        let end = (at + MAX_WRITE_BYTES).min(image.len());
        let offset = (SUPERBLOCKS * PAGE + at) as u64;
        let buffer = IoBuffer::copy_of(&image[at..end]);
        self.phase = SlottedPhase::Closing { ticket, step: Closing::WritingIndex { image, end } };
        self.submit(IoOp::Write { file: CONTROL, offset, buffer }, Job::CloseStep, out);
    }

    pub(super) fn closing_step(&mut self, result: Result<(), IoError>, out: &mut Outbox) {
        let SlottedPhase::Closing { ticket, step } =
            std::mem::replace(&mut self.phase, SlottedPhase::Closed)
        else {
            return;
        };
        match step {
            Closing::WritingIndex { image, end } if result.is_ok() => {
                self.write_index(ticket, image, end, out);
            }
            Closing::SyncingIndex => {
                if result.is_ok() {
                    self.observer.statistics.checkpoints.add(1);
                }
                self.finish_close(ticket, out);
            }
            _ => self.finish_close(ticket, out),
        }
    }

    fn finish_close(&mut self, ticket: Ticket, out: &mut Outbox) {
        self.close_all_data(out);
        self.submit(IoOp::Close { file: CONTROL }, Job::Close(CONTROL), out);
        self.phase = SlottedPhase::Closed;
        self.observer.status.set(StoreStatus::Closed);
        out.reply(ticket, Answer::Closed);
    }
}
