//! Runs sequences of writes and syncs, each sequence in a fixed order. Applies the effects of each
//! sync.

use super::StreamPacketizer;
use super::forget::ForgetRequest;
use super::pending::{LaneName, Pending, Synced};
use super::phase::Phase;
use super::window::{Window, WindowWrite};
use crate::index::{EntryId, EntryState};
use foxy_base::Instant;
use foxy_device::IoError;
use foxy_store::contract::{Outbox, Ticket};
use foxy_store::one_file::io_sequence::{Advance, IoStep};
use foxy_store::one_file::superblock::Superblock;

/// The purpose of a sequence of writes and syncs, with the values that its last step needs.
pub enum After {
    Formatted(Superblock),
    Switched(Superblock),
    Committed(Vec<ForgetRequest>),
    /// Switches the journal to its other half. The number is the count of used blocks in that half.
    Rotated(Superblock, u32),
    CheckpointPiece,
    CheckpointDone,
    Swept,
    CloseSynced,
    /// Writes pages again whose records may not be durable.
    Settled(crate::pages::Run),
}

/// Number of overwritten invalid records after which a sync is started. After the sync, the index
/// can drop them.
const SWEEP_AT: usize = 2048;

impl StreamPacketizer {
    pub(super) fn idle(&self, lane: LaneName) -> bool {
        self.lanes[lane as usize].is_idle()
    }

    pub(super) fn run(
        &mut self,
        lane: LaneName,
        steps: Vec<IoStep>,
        after: After,
        out: &mut Outbox,
    ) {
        self.lanes[lane as usize].start(steps, after);
        self.next_step(lane, Ok(()), Instant::ZERO, out);
    }

    fn next_step(
        &mut self,
        lane: LaneName,
        result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        match self.lanes[lane as usize].advance(result) {
            Advance::Step(IoStep::Write(offset, buffer)) => {
                self.file.write(offset, buffer, Pending::Step(lane, None), out);
            }
            Advance::Step(IoStep::Sync) => {
                let synced = Synced {
                    overwritten: std::mem::take(&mut self.overwritten),
                    durable: self.written_up_to(),
                    failures_before: self.sync_failures.before(),
                };
                self.file.sync(Pending::Step(lane, Some(synced)), out);
            }
            Advance::Step(IoStep::Optional(never, ..)) => match never {},
            Advance::Ended(after) => self.sequence_done(after, result, now, out),
            Advance::Idle => {}
        }
    }

    pub(super) fn step_done(
        &mut self,
        lane: LaneName,
        synced: Option<Synced>,
        mut result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        if let Some(synced) = synced {
            result = self.sync_done(synced, result);
        }
        self.next_step(lane, result, now, out);
    }

    /// Applies the result of a sync. After a failed sync, Linux may drop the written pages, and a
    /// later sync still succeeds. So another sync in flight also counts as failed. The number
    /// `durable` rises only if no sync has failed since the start and recovery is finished.
    fn sync_done(&mut self, synced: Synced, result: Result<(), IoError>) -> Result<(), IoError> {
        let Synced { overwritten, durable, failures_before } = synced;
        let result = self.sync_failures.judge(failures_before, result);
        if result.is_ok() {
            let recovered = matches!(self.lifecycle.phase(), Phase::Serving | Phase::Closing)
                && !self.has_doubts();
            if recovered && self.sync_failures.is_intact() {
                self.durable = self.durable.max(durable);
            }
            self.remove_overwritten(overwritten);
        } else {
            self.restore_leftovers(overwritten);
            let later = std::mem::take(&mut self.overwritten);
            self.restore_leftovers(later);
        }
        result
    }

    fn sequence_done(
        &mut self,
        after: After,
        result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        match after {
            After::Formatted(superblock) => self.formatted(superblock, result, now),
            After::Switched(superblock) => self.switched(superblock, result, now, out),
            After::Committed(batch) => self.committed(batch, result, now, out),
            After::Rotated(superblock, blocks) => self.rotated(superblock, blocks, result, out),
            After::CheckpointPiece => self.checkpoint_piece_done(result, out),
            After::CheckpointDone => self.checkpoint_done(result),
            After::Swept => {}
            After::CloseSynced => self.close_synced = true,
            After::Settled(run) => self.settled(run, result, now, out),
        }
    }

    /// Abandons the journal block that is being written. Returns the tickets (numbers) of its
    /// requests, with which the caller answers them.
    pub(super) fn take_committing(&mut self) -> Vec<Ticket> {
        match self.lanes[LaneName::Journal as usize].abandon() {
            Some(After::Committed(batch)) => batch.iter().map(|wanted| wanted.ticket).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the highest sequence number up to which all records are written or will never be
    /// written.
    fn written_up_to(&self) -> u64 {
        let windows = self
            .window
            .iter()
            .map(Window::records)
            .chain(self.writes.iter().map(WindowWrite::records));
        let unwritten = windows.flatten().map(|&id| self.index.get(id).sequence);
        let lowest = unwritten.chain(self.forgetting.lowest_waiting()).min();
        lowest.map_or(self.sequence, |lowest| lowest - 1)
    }

    /// Removes the entries of records that are durably overwritten. Also drops the tombstones that
    /// only these records needed.
    fn remove_overwritten(&mut self, entries: Vec<EntryId>) {
        let had_doubts = self.has_doubts();
        for id in entries {
            let key = self.index.get(id).key;
            self.index.remove(id);
            self.release_tombstone(key);
        }
        if had_doubts && !self.has_doubts() {
            self.release_tombstones();
        }
    }

    /// After a failed write or sync, marks entries as leftovers again, because their old bytes may
    /// still be on disk.
    pub(super) fn restore_leftovers(&mut self, entries: Vec<EntryId>) {
        for id in entries {
            self.index.set_state(id, EntryState::Leftover);
        }
    }

    /// Starts a sync if many invalid records are overwritten. Afterwards the index and the journal
    /// can drop them, which bounds their size.
    pub(super) fn sweep(&mut self, out: &mut Outbox) {
        let urgent = (self.forgetting.crowded || self.has_doubts()) && !self.overwritten.is_empty();
        let due = self.overwritten.len() >= SWEEP_AT || urgent;
        if self.lifecycle.phase() == Phase::Serving && due && self.idle(LaneName::Checkpoint) {
            self.run(LaneName::Checkpoint, vec![IoStep::Sync], After::Swept, out);
        }
    }
}
