//! Opens a ufs store. Reads the superblock of the ledger's file, or creates the file in a folder
//! without a store. A store with a ledger (list of valid record files) reads the ledger, then scans
//! the files of records. A store without a ledger reads the snapshot of the last clean stop. It
//! makes this snapshot durably invalid before it serves. Opening never writes to a file or folder
//! of another program.
//!
//! If the last process was killed before a sync, the ledger may be readable only from the system's
//! cache. So the opening first writes each block again to the page from which it was read, and
//! syncs. Only then may a commit overwrite the other page of a block.
//!
//! The setting "recovery" may have changed since the last run. Then the store starts empty with a
//! new secret, and its old files count as files of another program.

use super::ledger::{BLOCK_BYTES, BLOCKS_AT};
use super::{LEDGER, LEDGER_NAME, MAX_ATTEMPTS, SNAPSHOT_NAME, Ufs, UfsJob, UfsPhase, mapping};
use foxy_base::Random;
use foxy_device::{IoBuffer, IoDone, IoError, IoOp, IoOutput, StorePath};
use foxy_store::beginning::{AnewReason, Beginning};
use foxy_store::contract::Outbox;
use foxy_store::layout::PAGE;
use foxy_store::settings::Recovery;
use foxy_store::status::OpenStoreError;
use foxy_store::superblock::{Found, Superblock};

const MAX_LEDGER_READ: usize = 128 * BLOCK_BYTES;

/// The operation whose result the opening waits for, and the number of attempts to open.
#[derive(Clone, Copy, Debug)]
pub(super) struct UfsOpenStep {
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
    /// Writes the superblock a second time, or the block before number `block` of the ledger (the
    /// list of valid record files).
    Again {
        block: u32,
        length: usize,
    },
    Folder,
    SnapshotRemoved,
    Created,
    /// Makes the newly created file durable. Otherwise a crash could remove the file after records
    /// were written.
    Kept,
    Written,
    Synced,
    Closed,
}

impl Ufs {
    pub(super) fn begin_opening(&mut self, tries: u8, out: &mut Outbox) {
        self.index = super::FileIndex::new(&self.settings);
        let step = UfsOpenStep { awaited: Awaited::Opened, tries };
        let op = IoOp::Open { file: LEDGER, path: StorePath::new(LEDGER_NAME) };
        self.submit(op, UfsJob::Open(step), out);
    }

    pub(super) fn opening(&mut self, step: UfsOpenStep, done: IoDone, out: &mut Outbox) {
        if !matches!(self.phase, UfsPhase::Opening) {
            return;
        }
        match (step.awaited, done.result) {
            (Awaited::Closed, _) => self.begin_opening(step.tries, out),
            (Awaited::Opened, Ok(IoOutput::Opened { size })) => {
                self.go(step, Awaited::Superblock { size }, read_ledger(0, 2 * PAGE), out);
            }
            (Awaited::Opened, Err(IoError::WrongKind)) => {
                self.fail_for_good(OpenStoreError::NotAFile)
            }
            (Awaited::Opened, Err(IoError::NotFound)) => {
                self.go(step, Awaited::Folder, IoOp::List { path: StorePath::root() }, out);
            }
            (Awaited::Superblock { size }, Ok(IoOutput::Moved { count })) => {
                self.superblock_read(step, size, count, done.buffer, out);
            }
            (Awaited::Blocks { size, offset }, Ok(IoOutput::Moved { count })) => {
                self.blocks_read(step, size, offset, count, done.buffer, out);
            }
            (Awaited::Folder, Ok(IoOutput::Listing(entries))) => {
                let store = |name: &str| mapping::top_entry(name).is_some();
                if entries.iter().any(|entry| entry.is_directory && store(&entry.name)) {
                    return self.fail_for_good(OpenStoreError::ForeignFolders);
                }
                self.create_ledger(step, Beginning::New, out);
            }
            (Awaited::SnapshotRemoved, Ok(_) | Err(IoError::NotFound)) => {
                self.create_ledger(step, Beginning::Anew(AnewReason::OtherRecovery), out);
            }
            (Awaited::Created, Ok(_)) => {
                self.go(step, Awaited::Kept, IoOp::Sync { file: LEDGER }, out);
            }
            (Awaited::Kept, Ok(_)) => match self.settings.store.recovery {
                Recovery::AfterCrash => self.write_superblock(step, out),
                Recovery::AfterCleanStop => self.begin_anew(step.tries, out),
            },
            (Awaited::Written, Ok(IoOutput::Moved { count })) if count == 2 * PAGE => {
                self.go(step, Awaited::Synced, IoOp::Sync { file: LEDGER }, out);
            }
            (Awaited::Again { block, length }, Ok(IoOutput::Moved { count }))
                if count == length =>
            {
                self.write_again(step, block, out);
            }
            (Awaited::Synced, Ok(_)) => {
                self.phase = UfsPhase::Scanning;
                self.begin_scan(out);
            }
            (_, Err(error)) => self.open_again(step.tries, error, out),
            (_, Ok(_)) => self.open_again(step.tries, IoError::Device, out),
        }
    }

