//! Closes a store after all pending operations. A ledger is a list of valid record files. A store
//! with a ledger writes and syncs the last changes of the ledger. A store without a ledger writes
//! its snapshot, a copy of the index. The files of records are not synced, because every get
//! verifies a checksum.

use super::snapshot::{self, ListedFile};
use super::{SNAPSHOT, SNAPSHOT_NAME, Ufs, UfsJob, UfsPhase};
use foxy_device::{IoBuffer, IoDone, IoOp, IoOutput, StorePath};
use foxy_store::contract::{Answer, Outbox, RefusedReason, Ticket};
use foxy_store::settings::Recovery;
use foxy_store::status::StoreStatus;

const MAX_WRITE_BYTES: usize = 256 << 10;

/// A step in the writing of the snapshot.
#[derive(Debug)]
pub(super) enum Saving {
    Created {
        image: Vec<u8>,
    },
    /// Writes `length` bytes of the snapshot, encoded as `image`, from offset `at`.
    Written {
        image: Vec<u8>,
        at: usize,
        length: usize,
    },
    Synced,
}

impl Ufs {
    pub(super) fn close(&mut self, ticket: Ticket, out: &mut Outbox) {
        match self.phase {
            UfsPhase::Closing(_) | UfsPhase::Saving(_) | UfsPhase::Closed => {
                out.reply(ticket, Answer::Refused(RefusedReason::Closed));
            }
            UfsPhase::Serving => {
                if self.sweeping() {
                    self.refuse_waiting(RefusedReason::Closed, out);
                    self.scan = None;
                }
                self.phase = UfsPhase::Closing(ticket);
                self.finish_closing(out);
            }
            _ => {
                self.phase = UfsPhase::Closed;
                out.reply(ticket, Answer::Closed);
            }
        }
    }

    /// Takes the next step of closing once no operation is in flight.
    pub(super) fn finish_closing(&mut self, out: &mut Outbox) {
        let UfsPhase::Closing(ticket) = self.phase else { return };
        if !self.jobs.is_empty() || !self.busy.is_empty() {
            return;
        }
        match self.settings.store.recovery {
            Recovery::AfterCleanStop => self.begin_saving(ticket, out),
            Recovery::AfterCrash if self.ledger.has_changed() && !self.commit.gives_up() => {
                self.begin_commit(out);
            }
            Recovery::AfterCrash => self.closed(ticket, out),
        }
    }

    fn begin_saving(&mut self, ticket: Ticket, out: &mut Outbox) {
        self.phase = UfsPhase::Saving(ticket);
        let listed = self.index.coldest_first().into_iter();
        let listed =
            listed.map(|number| ListedFile { number, record: self.index.slot(number).record });
        let image = snapshot::encode(listed, self.superblock.generation, &self.secret);
        let path = StorePath::new(SNAPSHOT_NAME);
        self.submit(
            IoOp::Create { file: SNAPSHOT, path, size: 0 },
            UfsJob::Save(Saving::Created { image }),
            out,
        );
    }

    /// Takes the next step of writing the snapshot. If a step fails, the snapshot stays incomplete,
    /// and the next opening starts with an empty store.
    pub(super) fn saving(&mut self, saving: Saving, done: &IoDone, out: &mut Outbox) {
        let UfsPhase::Saving(ticket) = self.phase else { return };
        match (saving, &done.result) {
            (Saving::Created { image }, Ok(_)) => self.save_more(image, 0, out),
            (Saving::Written { image, at, length }, Ok(IoOutput::Moved { count }))
                if *count == length =>
            {
                self.save_more(image, at + length, out);
            }
            (Saving::Synced, Ok(_)) => {
                self.observer.statistics.checkpoints.add(1);
                self.closed(ticket, out);
            }
            _ => self.closed(ticket, out),
        }
    }

    fn save_more(&mut self, image: Vec<u8>, at: usize, out: &mut Outbox) {
        let length = (image.len() - at).min(MAX_WRITE_BYTES);
        if length == 0 {
            return self.submit(IoOp::Sync { file: SNAPSHOT }, UfsJob::Save(Saving::Synced), out);
        }
        let buffer = IoBuffer::copy_of(&image[at..at + length]);
        let op = IoOp::Write { file: SNAPSHOT, offset: at as u64, buffer };
        self.submit(op, UfsJob::Save(Saving::Written { image, at, length }), out);
    }

    fn closed(&mut self, ticket: Ticket, out: &mut Outbox) {
        self.phase = UfsPhase::Closed;
        self.observer.status.set(StoreStatus::Closed);
        out.reply(ticket, Answer::Closed);
    }
}
