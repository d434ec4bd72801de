//! Removals, and puts of keys that may still have an older record on disk: each waits until the
//! journal says durably that the older ones are forgotten. One block and one sync serve all that
//! wait (group commit).

use super::StreamPacketizer;
use super::facts::{WantedForget, Work};
use super::pending::LaneName;
use super::script::After;
use super::state::Phase;
use crate::index::EntryState;
use foxy_base::Instant;
use foxy_device::IoError;
use foxy_store::contract::{Answer, Key, Outbox, Record, RefusedReason, Ticket};
use foxy_store::one_file::io_sequence::{IoStep, superblock_steps};
use foxy_store::one_file::journal::{self, BLOCK_BYTES, BLOCK_ENTRIES, BlockStamp, Forget};
use foxy_store::one_file::superblock::Superblock;

/// Removals and puts that may wait for the journal.
const QUEUE_LIMIT: usize = 4096;

impl StreamPacketizer {
    pub(super) fn remove(&mut self, ticket: Ticket, key: Key, out: &mut Outbox) {
        if !matches!(self.life.phase(), Phase::Serving | Phase::Scanning) {
            return out.reply(ticket, Answer::Refused(self.life.unable().1));
        }
        if self.life.phase() == Phase::Serving && !self.may_have_older(key) {
            return out.reply(ticket, Answer::Removed);
        }
        let up_to = self.next_sequence();
        let wanted = WantedForget { ticket, key, up_to, work: Work::Remove };
        if let Err(reason) = self.enqueue(wanted) {
            out.reply(ticket, Answer::Refused(reason));
        }
    }

    /// Whether an older record of this key may be read back after a crash.
    pub(super) fn may_have_older(&self, key: Key) -> bool {
        self.blind() || self.forgetting.awaits(key) || self.index.of_key(key).next().is_some()
    }

    /// Lets a put wait until what it replaces is durably forgotten.
    pub(super) fn put_after_forgetting(
        &mut self,
        ticket: Ticket,
        key: Key,
        record: Record,
    ) -> Result<(), RefusedReason> {
        let sequence = self.next_sequence();
        self.enqueue(WantedForget {
            ticket,
            key,
            up_to: sequence - 1,
            work: Work::Put { sequence, record },
        })
    }

    fn enqueue(&mut self, wanted: WantedForget) -> Result<(), RefusedReason> {
        if let Some(error) = self.forgetting.broken {
            return Err(RefusedReason::DeviceFailed(error));
        }
        if self.forgetting.queue.len() >= QUEUE_LIMIT {
            return Err(RefusedReason::Busy);
        }
        if let Work::Put { record, sequence } = &wanted.work {
            self.waiting += record.len();
            self.forgetting.sequences.insert(*sequence);
        }
        *self.forgetting.waiting.entry(wanted.key).or_default() += 1;
        self.forgetting.queue.push_back(wanted);
        Ok(())
    }

    /// Commits what waits, if the journal is free.
    pub(super) fn pump_forgets(&mut self, out: &mut Outbox) {
        let served = matches!(self.life.phase(), Phase::Serving | Phase::Scanning | Phase::Closing);
        if !served || !self.idle(LaneName::Journal) || self.forgetting.queue.is_empty() {
            return;
        }
        if self.forgetting.next_block >= self.forgetting.blocks() {
            return self.rotate(out);
        }
        let count = self.forgetting.queue.len().min(BLOCK_ENTRIES);
        let batch: Vec<_> = self.forgetting.queue.drain(..count).collect();
        let facts: Vec<_> =
            batch.iter().map(|wanted| Forget { key: wanted.key, up_to: wanted.up_to }).collect();
        let block = self.forgetting.next_block;
        let stamp = BlockStamp {
            generation: self.file.superblock().journal_generation,
            durable: self.durable,
        };
        let buffer = journal::encode(&facts, block, stamp, self.file.secret());
        let half = self.layout.journal[self.file.superblock().journal_half as usize];
        let offset = half.offset() + u64::from(block) * BLOCK_BYTES as u64;
        let steps = vec![IoStep::Write(offset, buffer), IoStep::Sync];
        self.run(LaneName::Journal, steps, After::Committed(batch), out);
    }

