//! Gets: from the buffers when the record is still there, else one read of the pages that cover it,
//! verified.

use super::StreamPacketizer;
use super::pending::{Pending, PendingRead};
use super::state::Phase;
use crate::index::EntryState;
use foxy_device::{IoBuffer, IoError};
use foxy_store::contract::{AbsentReason, Answer, Key, Outbox, Ticket};
use foxy_store::layout::{SLOT, SLOTS_PER_PAGE};
use foxy_store::record;

impl StreamPacketizer {
    pub(super) fn get(&mut self, ticket: Ticket, key: Key, out: &mut Outbox) {
        if !matches!(self.life.phase(), Phase::Serving | Phase::Scanning) {
            return out.reply(ticket, Answer::Absent(self.life.unable().0));
        }
        let Some(id) = self.index.live_of(key) else {
            let reason = match self.life.phase() {
                Phase::Scanning => AbsentReason::Recovering,
                _ => AbsentReason::NotIndexed,
            };
            return out.reply(ticket, Answer::Absent(reason));
        };
        self.index.touch(id);
        if let Some(record) = self.buffered.get(&id) {
            return out.reply(ticket, Answer::Found(record.clone()));
        }
        if self.reads_in_flight >= self.settings.store.waiting_reads {
            return out.reply(ticket, Answer::Absent(AbsentReason::Busy));
        }
        self.reads_in_flight += 1;
        let entry = self.index.get(id);
        let run = entry.pages();
        let pending = PendingRead { ticket, key, sequence: entry.sequence, entry: id };
        let offset = self.layout.data_offset(run.first);
        self.file.read(offset, run.bytes(), Pending::Read(pending), out);
    }

    /// A record that was replaced, removed or evicted meanwhile is not returned, whatever was read.
    pub(super) fn read_done(
        &mut self,
        pending: PendingRead,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        self.reads_in_flight -= 1;
        let PendingRead { ticket, key, sequence, entry: id } = pending;
        let entry = *self.index.get(id);
        if entry.state != EntryState::Live || entry.key != key || entry.sequence != sequence {
            return out.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        }
        let skip = (entry.first_slot % SLOTS_PER_PAGE) as usize * SLOT;
        let answer = match result {
            Err(error) => {
                if error == IoError::Device {
                    self.pages.retire(entry.pages());
                }
                Err(AbsentReason::DeviceFailed(error))
            }
            Ok(buffer) => record::decode(buffer, skip, key, sequence, self.file.secret())
                .map_err(AbsentReason::from),
        };
        match answer {
            Ok(record) => out.reply(ticket, Answer::Found(record)),
            Err(reason) => {
                self.drop_live(id);
                out.reply(ticket, Answer::Absent(reason));
            }
        }
    }
}
