//! Keeps the tombstones, and the removals and replacements that wait for them. A tombstone marks
//! all older records of a tag (shortened key) as removed. A removal or replacement is answered when
//! its tombstone is durable.
//!
//! A tombstone is first written to the journal. Later it is written to a segment summary in each
//! log. Once both summaries are durable, the journal no longer needs the tombstone. A log discards
//! its oldest segments first, so the summary with a tombstone stays longer than the older records
//! that the tombstone covers.

mod commit;
mod sequence;

use crate::contract::{Key, Record, RefusedReason, Ticket};
use crate::layout::{PAGE, Region};
use crate::one_file::io_sequence::{IoSequence, IoStep, SyncFailures};
use crate::one_file::journal::{BLOCK_BYTES, Forget};
use crate::one_file::superblock::Superblock;
use crate::settings::REMOVAL_FACTOR;
use crate::webcosm::format::geometry::{LogName, Position, Segment, Sequence};
use crate::webcosm::format::summary::Tombstone;
use crate::webcosm::index::Tag;
use foxy_base::Instant;
use foxy_device::IoError;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// The tag (shortened key) of a special tombstone, which marks a segment as void: the segment has
/// no summary. No key has this tag.
const VOID: Tag = Tag(u64::MAX);

/// The tag, in place of a shortened key, of the journal entry that states where both logs start and
/// end. No key has this tag.
const MARK: Tag = Tag(u64::MAX - 1);

/// Largest number of replacing puts that may wait for the journal. Removals have a higher limit.
const QUEUE_LIMIT: usize = 4096;

impl Tombstone {
    /// Creates a tombstone (mark of a removal) which states that the segment has no summary.
    pub fn void(segment: Segment) -> Self {
        Self::void_at(segment, 0)
    }

    /// Creates a tombstone which states that the segment has no summary, because its slot is
    /// retired. The disk cannot write to a retired slot.
    pub fn retired(segment: Segment) -> Self {
        Self::void_at(segment, 1)
    }

    fn void_at(segment: Segment, page: u32) -> Self {
        let mut up_to = [Position::default(); 2];
        up_to[segment.log as usize] = Position::new(segment, page);
        Self { tag: VOID, up_to }
    }

    pub fn is_retired(&self) -> bool {
        self.void_segment().is_some_and(|segment| *self == Self::retired(segment))
    }

    pub fn void_segment(&self) -> Option<Segment> {
        let log =
            if self.up_to[1] == Position::default() { LogName::Main } else { LogName::Probation };
        (self.tag == VOID).then(|| self.up_to[log as usize].segment())
    }

    /// Creates a journal entry which states two segment numbers of each log: the oldest segment,
    /// and the first segment whose summary may not be durable.
    pub fn mark(marks: [(Sequence, Sequence); 2]) -> Self {
        let pack = |(tail, durable_end)| Position(u64::from(tail) << 32 | u64::from(durable_end));
        Self { tag: MARK, up_to: marks.map(pack) }
    }

    pub fn marks(&self) -> Option<[(Sequence, Sequence); 2]> {
        (self.tag == MARK)
            .then(|| self.up_to.map(|packed| ((packed.0 >> 32) as Sequence, packed.0 as Sequence)))
    }

    /// Converts the tombstone (mark of a removal) to an entry of the journal.
    pub fn to_forget(self) -> Forget {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.tag.0.to_le_bytes());
        key[8..].copy_from_slice(&self.up_to[1].0.to_le_bytes());
        Forget { key: Key(key), up_to: self.up_to[0].0 }
    }

    pub fn of_forget(forget: &Forget) -> Self {
        let (mut tag, mut probation) = ([0; 8], [0; 8]);
        tag.copy_from_slice(&forget.key.0[..8]);
        probation.copy_from_slice(&forget.key.0[8..]);
        let up_to = [forget.up_to, u64::from_le_bytes(probation)].map(Position);
        Self { tag: Tag(u64::from_le_bytes(tag)), up_to }
    }
}

/// The record to store, and the size of its object.
#[derive(Debug)]
pub struct Put {
    pub record: Record,
    /// Number of bytes in the whole object. The record may be only a part of the object.
    pub object_bytes: u64,
}

/// A removal or replacement. It is answered when its tombstone (mark of a removal) is durable in
/// the journal.
#[derive(Debug)]
pub struct Change {
    pub ticket: Ticket,
    pub key: Key,
    pub tag: Tag,
    /// The new record. `None` for a removal.
    pub put: Option<Put>,
}

impl Change {
    fn len(&self) -> usize {
        self.put.as_ref().map_or(0, |put| put.record.len())
    }
}

/// A commit in progress: the removals and replacements in the journal block that is being written.
pub struct Commit {
    changes: Vec<Change>,
    /// Tombstones (marks of removals) of earlier removals and replacements that no journal block
    /// contains yet.
    unwritten: Vec<Tombstone>,
    up_to: [Position; 2],
    tails: [Sequence; 2],
}