    /// Moves the needed facts to the other half; when they would nearly fill it, what waits is
    /// refused until enough leftovers are overwritten.
    fn rotate(&mut self, out: &mut Outbox) {
        let (superblock, facts) = self.next_half();
        let blocks = journal::blocks_for(facts.len());
        if blocks * 4 > self.forgetting.blocks() * 3 {
            self.forgetting.crowded = true;
            let batch = self.forgetting.queue.drain(..).collect();
            return self.refuse(batch, RefusedReason::Busy, out);
        }
        self.forgetting.crowded = false;
        let mut steps = self.compaction_steps(&superblock, &facts);
        steps.extend(superblock_steps(&superblock));
        self.run(LaneName::Journal, steps, After::Rotated(superblock, blocks), out);
    }

    /// After a failed move nobody can say which half the superblock on disk names, so nothing more
    /// is appended.
    pub(super) fn rotated(
        &mut self,
        superblock: Superblock,
        blocks: u32,
        result: Result<(), IoError>,
        out: &mut Outbox,
    ) {
        match result {
            Ok(()) => {
                self.file.set_superblock(superblock);
                let half = self.layout.journal[superblock.journal_half as usize];
                self.forgetting.begin(half, blocks);
            }
            Err(error) => {
                self.forgetting.broken = Some(error);
                let batch = self.forgetting.queue.drain(..).collect();
                self.refuse(batch, RefusedReason::DeviceFailed(error), out);
            }
        }
    }

    /// These facts are durable, or the device failed; a failed block is written again by the next
    /// commit.
    pub(super) fn committed(
        &mut self,
        batch: Vec<WantedForget>,
        result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        if let Err(error) = result {
            return self.refuse(batch, RefusedReason::DeviceFailed(error), out);
        }
        self.forgetting.next_block += 1;
        self.changed = true;
        self.observer.statistics.forgets.add(batch.len() as u64);
        for wanted in batch {
            let WantedForget { ticket, key, up_to, work } = wanted;
            self.forgetting.arrived(key);
            self.forget_records(key, up_to);
            let answer = match work {
                Work::Remove => Answer::Removed,
                Work::Put { sequence, record } => {
                    self.waiting -= record.len();
                    self.forgetting.sequences.remove(&sequence);
                    match self.place(key, sequence, record, now, out) {
                        Ok(()) => Answer::Stored,
                        Err(reason) => Answer::Refused(reason),
                    }
                }
            };
            out.reply(ticket, answer);
        }
    }

    fn forget_records(&mut self, key: Key, up_to: u64) {
        let older: Vec<_> =
            self.index.of_key(key).filter(|&id| self.index.get(id).sequence <= up_to).collect();
        for &id in &older {
            if self.index.get(id).state == EntryState::Live {
                self.drop_live(id);
            }
        }
        if !older.is_empty() || self.blind() || self.life.phase() == Phase::Scanning {
            let known = self.forgetting.facts.entry(key).or_default();
            *known = up_to.max(*known);
        }
    }

    fn refuse(&mut self, batch: Vec<WantedForget>, reason: RefusedReason, out: &mut Outbox) {
        for wanted in batch {
            self.forgetting.arrived(wanted.key);
            if let Work::Put { record, sequence } = &wanted.work {
                self.waiting -= record.len();
                self.forgetting.sequences.remove(sequence);
            }
            out.reply(wanted.ticket, Answer::Refused(reason));
        }
    }

    /// Tickets of all that waits, which is given up.
    pub(super) fn take_waiting(&mut self) -> Vec<Ticket> {
        self.forgetting.waiting.clear();
        self.forgetting.queue.drain(..).map(|wanted| wanted.ticket).collect()
    }

    /// Lets go of a key's fact once nothing on disk needs it.
    pub(super) fn release_fact(&mut self, key: Key) {
        if self.life.phase() != Phase::Scanning && !self.blind() && !self.fact_needed(key) {
            self.forgetting.facts.remove(&key);
        }
    }

    /// Lets go of all facts that nothing on disk needs.
    pub(super) fn release_facts(&mut self) {
        if self.life.phase() != Phase::Scanning && !self.blind() {
            let mut facts = std::mem::take(&mut self.forgetting.facts);
            facts.retain(|&key, _| self.fact_needed(key));
            self.forgetting.facts = facts;
        }
    }

    fn fact_needed(&self, key: Key) -> bool {
        self.index.of_key(key).any(|id| self.index.get(id).state != EntryState::Live)
    }
}
