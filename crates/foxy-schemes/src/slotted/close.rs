//! Closing: what is gathered goes to disk, then all data is made durable, then the index; only then
//! is it believed.

use super::files::Access;
use super::image::{self, ListedSlot};
use super::work::Job;
use super::{CONTROL, Phase, SUPERBLOCKS, Slotted, index_bytes};
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError, IoOp};
use foxy_store::contract::{Answer, Outbox, RefusedReason, Ticket};
use foxy_store::layout::PAGE;
use foxy_store::status::StoreStatus;

/// Data files made durable at once.
const SYNCS_AT_ONCE: usize = 16;
/// Bytes of the index written at once.
const WRITE_AT_ONCE: usize = 256 << 10;

/// How far the closing is.
#[derive(Debug)]
pub enum Closing {
    /// Operations begun before are ending.
    Draining,
    /// So many data files are being made durable; whether one could not be.
    Settling(usize, bool),
    /// The index is being written, from this byte on.
    Index(Vec<u8>, usize),
    /// The index is being made durable.
    Syncing,
}

impl Slotted {
    pub(super) fn close(&mut self, ticket: Ticket, now: Instant, out: &mut Outbox) {
        match self.phase {
            Phase::Serving => {
                self.flush_all(now, out);
                self.release_reads(out);
                self.phase = Phase::Closing(ticket, Closing::Draining);
                self.progress_close(now, out);
            }
            Phase::Closing(..) | Phase::Closed => {
                out.reply(ticket, Answer::Refused(RefusedReason::Closed));
            }
            Phase::New | Phase::Opening(_) | Phase::Unusable(_) => self.finish_close(ticket, out),
        }
    }

    fn flush_all(&mut self, now: Instant, out: &mut Outbox) {
        if let Some(locality) = &mut self.locality {
            let leaving = locality.flush(now);
            self.place_all(&leaving, now, out);
        }
        self.flush_gathered(out);
    }

    /// Goes on once everything begun before the closing has ended.
    pub(super) fn progress_close(&mut self, now: Instant, out: &mut Outbox) {
        let Phase::Closing(ticket, Closing::Draining) = self.phase else { return };
        self.flush_all(now, out);
        if self.jobs.is_empty() && self.no_reads() {
            self.phase = Phase::Closing(ticket, Closing::Settling(0, false));
            self.settle_more(out);
        }
    }

    fn settle_more(&mut self, out: &mut Outbox) {
        loop {
            let Phase::Closing(_, Closing::Settling(under_way, failed)) = &mut self.phase else {
                return;
            };
            if *failed || *under_way >= SYNCS_AT_ONCE {
                break;
            }
            let Some(file) = self.files.take_dirty() else { break };
            *under_way += 1;
            self.access(file, Access::Sync, Job::Settle(file), out);
        }
        match self.phase {
            Phase::Closing(ticket, Closing::Settling(0, true)) => self.finish_close(ticket, out),
            Phase::Closing(ticket, Closing::Settling(0, false)) => {
                let image = self.image();
                self.write_index(ticket, image, 0, out);
            }
            _ => {}
        }
    }

    /// A data file is durable; if one cannot be, no index is written, and the store will begin
    /// empty.
    pub(super) fn settled(&mut self, result: Result<(), IoError>, out: &mut Outbox) {
        if let Phase::Closing(_, Closing::Settling(under_way, failed)) = &mut self.phase {
            *under_way -= 1;
            *failed |= result.is_err();
            self.settle_more(out);
        }
    }

    /// All records, as far as the index has room; the coldest are left out first.
    fn image(&mut self) -> Vec<u8> {
        let all = self.entries.coldest_first();
        let listed: Vec<ListedSlot> = all
            .into_iter()
            .map(|id| self.entries.get(id))
            .filter(|entry| entry.held.is_none())
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
            self.phase = Phase::Closing(ticket, Closing::Syncing);
            return self.submit(IoOp::Sync { file: CONTROL }, Job::CloseStep, out);
        }
        let end = (at + WRITE_AT_ONCE).min(image.len());
        let offset = (SUPERBLOCKS * PAGE + at) as u64;
        let buffer = IoBuffer::copy_of(&image[at..end]);
        self.phase = Phase::Closing(ticket, Closing::Index(image, end));
        self.submit(IoOp::Write { file: CONTROL, offset, buffer }, Job::CloseStep, out);
    }

    pub(super) fn closing_step(&mut self, result: Result<(), IoError>, out: &mut Outbox) {
        let Phase::Closing(ticket, closing) = std::mem::replace(&mut self.phase, Phase::Closed)
        else {
            return;
        };
        match closing {
            Closing::Index(image, at) if result.is_ok() => self.write_index(ticket, image, at, out),
            Closing::Syncing => {
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
        self.phase = Phase::Closed;
        self.observer.status.set(StoreStatus::Closed);
        out.reply(ticket, Answer::Closed);
    }
}
