//! Writes and syncs that must follow each other, one script at a time, and what a sync makes
//! durable.

use crate::contract::Outbox;
use crate::superblock::Superblock;
use crate::webcosm::Webcosm;
use crate::webcosm::finish::CloseStep;
use crate::webcosm::format::geometry::{LogName, Segment, Sequence};
use crate::webcosm::io::Pending;
use crate::webcosm::tombstones::forget::{Commit, Rotation};
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError, IoOp};
use std::collections::VecDeque;

/// One step of a script.
pub enum Step {
    /// Writes a buffer at a byte offset.
    Write(u64, IoBuffer),
    /// The same, of a segment's summary: should it fail, the segment is void and the script goes
    /// on.
    Summary(Segment, u64, IoBuffer),
    /// Makes completed writes durable.
    Sync,
}

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

/// The script that runs.
pub struct Script {
    steps: VecDeque<Step>,
    after: After,
    summary: Option<Segment>,
}

impl Script {
    /// What follows it.
    pub fn into_after(self) -> After {
        self.after
    }
}

impl Webcosm {
    /// Starts a script; none may run.
    pub(crate) fn run(&mut self, steps: Vec<Step>, after: After, now: Instant, out: &mut Outbox) {
        assert!(self.script.is_none(), "one script at a time");
        self.script = Some(Script { steps: steps.into(), after, summary: None });
        self.next_step(now, out);
    }

    fn next_step(&mut self, now: Instant, out: &mut Outbox) {
        let script = self.script.as_mut().expect("called while a script runs");
        let file = self.file;
        script.summary = None;
        match script.steps.pop_front() {
            Some(Step::Write(offset, buffer)) => {
                self.submit(IoOp::Write { file, offset, buffer }, Pending::Script(None), out);
            }
            Some(Step::Summary(segment, offset, buffer)) => {
                script.summary = Some(segment);
                self.submit(IoOp::Write { file, offset, buffer }, Pending::Script(None), out);
            }
            Some(Step::Sync) => {
                let synced = (self.ends_if_synced(), self.sync_failures);
                self.submit(IoOp::Sync { file }, Pending::Script(Some(synced)), out);
            }
            None => {
                let script = self.script.take().expect("just seen");
                self.script_done(script.after, Ok(()), now, out);
            }
        }
    }

    /// The two copies of a superblock, one durable before the other is touched.
    pub(crate) fn superblock_steps(superblock: &Superblock) -> [Step; 4] {
        let page = superblock.encode();
        let copy = |place: u64| Step::Write(place * page.len() as u64, IoBuffer::copy_of(&page));
        [copy(0), Step::Sync, copy(1), Step::Sync]
    }

    pub(crate) fn script_step_done(
        &mut self,
        synced: Option<([Sequence; 2], u32)>,
        result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        let mut result = match synced {
            Some(synced) => self.sync_done(synced, result),
            None => result,
        };
        if let (Some(segment), Err(_)) =
            (self.script.as_ref().and_then(|script| script.summary), result)
        {
            self.void(segment);
            result = Ok(());
        }
        match result {
            Ok(()) => self.next_step(now, out),
            Err(_) => {
                if let Some(script) = self.script.take() {
                    self.script_done(script.after, result, now, out);
                }
            }
        }
    }

    /// When a sync fails, the system gives up writes that no later sync makes durable; from then on
    /// no more summaries are known to be durable.
    fn sync_done(
        &mut self,
        (ends, failures_before): ([Sequence; 2], u32),
        result: Result<(), IoError>,
    ) -> Result<(), IoError> {
        let result = match result {
            Ok(()) if failures_before != self.sync_failures => Err(IoError::Device),
            result => result,
        };
        if result.is_err() {
            self.sync_failures += 1;
        } else if self.sync_failures == 0 {
            for log in LogName::ALL {
                let durable_end = &mut self.logs[log as usize].seals.durable_end;
                *durable_end = ends[log as usize].max(*durable_end);
                self.forgetting.release(log, *durable_end);
            }
        }
        result
    }

    fn script_done(
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
