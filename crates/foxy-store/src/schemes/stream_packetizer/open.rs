//! Opening: the file, its superblocks, the forget journal, the newest checkpoint, and making this opening durable.

use super::StreamPacketizer;
use super::io::Pending;
use super::load::Loading;
use super::script::{After, LaneName, Step};
use super::state::Phase;
use crate::contract::Outbox;
use crate::index::Index;
use crate::journal::{self, BlockStamp, Forget};
use crate::layout::{Layout, PAGE};
use crate::pages::Pages;
use crate::settings::{MINIMUM_SIZE, SizeWish};
use crate::status::OpenStoreError;
use crate::superblock::{Found, Superblock};
use foxy_base::{Instant, Random};
use foxy_device::{FileId, IoBuffer, IoError, IoOp, IoOutput};

/// Reads of the journal before what it says counts as lost.
const JOURNAL_TRIES: u32 = 3;

impl StreamPacketizer {
    pub(super) fn open(&mut self, out: &mut Outbox) {
        self.enter(Phase::Opening);
        let op = IoOp::Open { file: self.file, path: Self::path() };
        self.submit(op, Pending::Open, out);
    }

    pub(super) fn opened(&mut self, result: Result<IoOutput, IoError>, out: &mut Outbox) {
        match result {
            Ok(IoOutput::Opened { size: 0 }) => self.create(self.settings.size, out),
            Ok(IoOutput::Opened { size }) => {
                self.file_size = size;
                self.submit(IoOp::Sync { file: self.file }, Pending::FirstSync, out);
            }
            Ok(_) => self.fail(OpenStoreError::Device(IoError::Device), out),
            Err(IoError::NotFound) => {
                self.file = FileId(self.file.0 + 1);
                self.enter(Phase::Creating);
                self.submit_create(self.settings.size, out);
            }
            Err(error) => self.fail(OpenStoreError::opening(error), out),
        }
    }

    /// What a killed process wrote may be readable and yet be lost when the power fails, unless it is synced first.
    pub(super) fn first_synced(&mut self, result: Result<(), IoError>, out: &mut Outbox) {
        match result {
            Ok(()) => {
                self.enter(Phase::ReadingSuperblock);
                self.submit_read(0, 2 * PAGE, Pending::Superblocks, out);
            }
            Err(error) => self.fail(OpenStoreError::Device(error), out),
        }
    }

    /// Begins the file anew; what it held is given up.
    pub(super) fn create(&mut self, size: u64, out: &mut Outbox) {
        self.enter(Phase::Creating);
        self.submit(IoOp::Close { file: self.file }, Pending::CloseFile, out);
        self.file = FileId(self.file.0 + 1);
        self.submit_create(size, out);
    }

    fn submit_create(&mut self, size: u64, out: &mut Outbox) {
        let size = size / PAGE as u64 * PAGE as u64;
        let op = IoOp::Create { file: self.file, path: Self::path(), size };
        self.submit(op, Pending::Create(size), out);
    }

    /// A disk without room for the whole store may have room for a smaller one, where that is welcome.
    pub(super) fn created(&mut self, size: u64, result: Result<IoOutput, IoError>, out: &mut Outbox) {
        match result {
            Ok(_) => {
                self.file_size = size;
                self.format(size, out);
            }
            Err(IoError::NoSpace)
                if self.settings.size_wish == SizeWish::AtMost && size / 2 >= MINIMUM_SIZE =>
            {
                self.file = FileId(self.file.0 + 1);
                self.enter(Phase::Creating);
                self.submit_create(size / 2, out);
            }
            Err(IoError::NoSpace) => self.fail(OpenStoreError::NoSpace, out),
            Err(error) => self.fail(OpenStoreError::Device(error), out),
        }
    }

    /// Begins an empty store in the file there is: a new secret makes all old records unreadable. Nothing is written
    /// before the file is durably there, so that one of foxy's is empty, whole and blank, or stamped.
    fn format(&mut self, size: u64, out: &mut Outbox) {
        self.enter(Phase::Formatting);
        let old = self.superblock;
        let generation = old.generation + 1;
        let mut random = Random::new(self.settings.seed ^ old.salt.rotate_left(17) ^ generation);
        let superblock = Superblock {
            salt: random.next_u64(),
            generation,
            opens: old.opens + 1,
            requested: self.settings.size,
            size,
            journal_half: 0,
            journal_generation: generation,
            durable: 0,
        };
        let steps = [Step::Sync].into_iter().chain(Self::superblock_steps(&superblock)).collect();
        self.run(LaneName::Journal, steps, After::Formatted(superblock), out);
    }

    pub(super) fn formatted(&mut self, superblock: Superblock, result: Result<(), IoError>, now: Instant) {
        if let Err(error) = result {
            return self.give_up(OpenStoreError::Device(error));
        }
        self.adopt_superblock(superblock);
        self.forgetting.begin(self.layout.journal[0], 0);
        self.begin_serving(now);
    }

    fn adopt_superblock(&mut self, superblock: Superblock) {
        self.superblock = superblock;
        self.secret = superblock.secret();
        self.observer.statistics.size_bytes.set(superblock.size);
        self.layout = Layout::of(superblock.size);
        self.index = Index::new(superblock.salt, self.settings.make_policy());
        self.pages = Pages::new(self.layout.data.pages);
        self.sequence = superblock.opens << 40;
        self.durable = superblock.durable;
    }

