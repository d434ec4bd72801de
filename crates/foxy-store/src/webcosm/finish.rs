//! Closing in order, and giving up when the store cannot be opened.

use crate::contract::{AbsentReason, Answer, Outbox, RefusedReason, Ticket};
use crate::status::OpenStoreError;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::LogName;
use crate::webcosm::io::Pending;
use crate::webcosm::recovery::phase::Phase;
use crate::webcosm::tombstones::io_sequence::{After, Script, Step};
use foxy_base::Instant;
use foxy_device::IoOp;

/// How far a closing has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CloseStep {
    /// What waits is being written.
    #[default]
    Writing,
    /// All of it is durable, as far as that could be.
    Synced,
    /// The journal says so, as far as that could be.
    Marked,
}

impl Webcosm {
    /// A store that serves writes out what it has; in any other phase there is nothing to write.
    pub(crate) fn close(&mut self, ticket: Ticket, out: &mut Outbox) {
        match self.phase {
            Phase::Serving | Phase::Rebuilding => {
                self.enter(Phase::Closing);
                self.closing = Some(ticket);
                self.uses.stop_reading();
            }
            Phase::Closing | Phase::Closed => {
                out.reply(ticket, Answer::Refused(RefusedReason::Closed))
            }
            _ => {
                self.closing = Some(ticket);
                self.finish_close(out);
            }
        }
    }

    /// Takes the next step towards being closed, once what was begun before has ended.
    pub(crate) fn progress_close(&mut self, out: &mut Outbox) {
        let waits = self.logs.iter().any(|log| !log.stage.is_empty() && log.has_room());
        let busy = !self.flying.is_idle()
            || waits
            || self.reads_in_flight > 0
            || !self.forgetting.is_idle()
            || self.uses.is_busy()
            || self.script.is_some();
        if busy {
            return;
        }
        LogName::ALL.into_iter().for_each(|log| self.seal(log, out));
        if self.logs.iter().any(|log| log.seals.end < log.next) {
            return;
        }
        match self.close_step {
            CloseStep::Writing => {
                self.run(vec![Step::Sync], After::CloseSynced, Instant::ZERO, out)
            }
            CloseStep::Synced => {
                self.close_step = CloseStep::Marked;
                let steps = self.last_words();
                if steps.is_empty() {
                    return self.finish_close(out);
                }
                self.run(steps, After::CloseMarked, Instant::ZERO, out);
            }
            CloseStep::Marked => self.finish_close(out),
        }
    }

    fn finish_close(&mut self, out: &mut Outbox) {
        self.abandon(out);
        self.submit(IoOp::Close { file: self.file }, Pending::CloseFile, out);
        self.enter(Phase::Closed);
        if let Some(ticket) = self.closing.take() {
            out.reply(ticket, Answer::Closed);
        }
    }

    /// Answers gets whose pages are still being read.
    fn abandon_reads(&mut self, reason: AbsentReason, out: &mut Outbox) {
        self.pending.retain(|_, pending| match pending {
            Pending::Read(read) => {
                out.reply(read.ticket, Answer::Absent(reason));
                false
            }
            _ => true,
        });
        self.reads_in_flight = 0;
    }

    /// Answers everything that still waits.
    fn abandon(&mut self, out: &mut Outbox) {
        self.abandon_reads(AbsentReason::Closed, out);
        let committing = match self.script.take().map(Script::into_after) {
            Some(After::Committed(commit)) => commit.batch,
            _ => Vec::new(),
        };
        let tickets =
            committing.into_iter().map(|wanted| wanted.ticket).chain(self.forgetting.give_up());
        for ticket in tickets {
            out.reply(ticket, Answer::Refused(RefusedReason::Closed));
        }
    }

    /// The store cannot be used: the proxy goes on without it.
    pub(crate) fn fail(&mut self, error: OpenStoreError, out: &mut Outbox) {
        self.give_up(error);
        self.abandon_reads(self.unable().0, out);
        self.submit(IoOp::Close { file: self.file }, Pending::CloseFile, out);
    }

    pub(crate) fn give_up(&mut self, error: OpenStoreError) {
        self.failure = Some(error);
        self.enter(Phase::Unusable);
    }
}