/// A move of the journal to its other half that is in progress. The journal moves when its active
/// half is full.
pub struct Rotation {
    superblock: Superblock,
    blocks: u32,
    /// Number of tombstones (marks of removals) that only the new half of the journal contains.
    unwritten: usize,
    tails: [Sequence; 2],
}

/// A list of writes and syncs in a fixed order. If a step cannot write a segment's summary, the
/// segment becomes void (without summary) and the list continues.
pub type Steps = Vec<IoStep<Segment>>;

/// The work that follows when a list of writes and syncs has ended.
pub enum After {
    /// The superblock and the journal of an empty store are on disk.
    Formatted(Superblock),
    /// All segments that lacked a summary (list of records) have received it.
    Resealed,
    /// The superblock that this opening of the store wrote is on disk. The number counts the blocks
    /// in the journal half that the superblock names.
    Switched(Superblock, u32),
    Committed(Commit),
    Rotated(Rotation),
    /// A sync has made written summaries (lists of records) durable.
    Synced,
    /// A sync has made all records durable, and the store is closing.
    CloseSynced,
    /// The journal states on disk that everything is durable, and the store is closing.
    CloseMarked,
}

/// The tombstones (marks of removals) in memory, and the writes that make them durable.
#[derive(Default)]
pub struct Tombstones {
    queue: VecDeque<Change>,
    /// Number of waiting removals and replacements for each tag (shortened key).
    waiting: HashMap<Tag, u32>,
    waiting_bytes: usize,
    /// For each log, tombstones (marks of removals) that no summary of a segment contains yet.
    unsealed: [Vec<Tombstone>; 2],
    /// Tombstones (marks of removals) that no journal block contains yet.
    unwritten: Vec<Tombstone>,
    /// For each log, tombstones (marks of removals) in summaries that may not be durable yet. The
    /// number is that of the segment with the summary.
    sealed: [VecDeque<(Sequence, Vec<Tombstone>)>; 2],
    half: Option<Region>,
    next_block: u32,
    /// The error after which the store writes no more journal blocks.
    broken: Option<IoError>,
    /// Whether the journal has no space for new tombstones (marks of removals) until more summaries
    /// of segments are durable.
    is_crowded: bool,
    sequence: IoSequence<After, Segment>,
    sync_failures: SyncFailures,
    /// The earliest time to repeat failed background work (work for which no request waits).
    retry_at: Instant,
}

impl Tombstones {
    /// Selects the journal half for new blocks. The next block in it has the number `next_block`.
    pub const fn begin_half(&mut self, half: Region, next_block: u32) {
        self.half = Some(half);
        self.next_block = next_block;
    }

    /// Returns the number of blocks for which a journal half has space.
    fn blocks(&self) -> u32 {
        self.half.map_or(0, |half| half.pages * PAGE as u32 / BLOCK_BYTES as u32)
    }

    /// Queues a removal or replacement for the next commit.
    pub fn enqueue(&mut self, change: Change) -> Result<(), RefusedReason> {
        if let Some(error) = self.broken {
            return Err(RefusedReason::DeviceFailed(error));
        }
        let limit = if change.put.is_none() { REMOVAL_FACTOR * QUEUE_LIMIT } else { QUEUE_LIMIT };
        if self.queue.len() >= limit {
            return Err(RefusedReason::Busy);
        }
        *self.waiting.entry(change.tag).or_default() += 1;
        self.waiting_bytes += change.len();
        self.queue.push_back(change);
        Ok(())
    }

    /// Notes that a removal or replacement no longer waits, because it was committed or refused.
    fn finish(&mut self, change: &Change) {
        self.waiting_bytes -= change.len();
        if let Some(count) = self.waiting.get_mut(&change.tag) {
            *count -= 1;
            if *count == 0 {
                self.waiting.remove(&change.tag);
            }
        }
    }

    /// Returns whether a removal or replacement of a record with this tag (shortened key) is
    /// waiting.
    pub fn awaits(&self, tag: Tag) -> bool {
        self.waiting.contains_key(&tag)
    }

