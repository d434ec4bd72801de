//! Opening ufs: the ledger's superblock and blocks are read, or a new ledger is made in a folder that holds nothing
//! like a store. A ledger or folder that is not ours is never written to.
//!
//! What was read may lie in the system's cache only, left there by a process that was killed before its sync. It is
//! written again to the same place and synced before anything else is: only then may the other page be overwritten.

use super::ledger::{BLOCK_BYTES, BLOCKS_AT};
use super::mapping::{FIRST_LEVEL, directory_of};
use super::{Job, LEDGER, LEDGER_NAME, Phase, TRIES, Ufs, scan};
use crate::contract::Outbox;
use crate::layout::PAGE;
use crate::record::Secret;
use crate::status::OpenStoreError;
use crate::superblock::{Found, Superblock};
use foxy_device::{IoBuffer, IoDone, IoError, IoOp, IoOutput, StorePath};

/// Bytes of the ledger read at once.
const CHUNK: usize = 128 * BLOCK_BYTES;

/// What is awaited while the store opens, and which try it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    awaited: Awaited,
    tries: u8,
}

#[derive(Clone, Copy, Debug)]
enum Awaited {
    Opened,
    Superblock {
        size: u64,
    },
    Blocks {
        size: u64,
        offset: u64,
    },
    /// The superblock or the block before this one is written again.
    Again {
        block: u32,
        length: usize,
    },
    Folder,
    Created,
    Written,
    Synced,
    Closed,
}

impl Step {
    const fn next(self, awaited: Awaited) -> Self {
        Self { awaited, tries: self.tries }
    }
}

impl Ufs {
    pub(super) fn begin_opening(&mut self, tries: u8, out: &mut Outbox) {
        let step = Step { awaited: Awaited::Opened, tries };
        self.submit(IoOp::Open { file: LEDGER, path: StorePath::new(LEDGER_NAME) }, Job::Open(step), out);
    }

    pub(super) fn opening(&mut self, step: Step, done: IoDone, out: &mut Outbox) {
        if !matches!(self.phase, Phase::Opening) {
            return;
        }
        match (step.awaited, done.result) {
            (Awaited::Closed, _) => self.begin_opening(step.tries, out),
            (Awaited::Opened, Ok(IoOutput::Opened { size })) => {
                let buffer = IoBuffer::zeroed(2 * PAGE);
                self.read_ledger(0, buffer, step.next(Awaited::Superblock { size }), out);
            }
            (Awaited::Opened, Err(IoError::NotFound)) => {
                let path = StorePath::root();
                self.submit(IoOp::List { path }, Job::Open(step.next(Awaited::Folder)), out);
            }
            (Awaited::Superblock { size }, Ok(IoOutput::Moved { count })) => {
                self.superblock_read(step, size, count, done.buffer, out);
            }
            (Awaited::Blocks { size, offset }, Ok(IoOutput::Moved { count })) => {
                self.blocks_read(step, size, offset, count, done.buffer, out);
            }
            (Awaited::Folder, Ok(IoOutput::Listing(entries))) => {
                let store = |name: &str| directory_of(name, FIRST_LEVEL).is_some();
                if entries.iter().any(|entry| entry.is_directory && store(&entry.name)) {
                    return self.fail_for_good(OpenStoreError::Foreign);
                }
                self.create_ledger(step, out);
            }
            (Awaited::Created, Ok(_)) => self.write_superblock(step, out),
            (Awaited::Written, Ok(IoOutput::Moved { count })) if count == 2 * PAGE => {
                self.submit(IoOp::Sync { file: LEDGER }, Job::Open(step.next(Awaited::Synced)), out);
            }
            (Awaited::Again { block, length }, Ok(IoOutput::Moved { count })) if count == length => {
                self.write_again(step, block, out);
            }
            (Awaited::Synced, Ok(_)) => self.begin_scan(out),
            (_, Err(error)) => self.try_again(step, error, out),
            (_, Ok(_)) => self.try_again(step, IoError::Device, out),
        }
    }

    fn read_ledger(&mut self, offset: u64, buffer: IoBuffer, step: Step, out: &mut Outbox) {
        self.submit(IoOp::Read { file: LEDGER, offset, buffer }, Job::Open(step), out);
    }