    fn go(&mut self, step: UfsOpenStep, awaited: Awaited, op: IoOp, out: &mut Outbox) {
        self.submit(op, UfsJob::Open(UfsOpenStep { awaited, ..step }), out);
    }

    /// Starts the opening again after a failed operation. After [`MAX_ATTEMPTS`] attempts, marks
    /// the store as unusable.
    pub(super) fn open_again(&mut self, tries: u8, error: IoError, out: &mut Outbox) {
        if tries >= MAX_ATTEMPTS {
            return self.fail_for_good(OpenStoreError::Device(error));
        }
        let again = UfsOpenStep { awaited: Awaited::Closed, tries: tries + 1 };
        self.submit(IoOp::Close { file: LEDGER }, UfsJob::Open(again), out);
    }

    fn superblock_read(
        &mut self,
        step: UfsOpenStep,
        size: u64,
        count: usize,
        buffer: Option<IoBuffer>,
        out: &mut Outbox,
    ) {
        let expected = usize::try_from(size).map_or(2 * PAGE, |size| size.min(2 * PAGE));
        let Some(buffer) = buffer.filter(|_| count == expected) else {
            return self.open_again(step.tries, IoError::Device, out);
        };
        let bytes = &buffer.as_ref()[..count];
        let (first, second) = bytes.split_at(count.min(PAGE));
        match Superblock::judge(first, second) {
            _ if size == 0 => self.create_ledger(step, Beginning::New, out),
            Ok(Found::Ours(superblock)) => {
                self.superblock = superblock;
                self.secret = superblock.secret();
                self.ledger = super::Ledger::default();
                self.go_on_with(step, size, out);
            }
            Ok(Found::Blank) if size > BLOCKS_AT => self.fail_for_good(OpenStoreError::Foreign),
            Ok(Found::Blank) => {
                self.create_ledger(step, Beginning::of_blank(&self.settings.store), out)
            }
            Ok(Found::Damaged) => {
                self.create_ledger(step, Beginning::Anew(AnewReason::SuperblocksDamaged), out);
            }
            Err(error) => self.fail_for_good(error),
        }
    }

    fn read_blocks(&mut self, step: UfsOpenStep, size: u64, offset: u64, out: &mut Outbox) {
        if offset >= size {
            let buffer = self.superblock();
            let awaited = Awaited::Again { block: 0, length: buffer.len() };
            let op = IoOp::Write { file: LEDGER, offset: 0, buffer };
            return self.go(step, awaited, op, out);
        }
        let length = usize::try_from(size - offset)
            .map_or(MAX_LEDGER_READ, |rest| rest.min(MAX_LEDGER_READ));
        self.go(step, Awaited::Blocks { size, offset }, read_ledger(offset, length), out);
    }

