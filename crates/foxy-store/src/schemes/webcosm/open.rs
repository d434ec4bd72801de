//! Opening: the file, its superblocks, the forget journal; and beginning a store anew.

use super::facts::Forgetting;
use super::geometry::{Geometry, LogName};
use super::ghost::Ghost;
use super::index::Index;
use super::io::Pending;
use super::log::Log;
use super::script::{After, Step};
use super::state::Phase;
use super::summary::Fact;
use super::{FILE_NAME, Webcosm};
use crate::contract::Outbox;
use crate::journal::{self, JournalContent};
use crate::layout::PAGE;
use crate::settings::{MINIMUM_SIZE, SizeWish};
use crate::status::OpenStoreError;
use crate::superblock::{Found, Superblock};
use foxy_base::{Instant, Random};
use foxy_device::{FileId, IoBuffer, IoError, IoOp, IoOutput, StorePath};

/// Reads of the journal before what it says counts as lost.
const JOURNAL_TRIES: u32 = 3;

/// Bytes of a blank file read at once.
const BLANK_AT_ONCE: u64 = 1 << 20;

impl Webcosm {
    pub(super) fn open(&mut self, out: &mut Outbox) {
        self.enter(Phase::Opening);
        self.submit(IoOp::Open { file: self.file, path: StorePath::new(FILE_NAME) }, Pending::Open, out);
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
    fn create(&mut self, size: u64, out: &mut Outbox) {
        self.enter(Phase::Creating);
        self.submit(IoOp::Close { file: self.file }, Pending::CloseFile, out);
        self.file = FileId(self.file.0 + 1);
        self.submit_create(size, out);
    }

    fn submit_create(&mut self, size: u64, out: &mut Outbox) {
        let size = size / PAGE as u64 * PAGE as u64;
        let op = IoOp::Create { file: self.file, path: StorePath::new(FILE_NAME), size };
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

    /// Begins an empty store in the file there is: a new secret makes all that was written unreadable. Nothing is written
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
        self.run(steps, After::Formatted(superblock), Instant::ZERO, out);
    }

    pub(super) fn formatted(&mut self, superblock: Superblock, result: Result<(), IoError>) {
        if let Err(error) = result {
            return self.give_up(OpenStoreError::Device(error));
        }
        self.adopt(superblock);
        self.forgetting = Forgetting::default();
        self.forgetting.begin(self.geometry.journal[0], 0);
        self.enter(Phase::Serving);
    }

    fn adopt(&mut self, superblock: Superblock) {
        self.superblock = superblock;
        self.secret = superblock.secret();
        self.observer.statistics.size_bytes.set(superblock.size);
        self.geometry = Geometry::of(superblock.size);
        self.index = Index::new(self.geometry.partition_bits);
        self.slots = vec![super::Written::default(); self.geometry.slots() as usize];
        self.logs = LogName::ALL.map(|log| Log::new(log, self.geometry.segments(log)));
        self.ghost = Ghost::new(&self.geometry);
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
        if self.file_size < superblock.size {
            let (found, expected) = (self.file_size, superblock.size);
            return self.fail(OpenStoreError::Truncated { found, expected }, out);
        }
        if superblock.requested != self.settings.size {
            self.superblock = superblock;
            return self.create(self.settings.size, out);
        }
        self.adopt(superblock);
        self.enter(Phase::ReadingJournal);
        self.read_journal(out);
    }

    fn read_journal(&mut self, out: &mut Outbox) {
        self.finding.journal_tries += 1;
        let half = self.geometry.journal[self.superblock.journal_half as usize];
        self.submit_read(half.offset(), half.bytes(), Pending::Journal, out);
    }

    /// A journal that cannot be read may have forgotten anything, so everything is.
    pub(super) fn journal_read(&mut self, result: Result<IoBuffer, IoError>, out: &mut Outbox) {
        let half = self.geometry.journal[self.superblock.journal_half as usize];
        let content = result.ok().filter(|buffer| buffer.len() == half.bytes()).and_then(|buffer| {
            journal::decode(buffer.as_ref(), self.superblock.journal_generation, &self.secret).ok()
        });
        match content {
            Some(JournalContent { facts, .. }) => {
                facts.iter().map(Fact::of_forget).for_each(|fact| self.adopt_fact(fact));
                self.enter(Phase::FindingHead);
                self.find_head(LogName::Main, out);
            }
            None if self.finding.journal_tries < JOURNAL_TRIES => self.read_journal(out),
            None => self.format(self.superblock.size, out),
        }
    }

    fn adopt_fact(&mut self, fact: Fact) {
        let Some(marks) = fact.marked() else { return self.forgetting.add(fact) };
        for (log, (tail, durable_end)) in self.logs.iter_mut().zip(marks) {
            log.tail = tail.max(log.tail);
            log.next = durable_end.max(log.next).max(log.tail);
        }
    }

    /// A file that begins with zeros is foxy's, begun and never stamped, only if there is nothing else in all of it.
    fn read_blank(&mut self, from: u64, out: &mut Outbox) {
        match self.file_size.saturating_sub(from) {
            0 => self.create(self.settings.size, out),
            left => {
                let length = usize::try_from(left.min(BLANK_AT_ONCE)).expect("at most a mebibyte");
                self.submit_read(from, length, Pending::Blank(from), out);
            }
        }
    }

    pub(super) fn blank_read(&mut self, from: u64, result: Result<IoBuffer, IoError>, out: &mut Outbox) {
        match result {
            Err(error) => self.fail(OpenStoreError::Device(error), out),
            Ok(bytes) if bytes.is_empty() => self.fail(OpenStoreError::Device(IoError::Device), out),
            Ok(bytes) if bytes.as_ref().iter().all(|byte| *byte == 0) => {
                self.read_blank(from + bytes.len() as u64, out);
            }
            Ok(_) => self.fail(OpenStoreError::Foreign, out),
        }
    }
}
