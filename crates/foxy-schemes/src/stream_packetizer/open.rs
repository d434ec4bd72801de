//! Opens a store. Reads the superblocks, the forget journal (which lists removed records) and the
//! newest checkpoint (a copy of the index). Then makes this opening durable.

use super::StreamPacketizer;
use super::load::Loading;
use super::pending::{LaneName, Pending};
use super::phase::Phase;
use super::sequences::After;
use crate::index::Index;
use crate::pages::{Pages, Run};
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};
use foxy_store::beginning::{AnewReason, Beginning};
use foxy_store::contract::Outbox;
use foxy_store::layout::{Layout, MAX_STORE_BYTES, PAGE};
use foxy_store::one_file::io_sequence::{IoStep, superblock_steps};
use foxy_store::one_file::journal::{self, BlockStamp, Forget};
use foxy_store::one_file::store_file::Opened;
use foxy_store::one_file::superblock::Superblock;
use foxy_store::settings::MINIMUM_SIZE;
use foxy_store::status::OpenStoreError;

/// Returns the number of record pages in a file of `file` bytes. The opening and the check of a
/// store use this number.
///
/// # Errors
/// Returns an error if the file has no space for records, or the superblock names an impossible
/// size.
pub fn judge_size(superblock: &Superblock, file: u64) -> Result<u32, OpenStoreError> {
    if !(MINIMUM_SIZE..=MAX_STORE_BYTES).contains(&superblock.size) {
        return Err(OpenStoreError::ImpossibleSize(superblock.size));
    }
    let layout = Layout::of(superblock.size);
    let pages = u32::try_from(file / PAGE as u64).unwrap_or(u32::MAX);
    match pages.saturating_sub(layout.data.first).min(layout.data.pages) {
        0 => Err(OpenStoreError::Truncated { found: file, expected: superblock.size }),
        there => Ok(there),
    }
}

impl StreamPacketizer {
    pub(super) fn opened(&mut self, opened: Opened, out: &mut Outbox) {
        match opened {
            Opened::Created(size) => self.format(size, out),
            Opened::Found(superblock) => self.found_ours(superblock, out),
            Opened::Failed(error) => self.fail(error, out),
        }
    }

    /// Creates an empty store in the existing file. A new secret for checksums makes all old
    /// records invalid. The file is synced before the superblock is written. So after a crash, a
    /// file of foxy is empty, blank or has a superblock. The journal's first block is written at
    /// once, because a journal without a block counts as lost.
    fn format(&mut self, size: u64, out: &mut Outbox) {
        self.lifecycle.enter(Phase::Formatting);
        let superblock = Superblock::fresh(
            self.file.superblock(),
            self.settings.store.seed,
            self.settings.store.size,
            size,
        );
        let half = Layout::of(superblock.size).journal[superblock.journal_half as usize];
        let stamp = BlockStamp { generation: superblock.journal_generation, durable: 0 };
        let block = journal::encode(&[], 0, stamp, &superblock.secret());
        let steps = [IoStep::Sync]
            .into_iter()
            .chain(superblock_steps(&superblock))
            .chain([IoStep::Write(half.offset(), block), IoStep::Sync])
            .collect();
        self.run(LaneName::Journal, steps, After::Formatted(superblock), out);
    }

    pub(super) fn formatted(
        &mut self,
        superblock: Superblock,
        result: Result<(), IoError>,
        now: Instant,
    ) {
        if let Err(error) = result {
            return self.lifecycle.fail(OpenStoreError::Device(error));
        }
        self.adopt_superblock(superblock);
        self.forgetting.begin(self.layout.journal[0], 1);
        self.begin_serving(now);
    }

    fn adopt_superblock(&mut self, superblock: Superblock) {
        self.file.set_superblock(superblock);
        self.observer.statistics.size_bytes.set(superblock.size);
        self.layout = Layout::of(superblock.size);
        self.index = Index::new(superblock.salt, self.settings.make_policy());
        self.pages = Pages::new(self.layout.data.pages);
        self.sequence = superblock.opens << 40;
        self.durable = superblock.durable;
    }

