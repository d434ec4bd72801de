//! Opening: the file, its superblocks, the forget journal; and beginning a store anew.

use crate::beginning::{AnewReason, Beginning};
use crate::contract::Outbox;
use crate::one_file::io_sequence::{IoStep, superblock_steps};
use crate::one_file::journal::{self, BlockStamp, JournalContent};
use crate::one_file::store_file::Opened;
use crate::one_file::superblock::Superblock;
use crate::status::OpenStoreError;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{Geometry, LogName};
use crate::webcosm::format::summary::Fact;
use crate::webcosm::io::Pending;
use crate::webcosm::reclaim::ghost::Ghost;
use crate::webcosm::recovery::head::HeadFinding;
use crate::webcosm::recovery::phase::Phase;
use crate::webcosm::recovery::resize;
use crate::webcosm::tombstones::Forgetting;
use crate::webcosm::tombstones::io_sequence::{After, Steps};
use crate::webcosm::write::log::Log;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};

impl Webcosm {
    pub(crate) fn opened(&mut self, opened: Opened, out: &mut Outbox) {
        match opened {
            Opened::Created(size) => self.format(size, out),
            Opened::Found(superblock) => self.found_ours(superblock, out),
            Opened::Failed(error) => self.fail(error, out),
        }
    }

    /// Begins an empty store in the file there is: a new secret makes all that was written
    /// unreadable. Nothing is written before the file is durably there, and nothing before the
    /// stamp, so that one of foxy's is empty, whole and blank, or stamped. The journal gets a block
    /// from the start: one without any is known to be lost.
    fn format(&mut self, size: u64, out: &mut Outbox) {
        self.enter(Phase::Formatting);
        let superblock =
            Superblock::fresh(self.file.superblock(), self.settings.seed, self.settings.size, size);
        let stamp = BlockStamp { generation: superblock.journal_generation, durable: 0 };
        let block =
            journal::encode(&[Fact::mark([(0, 0); 2]).to_forget()], 0, stamp, &superblock.secret());
        let steps = [IoStep::Sync]
            .into_iter()
            .chain(superblock_steps(&superblock))
            .chain(self.first_journal(&superblock, block))
            .chain([IoStep::Sync])
            .collect();
        self.run(steps, After::Formatted(superblock), Instant::ZERO, out);
    }

    /// Writes the journal's first block. Where another store was, the rest of both halves is
    /// blanked, so that it is not taken for what a kill leaves.
    fn first_journal(&self, superblock: &Superblock, block: IoBuffer) -> Steps {
        let journal = Geometry::in_file(superblock).journal;
        let [half, other] = [superblock.journal_half, 1 - superblock.journal_half]
            .map(|half| journal[half as usize]);
        if !matches!(self.observer.beginning.get(), Some(Beginning::Anew(_))) {
            return vec![IoStep::Write(half.offset(), block)];
        }
        let mut first = IoBuffer::zeroed(half.bytes());
        first.as_mut()[..block.len()].copy_from_slice(block.as_ref());
        let blank = IoBuffer::zeroed(other.bytes());
        vec![IoStep::Write(other.offset(), blank), IoStep::Write(half.offset(), first)]
    }

    pub(crate) fn formatted(
        &mut self,
        superblock: Superblock,
        result: Result<(), IoError>,
        now: Instant,
    ) {
        if let Err(error) = result {
            return self.life.fail(OpenStoreError::Device(error));
        }
        self.adopt(superblock);
        self.forgetting = Forgetting::default();
        self.forgetting.begin(self.geometry.journal[0], 1);
        self.enter(Phase::Serving);
        self.begin_uses(now);
    }

    fn adopt(&mut self, superblock: Superblock) {
        self.file.set_superblock(superblock);
        self.observer.statistics.size_bytes.set(superblock.size);
        self.geometry = Geometry::in_file(&superblock);
        self.index.begin_anew(self.geometry);
        self.logs = LogName::ALL.map(|log| Log::new(log, &self.geometry));
        self.ghost = Ghost::new(&self.geometry);
    }

    fn found_ours(&mut self, superblock: Superblock, out: &mut Outbox) {
        if let Err(error) = resize::judge_size(&superblock, self.file.opening().size()) {
            return self.fail(error, out);
        }
        if superblock.requested != self.settings.size {
            if !self.file.opening().can_have(self.settings.size) {
                return self.fail(OpenStoreError::NoSpace, out);
            }
            self.finding.resizing = resize::wanted(&superblock, self.settings.size);
            if self.finding.resizing.is_none() {
                self.file.set_superblock(superblock);
                return self.begin_anew(AnewReason::other_size(&superblock, &self.settings), out);
            }
        }
        self.adopt(superblock);
        self.enter(Phase::ReadingJournal);
        self.read_journal(out);
    }

    /// Gives up all that the store held, for one of the size that is wanted.
    pub(crate) fn begin_anew(&mut self, reason: AnewReason, out: &mut Outbox) {
        self.finding = HeadFinding::default();
        if let Some(opened) = self.file.begin_anew(reason, out) {
            self.opened(opened, out);
        }
    }

    fn read_journal(&mut self, out: &mut Outbox) {
        self.finding.journal_tries += 1;
        let half = self.geometry.journal[self.file.superblock().journal_half as usize];
        self.file.read(half.offset(), half.bytes(), Pending::Journal, out);
    }

    /// A journal that cannot be read may have forgotten anything, so everything is.
    pub(crate) fn journal_read(&mut self, result: Result<IoBuffer, IoError>, out: &mut Outbox) {
        let half = self.geometry.journal[self.file.superblock().journal_half as usize];
        let generation = self.file.superblock().journal_generation;
        match journal::content(result, half.bytes(), generation, self.file.secret()) {
            Some(JournalContent { facts, .. }) => {
                facts.iter().map(Fact::of_forget).for_each(|fact| self.adopt_fact(fact));
                if !self.logs.iter().all(Log::is_possible) {
                    return self.journal_lost(out);
                }
                self.enter(Phase::FindingHead);
                self.find_head(LogName::Main, out);
            }
            None if self.finding.journal_tries < journal::READS => self.read_journal(out),
            None => self.journal_lost(out),
        }
    }

    fn journal_lost(&mut self, out: &mut Outbox) {
        let reason = AnewReason::JournalLost;
        match self.finding.resizing {
            Some(_) => self.begin_anew(reason, out),
            None => {
                self.observer.begins(Beginning::Anew(reason));
                self.format(self.file.superblock().size, out);
            }
        }
    }

    fn adopt_fact(&mut self, fact: Fact) {
        let Some(marks) = fact.marked() else { return self.forgetting.add(fact) };
        for (log, (tail, durable_end)) in self.logs.iter_mut().zip(marks) {
            log.tail = tail.max(log.tail);
            log.next = durable_end.max(log.next).max(log.tail);
        }
    }
}
