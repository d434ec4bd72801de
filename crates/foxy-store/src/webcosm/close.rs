//! Closes a store step by step: write the rest, sync, mark the journal, close the file.

use crate::contract::{AbsentReason, Answer, RefusedReason, Ticket};
use crate::one_file::io_sequence::IoStep;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::LogName;
use crate::webcosm::phase::Phase;
use crate::webcosm::tombstones::After;

/// A close request in progress.
pub struct Closing {
    ticket: Ticket,
    step: CloseStep,
}

#[derive(Clone, Copy)]
enum CloseStep {
    /// Writes all buffered records.
    Writing,
    /// The records are synced, unless the disk failed.
    Synced,
    /// The journal states that everything is durable, unless the disk failed.
    Marked,
}

impl Closing {
    pub const fn synced(&mut self) {
        self.step = CloseStep::Synced;
    }
}

impl Webcosm {
    /// Starts to close the store. Only a store that serves requests has something to write.
    pub(super) fn close(&mut self, ticket: Ticket) {
        match self.cx.phase() {
            Phase::Serving | Phase::Rebuilding => {
                self.cx.enter(Phase::Closing);
                self.closing = Some(Closing { ticket, step: CloseStep::Writing });
                self.uses.stop_reading();
            }
            Phase::Closing | Phase::Closed => {
                self.cx.reply(ticket, Answer::Refused(RefusedReason::Closed));
            }
            _ => self.finish_close(ticket),
        }
    }

    /// Takes the next step of a close, once all earlier work has finished.
    pub(super) fn progress_close(&mut self) {
        let Self { cx, writer, tombstones, uses, closing, .. } = self;
        let Some(closing) = closing else { return };
        let is_busy =
            !writer.is_idle() || cx.reads_in_flight > 0 || !tombstones.is_idle() || uses.is_busy();
        if is_busy {
            return;
        }
        LogName::ALL.into_iter().for_each(|log| writer.seal(cx, tombstones, log));
        if writer.logs().iter().any(|log| log.seals.end < log.next) {
            return;
        }
        match closing.step {
            CloseStep::Writing => {
                return tombstones.run(cx, writer, vec![IoStep::Sync], After::CloseSynced);
            }
            CloseStep::Synced => {
                closing.step = CloseStep::Marked;
                let steps = tombstones.final_steps(cx, writer);
                if !steps.is_empty() {
                    return tombstones.run(cx, writer, steps, After::CloseMarked);
                }
            }
            CloseStep::Marked => {}
        }
        let ticket = closing.ticket;
        self.closing = None;
        self.finish_close(ticket);
    }

    /// Answers all waiting requests and closes the file.
    fn finish_close(&mut self, ticket: Ticket) {
        self.cx.abandon_reads(AbsentReason::Closed);
        for waiting in self.tombstones.abandon() {
            self.cx.reply(waiting, Answer::Refused(RefusedReason::Closed));
        }
        self.cx.file.close(&mut self.cx.out);
        self.cx.enter(Phase::Closed);
        self.cx.reply(ticket, Answer::Closed);
    }
}
