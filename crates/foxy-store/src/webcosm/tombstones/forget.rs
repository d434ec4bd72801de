//! Removals, and puts of keys that may have a record on disk: each waits until the journal says
//! durably that older ones are forgotten. One block and one sync serve all that wait (group
//! commit), and the giving up of segments.

use crate::contract::{Answer, Key, Outbox, RefusedReason, Ticket};
use crate::one_file::io_sequence::{IoStep, superblock_steps};
use crate::one_file::journal::{self, BLOCK_BYTES, BLOCK_ENTRIES, BlockStamp, Forget};
use crate::one_file::superblock::Superblock;
use crate::settings::REMOVALS;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{LogName, Position, Sequence};
use crate::webcosm::format::summary::Fact;
use crate::webcosm::index::Tag;
use crate::webcosm::recovery::phase::Phase;
use crate::webcosm::tombstones::Wanted;
use crate::webcosm::tombstones::io_sequence::{After, Steps};
use crate::webcosm::write::log::Log;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};
use std::time::Duration;

/// Removals and puts that may wait for the journal.
const QUEUE_LIMIT: usize = 4096;

/// How long after a failure the store waits before it tries again what nobody asked for.
const BACK_OFF: Duration = Duration::from_secs(1);

/// A block of the journal on its way.
pub struct Commit {
    pub(crate) batch: Vec<Wanted>,
    /// Facts that are older than the block.
    old: Vec<Fact>,
    up_to: [Position; 2],
    tails: [Sequence; 2],
}

/// A move of the journal to its other half, on its way.
pub struct Rotation {
    superblock: Superblock,
    /// Blocks that the facts take there.
    blocks: u32,
    /// How many of the facts the journal did not have.
    unwritten: usize,
    /// Of each log, the first segment that counts.
    tails: [Sequence; 2],
}

impl Webcosm {
    pub(crate) fn remove(&mut self, ticket: Ticket, key: Key, out: &mut Outbox) {
        if !self.life.phase().serves() {
            return out.reply(ticket, Answer::Refused(self.life.unable().1));
        }
        let tag = self.tag(key);
        if !self.forgetting.awaits(tag) {
            self.unstage(key);
        }
        if !self.may_have_older(key, tag) {
            return out.reply(ticket, Answer::Removed);
        }
        if let Err(reason) = self.enqueue(Wanted { ticket, key, tag, record: None, whole: 0 }) {
            out.reply(ticket, Answer::Refused(reason));
        }
    }

    /// Whether an older record of this key may be read back, now or after a crash.
    pub(crate) fn may_have_older(&self, key: Key, tag: Tag) -> bool {
        let known = self.index.get(tag).is_some() || self.flying.get(key).is_some();
        self.life.phase() == Phase::Rebuilding || self.forgetting.awaits(tag) || known
    }

    pub(crate) fn enqueue(&mut self, wanted: Wanted) -> Result<(), RefusedReason> {
        if let Some(error) = self.forgetting.broken {
            return Err(RefusedReason::DeviceFailed(error));
        }
        let limit = if wanted.record.is_none() { REMOVALS * QUEUE_LIMIT } else { QUEUE_LIMIT };
        if self.forgetting.queue.len() >= limit {
            return Err(RefusedReason::Busy);
        }
        self.forgetting.enqueue(wanted);
        Ok(())
    }

    /// Whether there is something that nobody waits for to be written to the journal.
    pub(crate) fn wants_commit(&self) -> bool {
        if self.forgetting.broken.is_some() {
            return false;
        }
        let synced = self.sync_failures.is_intact();
        if self.forgetting.crowded {
            return synced && self.logs.iter().any(|log| log.behind() > 0);
        }
        let hurry = self.life.phase() == Phase::Rebuilding || self.is_crowded();
        self.logs.iter().any(|log| {
            let ready = log.waiting();
            let full = log.next - log.tail >= log.segments();
            synced && log.behind() >= log.together()
                || ready >= log.together()
                || ready > 0 && (full || hurry)
        })
    }

    pub(crate) fn back_off(&mut self, now: Instant) {
        self.retry_at = now + BACK_OFF;
    }