    fn blocks_read(
        &mut self,
        step: UfsOpenStep,
        size: u64,
        offset: u64,
        count: usize,
        buffer: Option<IoBuffer>,
        out: &mut Outbox,
    ) {
        let Some(buffer) = buffer.filter(|buffer| buffer.len() == count) else {
            return self.open_again(step.tries, IoError::Device, out);
        };
        self.ledger.load(buffer.as_ref(), &self.secret);
        self.read_blocks(step, size, offset + count as u64, out);
    }

    fn create_ledger(&mut self, step: UfsOpenStep, beginning: Beginning, out: &mut Outbox) {
        self.observer.begins(beginning);
        let path = StorePath::new(LEDGER_NAME);
        let op = IoOp::Create { file: LEDGER, path, size: BLOCKS_AT };
        self.go(step, Awaited::Created, op, out);
    }

    /// Writes the next block of the ledger (the list of valid record files) again to its place.
    /// After the last block, syncs the ledger.
    fn write_again(&mut self, step: UfsOpenStep, block: u32, out: &mut Outbox) {
        let Some((block, offset, buffer)) = self.ledger.page_again(block, &self.secret) else {
            return self.go(step, Awaited::Synced, IoOp::Sync { file: LEDGER }, out);
        };
        let awaited = Awaited::Again { block: block + 1, length: buffer.len() };
        self.go(step, awaited, IoOp::Write { file: LEDGER, offset, buffer }, out);
    }

    /// If the last run had the same recovery setting, continues with its ledger (list of valid
    /// record files) or its snapshot (copy of the index).
    fn go_on_with(&mut self, step: UfsOpenStep, size: u64, out: &mut Outbox) {
        match (self.settings.store.recovery, self.superblock.opens) {
            (Recovery::AfterCrash, 0) => {
                self.observer.begins(Beginning::Kept);
                self.read_blocks(step, size, BLOCKS_AT, out);
            }
            (Recovery::AfterCrash, _) => {
                let path = StorePath::new(SNAPSHOT_NAME);
                self.go(step, Awaited::SnapshotRemoved, IoOp::Remove { path }, out);
            }
            (Recovery::AfterCleanStop, 0) => {
                self.create_ledger(step, Beginning::Anew(AnewReason::OtherRecovery), out);
            }
            (Recovery::AfterCleanStop, _) => self.begin_loading(step.tries, out),
        }
    }

    /// Creates a new secret for checksums, so that no existing file in the folder counts as a
    /// record of this store.
    pub(super) fn renew(&mut self) {
        let old = self.superblock;
        let mut random = Random::new(
            self.settings.store.seed ^ old.salt.rotate_left(17) ^ old.generation.wrapping_add(1),
        );
        let salt = random.next_u64();
        let generation = old.generation + 1;
        let (requested, opens) = (self.settings.store.size, 0);
        self.superblock =
            Superblock { salt, generation, opens, requested, ..Superblock::default() };
        self.secret = self.superblock.secret();
    }

    fn write_superblock(&mut self, step: UfsOpenStep, out: &mut Outbox) {
        self.ledger = super::Ledger::default();
        self.renew();
        let op = IoOp::Write { file: LEDGER, offset: 0, buffer: self.superblock() };
        self.go(step, Awaited::Written, op, out);
    }

    /// Returns both copies of the superblock as bytes. A store with a ledger (a list of valid
    /// record files) never changes its superblock.
    fn superblock(&self) -> IoBuffer {
        let mut buffer = IoBuffer::zeroed(2 * PAGE);
        for page in buffer.as_mut().chunks_exact_mut(PAGE) {
            page.copy_from_slice(&self.superblock.encode());
        }
        buffer
    }
}

fn read_ledger(offset: u64, length: usize) -> IoOp {
    IoOp::Read { file: LEDGER, offset, buffer: IoBuffer::zeroed(length) }
}
