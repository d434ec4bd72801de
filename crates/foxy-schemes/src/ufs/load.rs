//! Opening a ufs that recovers from a clean stop only (R69): the snapshot is believed when it is of
//! this generation. The generation is raised durably before anything is served, so that no snapshot
//! is believed twice.

use super::scan::PUT_BITS;
use super::shelf::disk_bytes;
use super::snapshot::{self, ListedFile};
use super::{LEDGER, SNAPSHOT, SNAPSHOT_NAME, Ufs, UfsJob, UfsPhase};
use foxy_device::{IoBuffer, IoDone, IoError, IoOp, IoOutput, StorePath};
use foxy_store::beginning::{AnewReason, Beginning};
use foxy_store::contract::Outbox;
use foxy_store::layout::PAGE;
use foxy_store::settings::{RECORD_BODY_LIMIT, RECORD_HEAD_LIMIT};

/// Bytes of the snapshot read at once.
const READ_AT_ONCE: usize = 1 << 20;

/// What is awaited.
#[derive(Debug)]
pub(super) enum LedgerLoading {
    Opened,
    /// More of an image that has `size` bytes in all.
    Read {
        size: usize,
        image: Vec<u8>,
    },
    Closed,
    /// A step of making the new superblock durable, one copy after the other: write, sync, write,
    /// sync.
    Claimed(usize),
}

/// A step, and how often opening was begun.
#[derive(Debug)]
pub(super) struct LoadStep {
    loading: LedgerLoading,
    tries: u8,
}

impl Ufs {
    fn load(&mut self, tries: u8, loading: LedgerLoading, op: IoOp, out: &mut Outbox) {
        self.submit(op, UfsJob::Load(LoadStep { loading, tries }), out);
    }

    pub(super) fn begin_loading(&mut self, tries: u8, out: &mut Outbox) {
        let path = StorePath::new(SNAPSHOT_NAME);
        self.load(tries, LedgerLoading::Opened, IoOp::Open { file: SNAPSHOT, path }, out);
    }

    pub(super) fn loading(&mut self, step: LoadStep, done: IoDone, out: &mut Outbox) {
        if !matches!(self.phase, UfsPhase::Opening) {
            return;
        }
        let tries = step.tries;
        match (step.loading, done.result) {
            (LedgerLoading::Opened, Ok(IoOutput::Opened { size })) => {
                let size = usize::try_from(
                    size.min(snapshot::bytes_for(self.settings.store.record_limit) + 1),
                );
                self.read_more(tries, size.unwrap_or(0), Vec::new(), out);
            }
            (LedgerLoading::Opened, Err(_)) => {
                self.observer.begins(Beginning::Anew(AnewReason::IndexLost));
                self.begin_anew(tries, out);
            }
            (LedgerLoading::Read { size, mut image }, result) => match (result, done.buffer) {
                (Ok(IoOutput::Moved { count }), Some(buffer)) if count == buffer.len() => {
                    image.extend_from_slice(buffer.as_ref());
                    self.read_more(tries, size, image, out);
                }
                _ => self.read_more(tries, 0, Vec::new(), out),
            },
            (LedgerLoading::Closed, _) if self.shelf.numbers() == 0 => self.begin_anew(tries, out),
            (LedgerLoading::Closed, _) => self.claim(tries, out),
            (LedgerLoading::Claimed(at), Ok(IoOutput::Moved { count: PAGE } | IoOutput::Done)) => {
                self.claim_next(tries, at + 1, out);
            }
            (_, result) => self.open_again(tries, result.err().unwrap_or(IoError::Device), out),
        }
    }

    fn read_more(&mut self, tries: u8, size: usize, image: Vec<u8>, out: &mut Outbox) {
        if image.len() < size {
            let (offset, length) = (image.len() as u64, (size - image.len()).min(READ_AT_ONCE));
            let op = IoOp::Read { file: SNAPSHOT, offset, buffer: IoBuffer::zeroed(length) };
            return self.load(tries, LedgerLoading::Read { size, image }, op, out);
        }
        let listed = snapshot::decode(&image, self.superblock.generation, &self.secret);
        let lost = Beginning::Anew(AnewReason::IndexLost);
        self.observer.begins(if listed.is_some() { Beginning::Kept } else { lost });
        self.adopt(listed.unwrap_or_default());
        self.load(tries, LedgerLoading::Closed, IoOp::Close { file: SNAPSHOT }, out);
    }

    /// Puts what the snapshot lists on the shelf, as far as it makes sense.
    fn adopt(&mut self, listed: Vec<ListedFile>) {
        for record in listed {
            let fits = record.content as usize <= RECORD_BODY_LIMIT + RECORD_HEAD_LIMIT
                && self.shelf.used() + disk_bytes(record.content as usize) <= self.capacity()
                && record.number < self.settings.store.record_limit
                && self.shelf.is_free(record.number)
                && self.shelf.find(record.key).is_none();
            if fits {
                let ListedFile { key, sequence, place, number, content } = record;
                self.shelf.occupy(number, key, sequence, content, place);
                self.shelf.enliven(number);
            }
        }
        let statistics = &self.observer.statistics;
        statistics.recovered.set(self.shelf.records() as u64);
        statistics.recovered_from_checkpoint.set(self.shelf.records() as u64);
    }

    /// The store begins empty.
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
        self.load(tries, LedgerLoading::Claimed(step), op, out);
    }
}