    fn try_again(&mut self, step: Step, error: IoError, out: &mut Outbox) {
        if step.tries >= TRIES {
            return self.fail_for_good(OpenStoreError::Device(error));
        }
        let again = Step { awaited: Awaited::Closed, tries: step.tries + 1 };
        self.submit(IoOp::Close { file: LEDGER }, Job::Open(again), out);
    }

    fn superblock_read(
        &mut self,
        step: Step,
        size: u64,
        count: usize,
        buffer: Option<IoBuffer>,
        out: &mut Outbox,
    ) {
        let expected = usize::try_from(size).map_or(2 * PAGE, |size| size.min(2 * PAGE));
        let Some(buffer) = buffer.filter(|_| count == expected) else {
            return self.try_again(step, IoError::Device, out);
        };
        let (first, second) = buffer.as_ref().split_at(PAGE);
        match Superblock::judge(first, second) {
            Ok(Found::Ours(superblock)) => {
                self.secret = superblock.secret();
                self.ledger = super::Ledger::default();
                self.read_blocks(step, size, BLOCKS_AT, out);
            }
            Ok(Found::Blank | Found::Damaged) => self.create_ledger(step, out),
            Err(error) => self.fail_for_good(error),
        }
    }

    fn read_blocks(&mut self, step: Step, size: u64, offset: u64, out: &mut Outbox) {
        if offset >= size {
            let buffer = self.superblock();
            let awaited = Awaited::Again { block: 0, length: buffer.len() };
            let op = IoOp::Write { file: LEDGER, offset: 0, buffer };
            return self.submit(op, Job::Open(step.next(awaited)), out);
        }
        let length = usize::try_from(size - offset).map_or(CHUNK, |rest| rest.min(CHUNK));
        self.read_ledger(offset, IoBuffer::zeroed(length), step.next(Awaited::Blocks { size, offset }), out);
    }

    fn blocks_read(
        &mut self,
        step: Step,
        size: u64,
        offset: u64,
        count: usize,
        buffer: Option<IoBuffer>,
        out: &mut Outbox,
    ) {
        let Some(buffer) = buffer.filter(|buffer| buffer.len() == count) else {
            return self.try_again(step, IoError::Device, out);
        };
        self.ledger.load(buffer.as_ref(), &self.secret);
        self.read_blocks(step, size, offset + count as u64, out);
    }

    fn create_ledger(&mut self, step: Step, out: &mut Outbox) {
        let path = StorePath::new(LEDGER_NAME);
        let step = step.next(Awaited::Created);
        self.submit(IoOp::Create { file: LEDGER, path, size: 0 }, Job::Open(step), out);
    }

    /// Writes the next block that was read again, or syncs when there is none.
    fn write_again(&mut self, step: Step, block: u32, out: &mut Outbox) {
        let Some((block, offset, buffer)) = self.ledger.page_again(block, &self.secret) else {
            return self.submit(IoOp::Sync { file: LEDGER }, Job::Open(step.next(Awaited::Synced)), out);
        };
        let awaited = Awaited::Again { block: block + 1, length: buffer.len() };
        self.submit(IoOp::Write { file: LEDGER, offset, buffer }, Job::Open(step.next(awaited)), out);
    }

    fn write_superblock(&mut self, step: Step, out: &mut Outbox) {
        self.ledger = super::Ledger::default();
        self.secret = Secret::new(self.settings.seed);
        let op = IoOp::Write { file: LEDGER, offset: 0, buffer: self.superblock() };
        self.submit(op, Job::Open(step.next(Awaited::Written)), out);
    }

    /// Both copies of the superblock; they depend on nothing but the secret.
    fn superblock(&self) -> IoBuffer {
        let superblock = Superblock {
            salt: self.secret.salt(),
            generation: 1,
            opens: 0,
            requested: 0,
            size: 0,
            journal_half: 0,
            journal_generation: 0,
            durable: 0,
        };
        let mut buffer = IoBuffer::zeroed(2 * PAGE);
        for page in buffer.as_mut().chunks_exact_mut(PAGE) {
            page.copy_from_slice(&superblock.encode());
        }
        buffer
    }

    fn begin_scan(&mut self, out: &mut Outbox) {
        self.phase = Phase::Scanning(scan::Scan::new());
        self.scan_more(out);
    }
}
