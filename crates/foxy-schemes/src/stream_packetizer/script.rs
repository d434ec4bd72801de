//! Scripts of writes and syncs that must follow each other, and what a durable sync frees.

use super::StreamPacketizer;
use super::facts::WantedForget;
use super::pending::{LaneName, Pending, Synced};
use super::state::Phase;
use super::window::{Flight, Window};
use crate::index::{EntryId, EntryState};
use foxy_base::Instant;
use foxy_device::IoError;
use foxy_store::contract::{Outbox, Ticket};
use foxy_store::one_file::io_sequence::{Advance, IoStep};
use foxy_store::one_file::superblock::Superblock;

/// What to do once a script has ended.
pub enum After {
    /// The fresh store is ready.
    Formatted(Superblock),
    /// This opening is durable.
    Switched(Superblock),
    /// These facts are durable.
    Committed(Vec<WantedForget>),
    /// The journal has moved to its other half, whose first blocks are taken.
    Rotated(Superblock, u32),
    /// A piece of a checkpoint is written.
    CheckpointPiece,
    /// The checkpoint is durable.
    CheckpointDone,
    /// Overwritten leftovers are gone for good.
    Swept,
    /// All that was buffered is durable.
    CloseSynced,
    /// A record that might not have been durable is.
    Settled(crate::pages::Run),
}

/// Overwritten leftovers that make a sync of their own worth while.
const SWEEP_AT: usize = 2048;

impl StreamPacketizer {
    /// Whether a lane has nothing to do.
    pub(super) fn idle(&self, lane: LaneName) -> bool {
        self.lanes[lane as usize].is_idle()
    }

    /// Starts a sequence in an idle lane.
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

    /// When a sync fails, the system gives up writes that no later sync makes durable, and another
    /// sync in flight may have been meant to cover them: it counts as failed too. From then on, as
    /// before recovery has ended, nothing more is known to be durable.
    fn sync_done(&mut self, synced: Synced, result: Result<(), IoError>) -> Result<(), IoError> {
        let Synced { overwritten, durable, failures_before } = synced;
        let result = self.sync_failures.judge(failures_before, result);
        if result.is_ok() {
            let recovered =
                matches!(self.life.phase(), Phase::Serving | Phase::Closing) && !self.blind();
            if recovered && self.sync_failures.is_intact() {
                self.durable = self.durable.max(durable);
            }
            self.bury(overwritten);
        } else {
            self.resurrect(overwritten);
            let later = std::mem::take(&mut self.overwritten);
            self.resurrect(later);
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

    /// Tickets of the removals and puts whose facts are being committed; the script is given up.
    pub(super) fn take_committing(&mut self) -> Vec<Ticket> {
        match self.lanes[LaneName::Journal as usize].abandon() {
            Some(After::Committed(batch)) => batch.iter().map(|wanted| wanted.ticket).collect(),
            _ => Vec::new(),
        }
    }

    /// Records up to this sequence number are written completely, or are not going to be.
    fn written_up_to(&self) -> u64 {
        let windows =
            self.window.iter().map(Window::records).chain(self.flights.iter().map(Flight::records));
        let unwritten = windows.flatten().map(|&id| self.index.get(id).sequence);
        let lowest = unwritten.chain(self.forgetting.lowest_waiting()).min();
        lowest.map_or(self.sequence, |lowest| lowest - 1)
    }

    /// Drops leftovers that are durably overwritten, and the facts that only they needed.
    fn bury(&mut self, entries: Vec<EntryId>) {
        let was_blind = self.blind();
        for id in entries {
            let key = self.index.get(id).key;
            self.index.remove(id);
            self.release_fact(key);
        }
        if was_blind && !self.blind() {
            self.release_facts();
        }
    }

    /// A write or sync failed: what it should have overwritten may still be there.
    pub(super) fn resurrect(&mut self, entries: Vec<EntryId>) {
        for id in entries {
            self.index.set_state(id, EntryState::Leftover);
        }
    }

    /// Makes overwritten leftovers durably gone when there are many, so that memory and journal
    /// stay bounded.
    pub(super) fn sweep(&mut self, out: &mut Outbox) {
        let urgent = (self.forgetting.crowded || self.blind()) && !self.overwritten.is_empty();
        let due = self.overwritten.len() >= SWEEP_AT || urgent;
        if self.life.phase() == Phase::Serving && due && self.idle(LaneName::Checkpoint) {
            self.run(LaneName::Checkpoint, vec![IoStep::Sync], After::Swept, out);
        }
    }
}