    pub(super) fn superblocks_read(&mut self, result: Result<IoBuffer, IoError>, out: &mut Outbox) {
        let buffer = match result {
            Ok(buffer) => buffer,
            Err(error) => return self.fail(OpenStoreError::Device(error), out),
        };
        let bytes = buffer.as_ref();
        if (bytes.len() as u64) < self.file_size.min(2 * PAGE as u64) {
            return self.fail(OpenStoreError::Device(IoError::Device), out);
        }
        let (first, second) = bytes.split_at(bytes.len().min(PAGE));
        match Superblock::judge(first, second) {
            Err(error) => self.fail(error, out),
            Ok(Found::Blank) => self.read_blank(2 * PAGE as u64, out),
            Ok(Found::Damaged) => self.create(self.settings.size, out),
            Ok(Found::Ours(superblock)) => self.found_ours(superblock, out),
        }
    }

    fn found_ours(&mut self, superblock: Superblock, out: &mut Outbox) {
        let layout = Layout::of(superblock.size);
        let pages = u32::try_from(self.file_size / PAGE as u64).unwrap_or(u32::MAX);
        let there = pages.saturating_sub(layout.data.first).min(layout.data.pages);
        if there == 0 {
            let (found, expected) = (self.file_size, superblock.size);
            return self.fail(OpenStoreError::Truncated { found, expected }, out);
        }
        if superblock.requested != self.settings.size {
            self.superblock = superblock;
            return self.create(self.settings.size, out);
        }
        self.adopt_superblock(superblock);
        self.pages.retire((there, self.pages.count()));
        self.scan.begin(there);
        self.enter(Phase::ReadingJournal);
        self.read_journal(out);
    }

    fn read_journal(&mut self, out: &mut Outbox) {
        self.loading.journal_tries += 1;
        let half = self.layout.journal[self.superblock.journal_half as usize];
        self.submit_read(half.offset(), half.bytes(), Pending::Journal, out);
    }

    /// A journal that cannot be read may have forgotten anything, so everything is.
    pub(super) fn journal_read(&mut self, result: Result<IoBuffer, IoError>, out: &mut Outbox) {
        let half = self.layout.journal[self.superblock.journal_half as usize];
        let content = result.ok().filter(|buffer| buffer.len() == half.bytes()).and_then(|buffer| {
            journal::decode(buffer.as_ref(), self.superblock.journal_generation, &self.secret).ok()
        });
        match content {
            Some(content) => {
                self.forgetting.load(content.facts);
                self.durable = self.durable.max(content.durable);
                self.enter(Phase::ReadingCheckpoint);
                self.read_checkpoint_heads(out);
            }
            None if self.loading.journal_tries < JOURNAL_TRIES => self.read_journal(out),
            None => self.format(self.superblock.size, out),
        }
    }

    /// Moves the journal to its other half and makes this opening durable, before anything else is written. First comes
    /// the superblock as it was read: it may not be durable, and the half that it does not name is overwritten next.
    pub(super) fn switch(&mut self, out: &mut Outbox) {
        self.enter(Phase::Switching);
        let (superblock, facts) = self.next_half();
        let mut steps = Vec::from(Self::superblock_steps(&self.superblock));
        steps.extend(self.compaction_steps(&superblock, &facts));
        let superblock = Superblock { opens: superblock.opens + 1, ..superblock };
        steps.extend(Self::superblock_steps(&superblock));
        self.run(LaneName::Journal, steps, After::Switched(superblock), out);
    }

    /// The superblock after the journal's next move, and the facts that must move along.
    pub(super) fn next_half(&self) -> (Superblock, Vec<Forget>) {
        let generation = self.superblock.generation + 1;
        let superblock = Superblock {
            generation,
            journal_half: 1 - self.superblock.journal_half,
            journal_generation: generation,
            durable: self.durable,
            ..self.superblock
        };
        (superblock, self.forgetting.facts())
    }

    /// Steps that write the facts to the half that will count.
    pub(super) fn compaction_steps(&self, superblock: &Superblock, facts: &[Forget]) -> Vec<Step> {
        if facts.is_empty() {
            return Vec::new();
        }
        let half = self.layout.journal[superblock.journal_half as usize];
        let stamp = BlockStamp { generation: superblock.journal_generation, durable: superblock.durable };
        let blocks = journal::encode(facts, 0, stamp, &self.secret);
        vec![Step::Write(half.offset(), blocks), Step::Sync]
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
        self.superblock = superblock;
        self.sequence = superblock.opens << 40;
        let half = self.layout.journal[superblock.journal_half as usize];
        self.forgetting.begin(half, journal::blocks_for(self.forgetting.count()));
        if self.loading.complete {
            self.recovered(now);
        } else {
            self.enter(Phase::Scanning);
            self.continue_scan(now, out);
        }
    }

    /// The index is known; facts without a record to forget are let go.
    pub(super) fn recovered(&mut self, now: Instant) {
        self.observer.statistics.recovered.add(u64::from(self.index.live()));
        self.loading = Loading::default();
        self.begin_serving(now);
        self.release_facts();
    }

    fn begin_serving(&mut self, now: Instant) {
        self.enter(Phase::Serving);
        self.next_checkpoint = now + self.settings.checkpoint_interval;
    }
}
