//! Gets: from memory while the record waits or is being written, else one read, verified.

use crate::contract::{AbsentReason, Answer, Key, Outbox, Ticket};
use crate::webcosm::Webcosm;
use crate::webcosm::format::location::Spot;
use crate::webcosm::index::Tag;
use crate::webcosm::io::Pending;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};

/// A get whose pages are being read.
#[derive(Debug)]
pub struct PendingRead {
    /// Who waits.
    pub ticket: Ticket,
    key: Key,
    tag: Tag,
    place: u64,
    spot: Spot,
}

impl Webcosm {
    pub(crate) fn get(&mut self, ticket: Ticket, key: Key, now: Instant, out: &mut Outbox) {
        if !self.life.phase().reads() {
            return out.reply(ticket, Answer::Absent(self.life.unable().0));
        }
        let tag = self.tag(key);
        if let Some(record) = self.waiting(key) {
            let answer = Answer::Found(record.clone());
            self.index.touch(tag);
            out.reply(ticket, answer);
            if self.prove(key, tag, now) {
                self.after_event(now, out);
            }
            return;
        }
        let Some(known) = self.index.get(tag) else {
            let reason = if self.life.phase().learns() {
                AbsentReason::Recovering
            } else {
                AbsentReason::NotIndexed
            };
            return out.reply(ticket, Answer::Absent(reason));
        };
        if self.reads_in_flight >= self.settings.waiting_reads {
            return out.reply(ticket, Answer::Absent(AbsentReason::Busy));
        }
        self.index.touch(tag);
        self.uses.changed = true;
        self.index.let_looks_count(true);
        self.reads_in_flight += 1;
        let spot = self.index.spot(known);
        let read = PendingRead { ticket, key, tag, place: known.place, spot };
        self.file.read(spot.offset, spot.length, Pending::Read(read), out);
    }

    /// A record that was replaced, removed or given up meanwhile is not returned, whatever was
    /// read. One that could not be read stays known: it may still lie on disk, so whoever replaces
    /// it must have it forgotten.
    pub(crate) fn read_done(
        &mut self,
        pending: PendingRead,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        self.reads_in_flight -= 1;
        let PendingRead { ticket, key, tag, place, spot } = pending;
        let still = self.index.get(tag).is_some_and(|known| known.place == place);
        if !still || self.is_staged(key) {
            return out.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        }
        let found = match result {
            Err(error) => Err(AbsentReason::DeviceFailed(error)),
            Ok(buffer) => spot.record(key, buffer, self.file.secret()),
        };
        if let Ok(record) = &found {
            self.copies.earn(record.len() as u64);
        }
        out.reply(ticket, found.map_or_else(Answer::Absent, Answer::Found));
    }
}
