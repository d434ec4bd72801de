//! Closing in order, and giving up when the store cannot be opened.

use crate::contract::{AbsentReason, Answer, Outbox, RefusedReason, Ticket};
use crate::one_file::io_sequence::IoStep;
use crate::status::OpenStoreError;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::LogName;
use crate::webcosm::io::Pending;
use crate::webcosm::recovery::phase::Phase;
use crate::webcosm::tombstones::io_sequence::After;
use foxy_base::Instant;

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
        match self.life.phase() {
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
            || !self.sequence.is_idle();
        if busy {
            return;
        }
        LogName::ALL.into_iter().for_each(|log| self.seal(log, out));
        if self.logs.iter().any(|log| log.seals.end < log.next) {
            return;
        }
        match self.close_step {
            CloseStep::Writing => {
                self.run(vec![IoStep::Sync], After::CloseSynced, Instant::ZERO, out)
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
        self.file.close(out);
        self.enter(Phase::Closed);
        if let Some(ticket) = self.closing.take() {
            out.reply(ticket, Answer::Closed);
        }
    }

    /// Answers gets whose pages are still being read.
    fn abandon_reads(&mut self, reason: AbsentReason, out: &mut Outbox) {
        for pending in self.file.take(|pending| matches!(pending, Pending::Read(_))) {
            if let Pending::Read(read) = pending {
                out.reply(read.ticket, Answer::Absent(reason));
            }
        }
        self.reads_in_flight = 0;
    }

    /// Answers everything that still waits.
    fn abandon(&mut self, out: &mut Outbox) {
        self.abandon_reads(AbsentReason::Closed, out);
        let committing = match self.sequence.abandon() {
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
        self.life.fail(error);
        self.abandon_reads(self.life.unable().0, out);
        self.file.close(out);
    }
}
