//! Closes a store in steps: write the buffered records, sync the file, state in the journal that
//! all records are durable, close the file.

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

/// The last step that the close has reached.
#[derive(Clone, Copy)]
enum CloseStep {
    /// The writer still writes the buffered records.
    Writing,
    /// The sync that makes the records durable has ended. The sync may have failed.
    Synced,
    /// The journal states on disk that all records are durable, unless the write of this statement
    /// failed.
    Marked,
}

impl Closing {
    pub const fn synced(&mut self) {
        self.step = CloseStep::Synced;
    }
}

impl Webcosm {
    /// Starts to close the store. Before the phases `Rebuilding` and `Serving`, the store has no
    /// buffered records, so it closes at once. A second close request is refused.
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

    /// Takes the next step of a close, unless an earlier write or read is still in flight.
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

    /// Answers all waiting requests, closes the file and answers the close request.
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
