//! Commits waiting removals and replacements together. One journal block and one sync make all
//! their tombstones (marks of removed records) durable. The journal block also states which
//! segments are discarded.

use crate::contract::{Answer, RefusedReason};
use crate::layout::Region;
use crate::one_file::io_sequence::{IoStep, superblock_steps};
use crate::one_file::journal::{self, BLOCK_BYTES, BLOCK_ENTRIES, BlockStamp, Forget};
use crate::one_file::superblock::Superblock;
use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::Sequence;
use crate::webcosm::format::summary::Tombstone;
use crate::webcosm::phase::Phase;
use crate::webcosm::recovery::rebuild::Rebuild;
use crate::webcosm::tombstones::{After, Change, Commit, Rotation, Steps, Tombstones};
use crate::webcosm::write::Writer;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};

impl Tombstones {
    /// Returns when to write the next journal block that no request waits for. Such a block
    /// discards segments or makes summaries (lists of records) durable.
    pub fn deadline(&self, cx: &Context, writer: &Writer) -> Option<Instant> {
        (self.wants_commit(cx, writer) && self.sequence.is_idle()).then_some(self.retry_at)
    }

    /// Returns whether a journal block is needed although no request waits for it: to discard
    /// segments, or to make written summaries (lists of records) durable.
    fn wants_commit(&self, cx: &Context, writer: &Writer) -> bool {
        if self.broken.is_some() {
            return false;
        }
        let is_synced = self.sync_failures.is_intact();
        if self.is_crowded {
            return is_synced && writer.logs().iter().any(|log| log.unsynced_summaries() > 0);
        }
        let is_urgent = cx.phase() == Phase::Rebuilding || writer.is_crowded(cx);
        writer.logs().iter().any(|log| {
            let ready = log.waiting();
            let is_full = log.next - log.tail >= log.segments();
            is_synced && log.unsynced_summaries() >= log.group_size()
                || ready >= log.group_size()
                || ready > 0 && (is_full || is_urgent)
        })
    }

    /// Starts to commit the waiting removals and replacements, unless another list of writes and
    /// syncs is running.
    pub fn pump(&mut self, cx: &mut Context, writer: &mut Writer) {
        let is_due = self.wants_commit(cx, writer) && self.retry_at <= cx.now;
        if !self.sequence.is_idle() || self.queue.is_empty() && !is_due {
            return;
        }
        if self.broken.is_some() || self.next_block >= self.blocks() {
            return self.rotate(cx, writer);
        }
        let old = self.unwritten.len().min(BLOCK_ENTRIES - 1);
        let unwritten: Vec<_> = self.unwritten.drain(..old).collect();
        let count = self.queue.len().min(BLOCK_ENTRIES - 1 - old);
        let changes: Vec<_> = self.queue.drain(..count).collect();
        for change in &changes {
            writer.unbuffer(cx, change.key);
        }
        let commit = Commit {
            changes,
            unwritten,
            up_to: writer.next_positions(),
            tails: writer.next_tails(),
        };
        let steps = self.block_steps(cx, writer, &commit);
        self.run(cx, writer, steps, After::Committed(commit));
    }

    /// Returns the last writes of a close: a journal entry which states that everything is durable.
    /// The entry is written to the next block, or to the other half of the journal. The next
    /// opening starts its search for newer segments behind the last segment that this entry names.
    /// The entry also lets a check of the store tell damage from the effects of a crash. Returns no
    /// steps if the journal is unreliable.
    pub fn final_steps(&self, cx: &Context, writer: &Writer) -> Steps {
        if self.broken.is_some() || !self.sync_failures.is_intact() {
            return Vec::new();
        }
        let tails = writer.kept_from();
        if self.next_block < self.blocks() && self.unwritten.is_empty() {
            let up_to = writer.next_positions();
            let commit = Commit { changes: Vec::new(), unwritten: Vec::new(), up_to, tails };
            return self.block_steps(cx, writer, &commit);
        }
        let superblock = cx.file.next_superblock();
        let (mut steps, blocks) =
            self.compaction_steps(cx, writer, &superblock, &self.needed(), tails);
        if blocks > self.blocks() {
            return Vec::new();
        }
        steps.extend(superblock_steps(&superblock));
        steps
    }

    /// Returns the steps that write the next block of the journal and sync it.
    fn block_steps(&self, cx: &Context, writer: &Writer, commit: &Commit) -> Steps {
        let half = cx.journal_half(cx.file.superblock());
        let new =
            commit.changes.iter().map(|change| Tombstone { tag: change.tag, up_to: commit.up_to });
        let tombstones: Vec<_> = std::iter::once(writer.mark(commit.tails))
            .chain(commit.unwritten.iter().copied())
            .chain(new)
            .collect();
        let buffer = encode(cx, cx.file.superblock(), &tombstones, self.next_block);
        let offset = half.offset() + u64::from(self.next_block) * BLOCK_BYTES as u64;
        vec![IoStep::Write(offset, buffer), IoStep::Sync]
    }

