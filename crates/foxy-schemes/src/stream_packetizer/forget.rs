//! Handles removals, and puts of keys that may have an older record on disk. After a crash, a scan
//! could find such a record. So the request waits until a tombstone for the older records is
//! durable in the forget journal. A tombstone names a key and the highest sequence number that is
//! no longer valid. One journal block and one sync serve all waiting requests (group commit).

use super::StreamPacketizer;
use super::pending::LaneName;
use super::phase::Phase;
use super::sequences::After;
use crate::index::EntryState;
use foxy_base::Instant;
use foxy_device::IoError;
use foxy_store::contract::{Answer, Key, Outbox, Record, RefusedReason, Ticket};
use foxy_store::layout::{PAGE, Region};
use foxy_store::one_file::io_sequence::{IoStep, superblock_steps};
use foxy_store::one_file::journal;
use foxy_store::one_file::journal::{BLOCK_BYTES, BLOCK_ENTRIES, BlockStamp, Forget};
use foxy_store::one_file::superblock::Superblock;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Maximum number of requests that wait for a journal block. The limit bounds their memory.
const MAX_QUEUED: usize = 4096;

impl StreamPacketizer {
    pub(super) fn remove(&mut self, ticket: Ticket, key: Key, out: &mut Outbox) {
        if !matches!(self.lifecycle.phase(), Phase::Serving | Phase::Scanning) {
            return out.reply(ticket, Answer::Refused(self.lifecycle.unable().1));
        }
        if self.lifecycle.phase() == Phase::Serving && !self.may_have_older(key) {
            return out.reply(ticket, Answer::Removed);
        }
        let up_to = self.next_sequence();
        let wanted = ForgetRequest { ticket, key, up_to, work: Work::Remove };
        if let Err(reason) = self.enqueue(wanted) {
            out.reply(ticket, Answer::Refused(reason));
        }
    }

    /// Returns whether a scan after a crash could find an older record of the key.
    pub(super) fn may_have_older(&self, key: Key) -> bool {
        self.has_doubts() || self.forgetting.awaits(key) || self.index.of_key(key).next().is_some()
    }

    /// Queues a put until a durable tombstone covers the older records of its key.
    pub(super) fn put_after_forgetting(
        &mut self,
        ticket: Ticket,
        key: Key,
        record: Record,
    ) -> Result<(), RefusedReason> {
        let sequence = self.next_sequence();
        self.enqueue(ForgetRequest {
            ticket,
            key,
            up_to: sequence - 1,
            work: Work::Put { sequence, record },
        })
    }