    fn found_ours(&mut self, superblock: Superblock, out: &mut Outbox) {
        let (found, expected) = (self.file.opening().size(), superblock.size);
        let there = match judge_size(&superblock, found) {
            Ok(there) => there,
            Err(error) => return self.fail(error, out),
        };
        if found < expected {
            self.observer.begins(Beginning::Cut { found, expected });
        }
        if superblock.requested != self.settings.store.size {
            self.file.set_superblock(superblock);
            let reason = AnewReason::other_size(&superblock, &self.settings.store);
            if let Some(opened) = self.file.begin_anew(reason, out) {
                self.opened(opened, out);
            }
            return;
        }
        self.adopt_superblock(superblock);
        self.pages.retire(Run { first: there, pages: self.pages.count() - there });
        self.scan.begin(there);
        self.lifecycle.enter(Phase::ReadingJournal);
        self.read_journal(out);
    }

    fn read_journal(&mut self, out: &mut Outbox) {
        self.loading.journal_tries += 1;
        let half = self.layout.journal[self.file.superblock().journal_half as usize];
        self.file.read(half.offset(), half.bytes(), Pending::Journal, out);
    }

    /// Handles the content of the forget journal. If the journal is unreadable, any record on disk
    /// may have been removed. Then the store starts empty.
    pub(super) fn journal_read(&mut self, result: Result<IoBuffer, IoError>, out: &mut Outbox) {
        let half = self.layout.journal[self.file.superblock().journal_half as usize];
        let generation = self.file.superblock().journal_generation;
        match journal::content(result, half.bytes(), generation, self.file.secret()) {
            Some(content) => {
                self.forgetting.load(content.facts);
                self.durable = self.durable.max(content.durable);
                self.lifecycle.enter(Phase::ReadingCheckpoint);
                self.read_checkpoint_heads(out);
            }
            None if self.loading.journal_tries < journal::MAX_READS => self.read_journal(out),
            None => {
                self.observer.begins(Beginning::Anew(AnewReason::JournalLost));
                self.format(self.file.superblock().size, out);
            }
        }
    }

    /// Switches the journal to its other half and makes this opening durable, before any other
    /// write. First writes the superblock of the last run again and syncs it. That superblock may
    /// exist only in the system's cache. Without this sync, a crash could bring back an older
    /// superblock, which names the journal half that the next step overwrites.
    pub(super) fn switch(&mut self, out: &mut Outbox) {
        self.lifecycle.enter(Phase::Switching);
        let (superblock, tombstones) = self.next_half();
        let mut steps = Vec::from(superblock_steps(self.file.superblock()));
        steps.extend(self.compaction_steps(&superblock, &tombstones));
        let superblock = Superblock { opens: superblock.opens + 1, ..superblock };
        steps.extend(superblock_steps(&superblock));
        self.run(LaneName::Journal, steps, After::Switched(superblock), out);
    }

    /// Returns the superblock that names the other journal half, and the tombstones to write to
    /// that half.
    pub(super) fn next_half(&self) -> (Superblock, Vec<Forget>) {
        let superblock = Superblock { durable: self.durable, ..self.file.next_superblock() };
        (superblock, self.forgetting.tombstones())
    }

    /// Returns the steps that write the tombstones to the journal half that the superblock names.
    pub(super) fn compaction_steps(
        &self,
        superblock: &Superblock,
        tombstones: &[Forget],
    ) -> Vec<IoStep> {
        let half = self.layout.journal[superblock.journal_half as usize];
        let stamp =
            BlockStamp { generation: superblock.journal_generation, durable: superblock.durable };
        let blocks = journal::encode(tombstones, 0, stamp, self.file.secret());
        vec![IoStep::Write(half.offset(), blocks), IoStep::Sync]
    }

    pub(super) fn switched(
        &mut self,
        superblock: Superblock,
        result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        if let Err(error) = result {
            return self.fail(OpenStoreError::Device(error), out);
        }
        self.file.set_superblock(superblock);
        self.sequence = superblock.opens << 40;
        let half = self.layout.journal[superblock.journal_half as usize];
        self.forgetting.begin(half, journal::blocks_for(self.forgetting.count()));
        if self.loading.complete {
            self.recovered(now);
        } else {
            self.lifecycle.enter(Phase::Scanning);
            self.continue_scan(now, out);
        }
    }

    /// Starts to serve. Drops tombstones of keys without an invalid record on disk.
    pub(super) fn recovered(&mut self, now: Instant) {
        self.observer.statistics.recovered.add(u64::from(self.index.live()));
        self.loading = Loading::default();
        self.begin_serving(now);
        self.release_tombstones();
    }

    fn begin_serving(&mut self, now: Instant) {
        self.lifecycle.enter(Phase::Serving);
        self.next_checkpoint = now + self.settings.store.checkpoint_interval;
    }
}