    /// Finishes a successful commit: answers its removals and replacements. After a failed commit,
    /// the next commit writes its block to the same place.
    pub fn committed(
        &mut self,
        cx: &mut Context,
        writer: &mut Writer,
        rebuild: &mut Rebuild,
        commit: Commit,
    ) {
        let Commit { changes, up_to, tails, .. } = commit;
        self.next_block += 1;
        cx.statistics().forgets.add(changes.len() as u64);
        writer.give_up_to(tails);
        for change in changes {
            self.finish(&change);
            let Change { ticket, key, tag, put } = change;
            let tombstone = Tombstone { tag, up_to };
            writer.forget(cx, key, tombstone);
            rebuild.forget(tombstone);
            self.add(tombstone);
            let answer = match put {
                None => Answer::Removed,
                Some(put) => {
                    writer.accept(cx, key, tag, put);
                    Answer::Stored
                }
            };
            cx.reply(ticket, answer);
        }
    }

    pub fn commit_failed(&mut self, cx: &mut Context, commit: Commit, error: IoError) {
        self.unwritten.extend(commit.unwritten);
        self.back_off(cx.now);
        self.refuse(cx, commit.changes, RefusedReason::DeviceFailed(error));
    }

    /// Moves the journal to its other half, and writes all tombstones there that the journal still
    /// needs. If these tombstones would take more than half of the space there, removals and
    /// replacements wait until enough tombstones are durable in summaries of segments. If no
    /// summary can be written, the removals and replacements are refused.
    fn rotate(&mut self, cx: &mut Context, writer: &mut Writer) {
        if let Some(error) = self.broken {
            return self.refuse_all(cx, RefusedReason::DeviceFailed(error));
        }
        let needed = self.needed();
        let blocks = journal::blocks_for(needed.len() + 1);
        let is_crowded = blocks * 2 > self.blocks();
        if is_crowded {
            self.is_crowded = true;
            let is_stuck = writer.cannot_seal(self) || !self.sync_failures.is_intact();
            if !is_stuck {
                writer.seal_tombstones(cx, self);
                if writer.logs().iter().any(|log| log.unsynced_summaries() > 0) {
                    self.run(cx, writer, vec![IoStep::Sync], After::Synced);
                }
                return;
            }
            if blocks >= self.blocks() {
                self.broken = (!self.sync_failures.is_intact()).then_some(IoError::Device);
                return self.refuse_all(cx, RefusedReason::Busy);
            }
        }
        self.is_crowded &= is_crowded;
        let superblock = cx.file.next_superblock();
        // The new half of the journal also states that the `leaving` segments are discarded, which
        // frees their space. Otherwise a full log could not write the summaries that take
        // tombstones out of the journal. The journal would stay full.
        let tails = writer.next_tails();
        let (mut steps, blocks) = self.compaction_steps(cx, writer, &superblock, &needed, tails);
        steps.extend(superblock_steps(&superblock));
        let rotation = Rotation { superblock, blocks, unwritten: self.unwritten.len(), tails };
        self.run(cx, writer, steps, After::Rotated(rotation));
    }

    /// Returns the steps that write tombstones to the journal half that `superblock` names as
    /// active. Also returns the number of blocks that they write.
    pub fn compaction_steps(
        &self,
        cx: &Context,
        writer: &Writer,
        superblock: &Superblock,
        tombstones: &[Tombstone],
        tails: [Sequence; 2],
    ) -> (Steps, u32) {
        let half = cx.journal_half(superblock);
        let all: Vec<_> =
            std::iter::once(writer.mark(tails)).chain(tombstones.iter().copied()).collect();
        let buffer = encode(cx, superblock, &all, 0);
        (vec![IoStep::Write(half.offset(), buffer), IoStep::Sync], journal::blocks_for(all.len()))
    }

    /// Finishes a move of the journal to its other half. After a failed move, the superblock on
    /// disk may name either half. Then no more journal blocks are written, and all removals and
    /// replacements are refused.
    pub fn rotated(
        &mut self,
        cx: &mut Context,
        writer: &mut Writer,
        rotation: Rotation,
        result: Result<(), IoError>,
    ) {
        let Rotation { superblock, blocks, unwritten, tails } = rotation;
        match result {
            Ok(()) => {
                writer.give_up_to(tails);
                cx.file.set_superblock(superblock);
                self.unwritten.drain(..unwritten);
                self.begin_half(cx.journal_half(&superblock), blocks);
            }
            Err(error) => {
                self.broken = Some(error);
                self.refuse_all(cx, RefusedReason::DeviceFailed(error));
            }
        }
    }

    /// Notes that the opening of the store is durable. The journal half `half` now contains all
    /// tombstones (marks of removals), in its first `blocks` blocks.
    pub fn switched(&mut self, half: Region, blocks: u32) {
        self.unwritten.clear();
        self.begin_half(half, blocks);
    }

    fn refuse_all(&mut self, cx: &mut Context, reason: RefusedReason) {
        let changes = self.queue.drain(..).collect();
        self.refuse(cx, changes, reason);
    }

    fn refuse(&mut self, cx: &mut Context, changes: Vec<Change>, reason: RefusedReason) {
        for change in changes {
            self.finish(&change);
            cx.reply(change.ticket, Answer::Refused(reason));
        }
    }
}

/// Encodes tombstones (marks of removals) as journal blocks for the half that `superblock` names as
/// active. The first block has the number `first_block`.
fn encode(
    cx: &Context,
    superblock: &Superblock,
    tombstones: &[Tombstone],
    first_block: u32,
) -> IoBuffer {
    let stamp = BlockStamp { generation: superblock.journal_generation, durable: 0 };
    let forgets: Vec<Forget> = tombstones.iter().map(|tombstone| tombstone.to_forget()).collect();
    journal::encode(&forgets, first_block, stamp, cx.secret())
}
