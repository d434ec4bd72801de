//! Opens a ufs store that has no ledger (list of valid record files), so that it keeps its records
//! only over a clean stop. The snapshot (a copy of the index) names the generation of the store. It
//! is trusted only if the superblock has the same generation. The opening then raises the
//! generation on disk before it serves, so the same snapshot is never trusted again.

use super::index::disk_bytes;
use super::scan::PUT_BITS;
use super::snapshot::{self, ListedFile};
use super::{LEDGER, SNAPSHOT, SNAPSHOT_NAME, Ufs, UfsJob, UfsPhase};
use foxy_device::{IoBuffer, IoDone, IoError, IoOp, IoOutput, StorePath};
use foxy_store::beginning::{AnewReason, Beginning};
use foxy_store::contract::Outbox;
use foxy_store::layout::PAGE;
use foxy_store::settings::{RECORD_BODY_LIMIT, RECORD_HEAD_LIMIT};

const MAX_READ_BYTES: usize = 1 << 20;

/// The operation whose result the opening waits for.
#[derive(Debug)]
pub(super) enum LoadStage {
    Opened,
    /// Reads the next bytes of the snapshot, which has `size` bytes, into `image`.
    Read {
        size: usize,
        image: Vec<u8>,
    },
    Closed,
    /// A step that makes the superblock with the new generation (number of the opening) durable.
    /// Steps 0 to 3 are write, sync, write, sync.
    Claimed(usize),
}

/// A step of the opening, and the number of attempts to open.
#[derive(Debug)]
pub(super) struct LoadStep {
    stage: LoadStage,
    tries: u8,
}

impl Ufs {
    fn load(&mut self, tries: u8, stage: LoadStage, op: IoOp, out: &mut Outbox) {
        self.submit(op, UfsJob::Load(LoadStep { stage, tries }), out);
    }

    pub(super) fn begin_loading(&mut self, tries: u8, out: &mut Outbox) {
        let path = StorePath::new(SNAPSHOT_NAME);
        self.load(tries, LoadStage::Opened, IoOp::Open { file: SNAPSHOT, path }, out);
    }

    pub(super) fn loading(&mut self, step: LoadStep, done: IoDone, out: &mut Outbox) {
        if !matches!(self.phase, UfsPhase::Opening) {
            return;
        }
        let tries = step.tries;
        match (step.stage, done.result) {
            (LoadStage::Opened, Ok(IoOutput::Opened { size })) => {
                let size = usize::try_from(
                    size.min(snapshot::bytes_for(self.settings.store.record_limit) + 1),
                );
                self.read_more(tries, size.unwrap_or(0), Vec::new(), out);
            }
            (LoadStage::Opened, Err(_)) => {
                self.observer.begins(Beginning::Anew(AnewReason::IndexLost));
                self.begin_anew(tries, out);
            }
            (LoadStage::Read { size, mut image }, result) => match (result, done.buffer) {
                (Ok(IoOutput::Moved { count }), Some(buffer)) if count == buffer.len() => {
                    image.extend_from_slice(buffer.as_ref());
                    self.read_more(tries, size, image, out);
                }
                _ => self.read_more(tries, 0, Vec::new(), out),
            },
            (LoadStage::Closed, _) if self.index.numbers() == 0 => self.begin_anew(tries, out),
            (LoadStage::Closed, _) => self.claim(tries, out),
            (LoadStage::Claimed(at), Ok(IoOutput::Moved { count: PAGE } | IoOutput::Done)) => {
                self.claim_next(tries, at + 1, out);
            }
            (_, result) => self.open_again(tries, result.err().unwrap_or(IoError::Device), out),
        }
    }

    fn read_more(&mut self, tries: u8, size: usize, image: Vec<u8>, out: &mut Outbox) {
        if image.len() < size {
            let (offset, length) = (image.len() as u64, (size - image.len()).min(MAX_READ_BYTES));
            let op = IoOp::Read { file: SNAPSHOT, offset, buffer: IoBuffer::zeroed(length) };
            return self.load(tries, LoadStage::Read { size, image }, op, out);
        }
        let listed = snapshot::decode(&image, self.superblock.generation, &self.secret);
        let lost = Beginning::Anew(AnewReason::IndexLost);
        self.observer.begins(if listed.is_some() { Beginning::Kept } else { lost });
        self.adopt(listed.unwrap_or_default());
        self.load(tries, LoadStage::Closed, IoOp::Close { file: SNAPSHOT }, out);
    }

    /// Adds the records of a snapshot to the index, except records with impossible values.
    fn adopt(&mut self, listed: Vec<ListedFile>) {
        for ListedFile { number, record } in listed {
            let content = record.content as usize;
            let fits = content <= RECORD_BODY_LIMIT + RECORD_HEAD_LIMIT
                && self.index.used_bytes() + disk_bytes(content) <= self.capacity()
                && number < self.settings.store.record_limit
                && self.index.is_free(number)
                && self.index.find(record.key).is_none();
            if fits {
                self.index.occupy(number, record);
                self.index.make_live(number);
            }
        }
        let statistics = &self.observer.statistics;
        statistics.recovered.set(self.index.records() as u64);
        statistics.recovered_from_checkpoint.set(self.index.records() as u64);
    }

    /// Starts an empty store with a new secret, so that old files are no longer valid.
    pub(super) fn begin_anew(&mut self, tries: u8, out: &mut Outbox) {
        self.renew();
        self.claim(tries, out);
    }

    fn claim(&mut self, tries: u8, out: &mut Outbox) {
        self.superblock.generation += 1;
        self.superblock.opens += 1;
        self.superblock.requested = self.settings.store.size;
        self.sequence = self.superblock.opens << PUT_BITS;
        self.claim_next(tries, 0, out);
    }

    fn claim_next(&mut self, tries: u8, step: usize, out: &mut Outbox) {
        let op = match step {
            0 | 2 => IoOp::Write {
                file: LEDGER,
                offset: (step / 2 * PAGE) as u64,
                buffer: IoBuffer::copy_of(&self.superblock.encode()),
            },
            1 | 3 => IoOp::Sync { file: LEDGER },
            _ => {
                self.serve();
                return self.begin_scan(out);
            }
        };
        self.load(tries, LoadStage::Claimed(step), op, out);
    }
}