    /// Commits what waits, if the journal is free.
    pub(crate) fn pump_forgets(&mut self, now: Instant, out: &mut Outbox) {
        let wanted = self.wants_commit() && self.retry_at <= now;
        if !self.sequence.is_idle() || self.forgetting.queue.is_empty() && !wanted {
            return;
        }
        if self.forgetting.broken.is_some()
            || self.forgetting.next_block >= self.forgetting.blocks()
        {
            return self.rotate(now, out);
        }
        let some = self.forgetting.unwritten.len().min(BLOCK_ENTRIES - 1);
        let old: Vec<_> = self.forgetting.unwritten.drain(..some).collect();
        let count = self.forgetting.queue.len().min(BLOCK_ENTRIES - 1 - some);
        let batch: Vec<_> = self.forgetting.queue.drain(..count).collect();
        for wanted in &batch {
            self.unstage(wanted.key);
        }
        let tails = self.logs.each_ref().map(Log::next_tail);
        let commit = Commit { batch, old, up_to: self.next_positions(), tails };
        let block = self.forgetting.next_block;
        let buffer = self.block_of(&commit, block);
        let steps = vec![IoStep::Write(self.place_of(block), buffer), IoStep::Sync];
        self.run(steps, After::Committed(commit), now, out);
    }

    /// What every block says besides its facts.
    fn mark(&self, tails: [Sequence; 2]) -> Fact {
        let ends = self.logs.each_ref().map(|log| log.seals.durable_end);
        Fact::mark([(tails[0], ends[0]), (tails[1], ends[1])])
    }

    /// What makes the journal say up to where all is durable, so that the next opening need not
    /// look and what is damaged later is known to be that: one more block, or a move to the other
    /// half. Nothing where neither can be relied on.
    pub(crate) fn last_words(&mut self) -> Steps {
        if self.forgetting.broken.is_some() || !self.sync_failures.is_intact() {
            return Vec::new();
        }
        let block = self.forgetting.next_block;
        if block < self.forgetting.blocks() && self.forgetting.unwritten.is_empty() {
            let tails = self.logs.each_ref().map(Log::kept_from);
            let up_to = self.next_positions();
            let commit = Commit { batch: Vec::new(), old: Vec::new(), up_to, tails };
            return vec![
                IoStep::Write(self.place_of(block), self.block_of(&commit, block)),
                IoStep::Sync,
            ];
        }
        let superblock = self.file.next_superblock();
        let tails = self.logs.each_ref().map(Log::kept_from);
        let facts = self.forgetting.needed();
        let (mut steps, blocks) = self.compaction_steps(&superblock, &facts, tails);
        if blocks > self.forgetting.blocks() {
            return Vec::new();
        }
        steps.extend(superblock_steps(&superblock));
        steps
    }

    /// Where a block of the journal lies, in bytes.
    fn place_of(&self, block: u32) -> u64 {
        let half = self.geometry.journal[self.file.superblock().journal_half as usize];
        half.offset() + u64::from(block) * BLOCK_BYTES as u64
    }

    fn block_of(&self, commit: &Commit, block: u32) -> IoBuffer {
        let stamp =
            BlockStamp { generation: self.file.superblock().journal_generation, durable: 0 };
        let new = commit.batch.iter().map(|wanted| Fact { tag: wanted.tag, up_to: commit.up_to });
        let facts =
            [self.mark(commit.tails)].into_iter().chain(commit.old.iter().copied()).chain(new);
        journal::encode(
            &facts.map(Fact::to_forget).collect::<Vec<_>>(),
            block,
            stamp,
            self.file.secret(),
        )
    }

    /// These facts are durable, or the device failed; a failed block is written again by the next
    /// commit.
    pub(crate) fn committed(
        &mut self,
        commit: Commit,
        result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        let Commit { batch, old, up_to, tails } = commit;
        if let Err(error) = result {
            self.forgetting.unwritten.extend(old);
            self.back_off(now);
            return self.refuse(batch, RefusedReason::DeviceFailed(error), out);
        }
        self.forgetting.next_block += 1;
        self.observer.statistics.forgets.add(batch.len() as u64);
        LogName::ALL.into_iter().for_each(|log| self.give_up_to(log, tails[log as usize]));
        for wanted in batch {
            self.forgetting.arrived(&wanted);
            let Wanted { ticket, key, tag, record, whole } = wanted;
            self.forget_record(key, Fact { tag, up_to });
            let answer = match record {
                None => Answer::Removed,
                Some(record) => {
                    self.stage((key, tag), record, whole, now);
                    Answer::Stored
                }
            };
            out.reply(ticket, answer);
        }
    }

