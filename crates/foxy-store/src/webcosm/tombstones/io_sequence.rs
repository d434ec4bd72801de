//! Writes and syncs that must follow each other, one script at a time, and what a sync makes
//! durable.

use crate::contract::Outbox;
use crate::one_file::io_sequence::{Advance, FailuresBefore, IoStep};
use crate::one_file::superblock::Superblock;
use crate::webcosm::Webcosm;
use crate::webcosm::finish::CloseStep;
use crate::webcosm::format::geometry::{LogName, Segment, Sequence};
use crate::webcosm::io::{Pending, PendingStep};
use crate::webcosm::tombstones::forget::{Commit, Rotation};
use foxy_base::Instant;
use foxy_device::IoError;

/// Steps of a sequence. A summary that cannot be written makes its segment void, and the sequence
/// goes on.
pub type Steps = Vec<IoStep<Segment>>;

/// What to do once a script has ended.
pub enum After {
    /// The fresh store is ready.
    Formatted(Superblock),
    /// The summaries that were missing are written.
    Resealed,
    /// This opening is durable.
    Switched(Superblock, u32),
    /// A block of the journal is durable.
    Committed(Commit),
    /// The journal has moved to its other half, whose first blocks are taken; as many facts not
    /// written before are there.
    Rotated(Rotation),
    /// Summaries are durable.
    Synced,
    /// All that waited is durable.
    CloseSynced,
    /// The journal says that all is durable.
    CloseMarked,
}

impl Webcosm {
    /// Starts a sequence; none may run.
    pub(crate) fn run(&mut self, steps: Steps, after: After, now: Instant, out: &mut Outbox) {
        self.sequence.start(steps, after);
        self.next_step(Ok(()), now, out);
    }

    fn next_step(&mut self, result: Result<(), IoError>, now: Instant, out: &mut Outbox) {
        match self.sequence.advance(result) {
            Advance::Step(IoStep::Write(offset, buffer)) => {
                self.file.write(offset, buffer, Pending::Step(PendingStep::Write), out);
            }
            Advance::Step(IoStep::Optional(segment, offset, buffer)) => {
                let pending = Pending::Step(PendingStep::Summary(segment));
                self.file.write(offset, buffer, pending, out);
            }
            Advance::Step(IoStep::Sync) => {
                let step = PendingStep::Sync(self.ends_if_synced(), self.sync_failures.before());
                self.file.sync(Pending::Step(step), out);
            }
            Advance::Ended(after) => self.sequence_done(after, result, now, out),
            Advance::Idle => {}
        }
    }

    pub(crate) fn step_done(
        &mut self,
        step: PendingStep,
        mut result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        match step {
            PendingStep::Sync(ends, before) => result = self.sync_done(ends, before, result),
            PendingStep::Summary(segment) if result.is_err() => {
                self.void(segment);
                result = Ok(());
            }
            PendingStep::Summary(_) | PendingStep::Write => {}
        }
        self.next_step(result, now, out);
    }

    /// Once a sync has failed, no more summaries are known to be durable.
    fn sync_done(
        &mut self,
        ends: [Sequence; 2],
        before: FailuresBefore,
        result: Result<(), IoError>,
    ) -> Result<(), IoError> {
        let result = self.sync_failures.judge(before, result);
        if result.is_ok() && self.sync_failures.is_intact() {
            for log in LogName::ALL {
                let durable_end = &mut self.logs[log as usize].seals.durable_end;
                *durable_end = ends[log as usize].max(*durable_end);
                self.forgetting.release(log, *durable_end);
            }
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
            After::Resealed => self.resealed(result, now, out),
            After::Switched(superblock, blocks) => {
                self.switched(superblock, blocks, result, now, out)
            }
            After::Committed(commit) => self.committed(commit, result, now, out),
            After::Rotated(rotation) => self.rotated(rotation, result, out),
            After::Synced => {
                if result.is_err() {
                    self.back_off(now);
                }
            }
            After::CloseSynced => self.close_step = CloseStep::Synced,
            After::CloseMarked => {}
        }
    }
}
