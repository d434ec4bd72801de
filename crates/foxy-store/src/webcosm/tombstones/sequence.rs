//! Runs lists of writes and syncs, each in a fixed order. Only one list runs at a time.

use crate::one_file::io_sequence::{Advance, FailuresBefore, IoStep};
use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{LogName, Sequence};
use crate::webcosm::pending::{Pending, PendingStep};
use crate::webcosm::tombstones::{After, Steps, Tombstones};
use crate::webcosm::write::Writer;
use foxy_base::Instant;
use foxy_device::IoError;
use std::time::Duration;

/// Time to wait before the store repeats failed background work (work for which no request waits).
const BACK_OFF: Duration = Duration::from_secs(1);

impl Tombstones {
    /// Starts a list of at least one step. The caller makes sure that no other list is running.
    pub fn run(&mut self, cx: &mut Context, writer: &Writer, steps: Steps, after: After) {
        self.sequence.start(steps, after);
        let ended = self.next_step(cx, writer, Ok(()));
        assert!(ended.is_none(), "a sequence has a step");
    }

    fn next_step(
        &mut self,
        cx: &mut Context,
        writer: &Writer,
        result: Result<(), IoError>,
    ) -> Option<After> {
        match self.sequence.advance(result) {
            Advance::Step(IoStep::Write(offset, buffer)) => {
                cx.write(offset, buffer, Pending::Step(PendingStep::Write));
            }
            Advance::Step(IoStep::Optional(segment, offset, buffer)) => {
                let pending = Pending::Step(PendingStep::Summary(segment));
                cx.write(offset, buffer, pending);
            }
            Advance::Step(IoStep::Sync) => {
                let ends = writer.ends_if_synced(self);
                let step = PendingStep::Sync(ends, self.sync_failures.before());
                cx.sync(Pending::Step(step));
            }
            Advance::Ended(after) => return Some(after),
            Advance::Idle => {}
        }
        None
    }

    /// Processes the result of a step and starts the next step. After the last step of the list,
    /// returns what to do next and the last result.
    pub fn step_done(
        &mut self,
        cx: &mut Context,
        writer: &mut Writer,
        step: PendingStep,
        mut result: Result<(), IoError>,
    ) -> Option<(After, Result<(), IoError>)> {
        match step {
            PendingStep::Sync(ends, before) => {
                result = self.sync_done(writer, ends, before, result);
            }
            PendingStep::Summary(segment) if result.is_err() => {
                writer.void(cx, self, segment);
                result = Ok(());
            }
            PendingStep::Summary(_) | PendingStep::Write => {}
        }
        self.next_step(cx, writer, result).map(|after| (after, result))
    }

    /// Processes the result of a sync. If any sync has failed so far, a sync that succeeds does not
    /// prove that summaries are durable.
    fn sync_done(
        &mut self,
        writer: &mut Writer,
        ends: [Sequence; 2],
        before: FailuresBefore,
        result: Result<(), IoError>,
    ) -> Result<(), IoError> {
        let result = self.sync_failures.judge(before, result);
        if result.is_ok() && self.sync_failures.is_intact() {
            for log in LogName::ALL {
                let durable_end = &mut writer.log_mut(log).seals.durable_end;
                *durable_end = ends[log as usize].max(*durable_end);
                self.release(log, *durable_end);
            }
        }
        result
    }

    pub fn back_off(&mut self, now: Instant) {
        self.retry_at = now + BACK_OFF;
    }
}