    fn enqueue(&mut self, wanted: ForgetRequest) -> Result<(), RefusedReason> {
        if let Some(error) = self.forgetting.broken {
            return Err(RefusedReason::DeviceFailed(error));
        }
        if self.forgetting.queue.len() >= MAX_QUEUED {
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

    /// Writes a journal block with tombstones for the queued requests if no journal write is in
    /// progress.
    pub(super) fn pump_forgets(&mut self, out: &mut Outbox) {
        let served =
            matches!(self.lifecycle.phase(), Phase::Serving | Phase::Scanning | Phase::Closing);
        if !served || !self.idle(LaneName::Journal) || self.forgetting.queue.is_empty() {
            return;
        }
        if self.forgetting.next_block >= self.forgetting.blocks() {
            return self.rotate(out);
        }
        let count = self.forgetting.queue.len().min(BLOCK_ENTRIES);
        let batch: Vec<_> = self.forgetting.queue.drain(..count).collect();
        let tombstones: Vec<_> =
            batch.iter().map(|wanted| Forget { key: wanted.key, up_to: wanted.up_to }).collect();
        let block = self.forgetting.next_block;
        let stamp = BlockStamp {
            generation: self.file.superblock().journal_generation,
            durable: self.durable,
        };
        let buffer = journal::encode(&tombstones, block, stamp, self.file.secret());
        let half = self.layout.journal[self.file.superblock().journal_half as usize];
        let offset = half.offset() + u64::from(block) * BLOCK_BYTES as u64;
        let steps = vec![IoStep::Write(offset, buffer), IoStep::Sync];
        self.run(LaneName::Journal, steps, After::Committed(batch), out);
    }

    /// Writes all tombstones that are still needed to the other half of the journal, because the
    /// active half is full. If they would take more than three quarters of a half, refuses the
    /// queued requests as busy. Later requests succeed after enough invalid records on disk are
    /// overwritten.
    fn rotate(&mut self, out: &mut Outbox) {
        let (superblock, tombstones) = self.next_half();
        let blocks = journal::blocks_for(tombstones.len());
        if blocks * 4 > self.forgetting.blocks() * 3 {
            self.forgetting.crowded = true;
            let batch = self.forgetting.queue.drain(..).collect();
            return self.refuse(batch, RefusedReason::Busy, out);
        }
        self.forgetting.crowded = false;
        let mut steps = self.compaction_steps(&superblock, &tombstones);
        steps.extend(superblock_steps(&superblock));
        self.run(LaneName::Journal, steps, After::Rotated(superblock, blocks), out);
    }

    /// Finishes the switch to the other half of the journal. After a failure, nobody knows which
    /// half the superblock on disk names. So the journal is not written again, and later removals
    /// are refused.
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

    /// Finishes the write of a journal block and answers its requests. After a failure, refuses
    /// them, and the next block overwrites the failed block.
    pub(super) fn committed(
        &mut self,
        batch: Vec<ForgetRequest>,
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
            let ForgetRequest { ticket, key, up_to, work } = wanted;
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
        if !older.is_empty() || self.has_doubts() || self.lifecycle.phase() == Phase::Scanning {
            let known = self.forgetting.tombstones.entry(key).or_default();
            *known = up_to.max(*known);
        }
    }

    fn refuse(&mut self, batch: Vec<ForgetRequest>, reason: RefusedReason, out: &mut Outbox) {
        for wanted in batch {
            self.forgetting.arrived(wanted.key);
            if let Work::Put { record, sequence } = &wanted.work {
                self.waiting -= record.len();
                self.forgetting.sequences.remove(sequence);
            }
            out.reply(wanted.ticket, Answer::Refused(reason));
        }
    }

    /// Drops all queued requests. Returns their tickets (request numbers), with which the caller
    /// answers the requests.
    pub(super) fn take_waiting(&mut self) -> Vec<Ticket> {
        self.forgetting.waiting.clear();
        self.forgetting.queue.drain(..).map(|wanted| wanted.ticket).collect()
    }

    /// Drops the tombstone of a key if no invalid record of the key is on disk any more.
    pub(super) fn release_tombstone(&mut self, key: Key) {
        if self.lifecycle.phase() != Phase::Scanning
            && !self.has_doubts()
            && !self.tombstone_needed(key)
        {
            self.forgetting.tombstones.remove(&key);
        }
    }

    /// Drops all tombstones of keys without an invalid record on disk.
    pub(super) fn release_tombstones(&mut self) {
        if self.lifecycle.phase() != Phase::Scanning && !self.has_doubts() {
            let mut tombstones = std::mem::take(&mut self.forgetting.tombstones);
            tombstones.retain(|&key, _| self.tombstone_needed(key));
            self.forgetting.tombstones = tombstones;
        }
    }

    fn tombstone_needed(&self, key: Key) -> bool {
        self.index.of_key(key).any(|id| self.index.get(id).state != EntryState::Live)
    }
}

/// A request that waits for a durable tombstone.
#[derive(Debug)]
pub struct ForgetRequest {
    pub ticket: Ticket,
    pub key: Key,
    /// Highest sequence number that the tombstone makes invalid.
    pub up_to: u64,
    pub work: Work,
}

#[derive(Debug)]
pub enum Work {
    Remove,
    /// A put with its sequence number and record.
    Put {
        sequence: u64,
        record: Record,
    },
}

/// The state of the forget journal in memory. The journal has two halves, and only one is active.
#[derive(Debug, Default)]
pub struct Forgetting {
    /// Tombstones of keys with invalid records on disk. The value is the highest invalid sequence
    /// number.
    pub(super) tombstones: HashMap<Key, u64>,
    /// Requests for the next journal block.
    pub(super) queue: VecDeque<ForgetRequest>,
    /// Number of waiting requests per key, including the requests in the block that is being
    /// written.
    pub(super) waiting: HashMap<Key, u32>,
    /// Sequence numbers of the waiting puts.
    pub(super) sequences: BTreeSet<u64>,
    half: Option<Region>,
    pub(super) next_block: u32,
    /// The error that made the journal unusable.
    pub(super) broken: Option<IoError>,
    /// Whether requests were refused because the tombstones nearly fill the journal.
    pub crowded: bool,
}

impl Forgetting {
    /// Makes `half` the active half of the journal. `next_block` is the number of blocks that it
    /// already contains.
    pub fn begin(&mut self, half: Region, next_block: u32) {
        self.half = Some(half);
        self.next_block = next_block;
    }

    /// Adopts the tombstones that were read from the journal on disk.
    pub fn load(&mut self, tombstones: Vec<Forget>) {
        for tombstone in tombstones {
            let known = self.tombstones.entry(tombstone.key).or_default();
            *known = tombstone.up_to.max(*known);
        }
    }

    /// Returns the highest sequence number that a tombstone makes invalid for a key.
    pub fn up_to(&self, key: Key) -> Option<u64> {
        self.tombstones.get(&key).copied()
    }

    pub fn tombstones(&self) -> Vec<Forget> {
        let mut tombstones: Vec<_> =
            self.tombstones.iter().map(|(&key, &up_to)| Forget { key, up_to }).collect();
        tombstones.sort_unstable_by_key(|tombstone| tombstone.key);
        tombstones
    }

    pub fn count(&self) -> usize {
        self.tombstones.len()
    }

    pub fn awaits(&self, key: Key) -> bool {
        self.waiting.contains_key(&key)
    }

    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn lowest_waiting(&self) -> Option<u64> {
        self.sequences.first().copied()
    }

    /// Notes that one request for a key no longer waits for its tombstone.
    pub fn arrived(&mut self, key: Key) {
        if let Some(count) = self.waiting.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&key);
            }
        }
    }

    pub fn blocks(&self) -> u32 {
        self.half.map_or(0, |half| half.pages * PAGE as u32 / BLOCK_BYTES as u32)
    }
}