    fn forget_record(&mut self, key: Key, fact: Fact) {
        self.flying.forget(key);
        self.unstage(key);
        if let Some(known) = self.index.get(fact.tag)
            && fact.reaches(self.index.spot(known).position)
        {
            self.index.remove_at(fact.tag, known.place);
        }
        self.rebuild.forget(fact);
        self.forgetting.add(fact);
    }

    /// Whether a log has facts for a summary and no segment to write one to.
    fn cannot_seal(&self) -> bool {
        LogName::ALL
            .iter()
            .any(|&log| self.forgetting.unsealed(log) > 0 && !self.logs[log as usize].has_room())
    }

    /// Moves the facts that are still needed to the other half. When they would fill much of it,
    /// what waits has to wait until summaries with those facts are durable; it is refused only
    /// where that cannot be.
    fn rotate(&mut self, now: Instant, out: &mut Outbox) {
        if let Some(error) = self.forgetting.broken {
            let batch = self.forgetting.queue.drain(..).collect();
            return self.refuse(batch, RefusedReason::DeviceFailed(error), out);
        }
        let facts = self.forgetting.needed();
        let blocks = journal::blocks_for(facts.len() + 1);
        if blocks * 2 > self.forgetting.blocks() {
            self.forgetting.crowded = true;
            let stuck = self.cannot_seal() || !self.sync_failures.is_intact();
            if !stuck {
                self.seal_facts(out);
                if self.logs.iter().any(|log| log.behind() > 0) {
                    self.run(vec![IoStep::Sync], After::Synced, now, out);
                }
                return;
            }
            if blocks >= self.forgetting.blocks() {
                self.forgetting.broken =
                    (!self.sync_failures.is_intact()).then_some(IoError::Device);
                let batch = self.forgetting.queue.drain(..).collect();
                return self.refuse(batch, RefusedReason::Busy, out);
            }
        }
        self.forgetting.crowded &= blocks * 2 > self.forgetting.blocks();
        let superblock = self.file.next_superblock();
        // Segments that wait are given up too: a log without room could seal no facts, and the
        // journal would stay full.
        let tails = self.logs.each_ref().map(Log::next_tail);
        let (mut steps, blocks) = self.compaction_steps(&superblock, &facts, tails);
        steps.extend(superblock_steps(&superblock));
        let unwritten = self.forgetting.unwritten.len();
        self.run(
            steps,
            After::Rotated(Rotation { superblock, blocks, unwritten, tails }),
            now,
            out,
        );
    }

    /// Steps that write facts, and the first segments that count, to the half that will count; and
    /// the blocks they take.
    pub(crate) fn compaction_steps(
        &self,
        superblock: &Superblock,
        facts: &[Fact],
        tails: [Sequence; 2],
    ) -> (Steps, u32) {
        let half = self.geometry.journal[superblock.journal_half as usize];
        let stamp = BlockStamp { generation: superblock.journal_generation, durable: 0 };
        let mark = self.mark(tails);
        let facts: Vec<Forget> =
            [&mark].into_iter().chain(facts).map(|fact| fact.to_forget()).collect();
        let blocks = journal::encode(&facts, 0, stamp, self.file.secret());
        (vec![IoStep::Write(half.offset(), blocks), IoStep::Sync], journal::blocks_for(facts.len()))
    }

    /// After a failed move nobody can say which half the superblock on disk names, so nothing more
    /// is appended.
    pub(crate) fn rotated(
        &mut self,
        Rotation { superblock, blocks, unwritten, tails }: Rotation,
        result: Result<(), IoError>,
        out: &mut Outbox,
    ) {
        match result {
            Ok(()) => {
                LogName::ALL.into_iter().for_each(|log| self.give_up_to(log, tails[log as usize]));
                self.file.set_superblock(superblock);
                self.forgetting.unwritten.drain(..unwritten);
                let half = self.geometry.journal[superblock.journal_half as usize];
                self.forgetting.begin(half, blocks);
            }
            Err(error) => {
                self.forgetting.broken = Some(error);
                let batch = self.forgetting.queue.drain(..).collect();
                self.refuse(batch, RefusedReason::DeviceFailed(error), out);
            }
        }
    }

    fn refuse(&mut self, batch: Vec<Wanted>, reason: RefusedReason, out: &mut Outbox) {
        for wanted in batch {
            self.forgetting.arrived(&wanted);
            out.reply(wanted.ticket, Answer::Refused(reason));
        }
    }
}
