//! Closes the store. Also handles a store that cannot be opened.

use super::StreamPacketizer;
use super::pending::{LaneName, Pending};
use super::phase::Phase;
use super::sequences::After;
use foxy_base::Instant;
use foxy_store::contract::{AbsentReason, Answer, Outbox, RefusedReason, Ticket};
use foxy_store::one_file::io_sequence::IoStep;
use foxy_store::status::OpenStoreError;

impl StreamPacketizer {
    /// Starts to close the store. Only a store that serves has data to write.
    pub(super) fn close(&mut self, ticket: Ticket, out: &mut Outbox) {
        match self.lifecycle.phase() {
            Phase::Serving => {
                self.lifecycle.enter(Phase::Closing);
                self.closing = Some(ticket);
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

    /// Takes the next step of closing once all earlier operations have finished.
    pub(super) fn progress_close(&mut self, _now: Instant, out: &mut Outbox) {
        self.flush(out);
        let busy = !self.writes.is_empty()
            || self.reads_in_flight > 0
            || !self.forgetting.is_idle()
            || !self.idle(LaneName::Journal)
            || !self.idle(LaneName::Checkpoint);
        if busy {
            return;
        }
        if !self.close_synced {
            return self.run(LaneName::Checkpoint, vec![IoStep::Sync], After::CloseSynced, out);
        }
        let begun = !self.complete_checkpoint_tried && self.begin_complete_checkpoint(out);
        self.complete_checkpoint_tried = true;
        if !begun {
            self.finish_close(out);
        }
    }

    fn finish_close(&mut self, out: &mut Outbox) {
        self.abandon(out);
        self.file.close(out);
        self.lifecycle.enter(Phase::Closed);
        if let Some(ticket) = self.closing.take() {
            out.reply(ticket, Answer::Closed);
        }
    }

    /// Answers all waiting requests with an error, because the store is closed.
    fn abandon(&mut self, out: &mut Outbox) {
        for pending in self.file.take(|pending| matches!(pending, Pending::Read(_))) {
            if let Pending::Read(read) = pending {
                out.reply(read.ticket, Answer::Absent(AbsentReason::Closed));
            }
        }
        let mut tickets = self.take_waiting();
        tickets.extend(self.take_committing());
        for ticket in tickets {
            out.reply(ticket, Answer::Refused(RefusedReason::Closed));
        }
        self.reads_in_flight = 0;
    }

    /// Marks the store as unusable. The proxy continues without it.
    pub(super) fn fail(&mut self, error: OpenStoreError, out: &mut Outbox) {
        self.lifecycle.fail(error);
        self.file.close(out);
    }
}