    /// Returns the number of bytes in all records that wait for a durable tombstone (mark that
    /// removes older records).
    pub const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Returns whether no removal or replacement is waiting, and no list of writes and syncs is
    /// running.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.sequence.is_idle()
    }

    /// Drops all waiting removals and replacements, because the store closes. Returns the tickets
    /// of their requests.
    pub fn abandon(&mut self) -> Vec<Ticket> {
        let committing = match self.sequence.abandon() {
            Some(After::Committed(commit)) => commit.changes,
            _ => Vec::new(),
        };
        self.waiting.clear();
        self.waiting_bytes = 0;
        committing.into_iter().chain(self.queue.drain(..)).map(|change| change.ticket).collect()
    }

    pub const fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Returns whether some tombstones are in no journal block yet. These tombstones may mark
    /// segments as void (without a summary).
    pub fn has_unwritten(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Keeps a tombstone (mark of a removal) until durable summaries of segments in both logs
    /// contain it.
    pub fn add(&mut self, tombstone: Tombstone) {
        self.unsealed.iter_mut().for_each(|unsealed| unsealed.push(tombstone));
    }

    /// Keeps a tombstone (mark of a removal) that no journal block contains yet.
    pub fn add_unwritten(&mut self, tombstone: Tombstone) {
        self.add(tombstone);
        self.unwritten.push(tombstone);
    }

    /// Returns the number of tombstones (marks of removals) that no summary of this log contains
    /// yet.
    pub const fn unsealed(&self, log: LogName) -> usize {
        self.unsealed[log as usize].len()
    }

    /// Takes up to `most` tombstones (marks of removals) that the summary of this segment will
    /// contain.
    pub fn seal(&mut self, Segment { log, sequence }: Segment, most: usize) -> Vec<Tombstone> {
        let unsealed = &mut self.unsealed[log as usize];
        let taken: Vec<_> = unsealed.drain(..most.min(unsealed.len())).collect();
        self.sealed[log as usize].push_back((sequence, taken.clone()));
        taken
    }

    /// Notes that the summary of a segment could not be written. The tombstones (marks of removals)
    /// in it must be written to another summary.
    pub fn unseal(&mut self, Segment { log, sequence }: Segment) {
        let sealed = &mut self.sealed[log as usize];
        if let Some(place) = sealed.iter().position(|(other, _)| *other == sequence) {
            let (_, tombstones) = sealed.remove(place).expect("just found");
            self.unsealed[log as usize].extend(tombstones);
        }
    }

    /// Forgets the tombstones that durable summaries of segments contain: the summaries of all
    /// segments before `end`. The journal no longer needs to contain these tombstones.
    fn release(&mut self, log: LogName, end: Sequence) {
        self.sealed[log as usize].retain(|(sequence, _)| *sequence >= end);
    }

    /// Returns all tombstones (marks of removals) that the journal must still contain.
    pub fn needed(&self) -> Vec<Tombstone> {
        let sealed = self.sealed.iter().flatten().flat_map(|(_, tombstones)| tombstones);
        let all: BTreeSet<_> = sealed.chain(self.unsealed.iter().flatten()).copied().collect();
        all.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tombstone_is_kept_until_both_its_summaries_are_durable() {
        let segment = |log, sequence| Segment { log, sequence };
        let tombstone = |n| Tombstone { tag: Tag(n), up_to: [Position(4096); 2] };
        let mut tombstones = Tombstones::default();
        (1..4).for_each(|n| tombstones.add(tombstone(n)));
        assert_eq!(tombstones.seal(segment(LogName::Main, 5), 2), [tombstone(1), tombstone(2)]);
        assert_eq!(tombstones.seal(segment(LogName::Main, 6), 9), [tombstone(3)]);
        assert_eq!(
            tombstones.seal(segment(LogName::Probation, 1), 9),
            [tombstone(1), tombstone(2), tombstone(3)]
        );
        tombstones.release(LogName::Main, 6);
        assert_eq!(tombstones.needed(), [tombstone(1), tombstone(2), tombstone(3)]);
        tombstones.release(LogName::Probation, 2);
        assert_eq!(tombstones.needed(), [tombstone(3)]);
        tombstones.unseal(segment(LogName::Main, 6));
        tombstones.release(LogName::Main, 9);
        assert_eq!(tombstones.needed(), [tombstone(3)], "its summary failed");
    }

    #[test]
    fn tombstones_come_back_from_the_journal() {
        let void = Segment { log: LogName::Probation, sequence: 12 };
        let marks = [(1, 2), (3, u32::MAX)];
        for tombstone in [
            Tombstone { tag: Tag(77), up_to: [Position(3), Position(9)] },
            Tombstone::void(void),
            Tombstone::mark(marks),
        ] {
            assert_eq!(Tombstone::of_forget(&tombstone.to_forget()), tombstone);
        }
        assert_eq!(Tombstone::void(void).void_segment(), Some(void));
        assert_eq!(
            Tombstone::void(Segment { log: LogName::Main, sequence: 0 })
                .void_segment()
                .map(|void| void.sequence),
            Some(0)
        );
        let retired = Tombstone::retired(void);
        assert_eq!(
            (retired.void_segment(), retired.is_retired(), Tombstone::void(void).is_retired()),
            (Some(void), true, false)
        );
        assert_eq!(
            (Tombstone::mark(marks).marks(), Tombstone::mark(marks).void_segment()),
            (Some(marks), None)
        );
    }
}
