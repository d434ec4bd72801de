//! Gets: from memory while the record waits or is being written, else one read, verified.

use super::Webcosm;
use super::index::{Extent, Known, Tag};
use super::io::Pending;
use super::packed;
use crate::contract::{AbsentReason, Answer, Key, Outbox, Record, Ticket};
use crate::layout::PAGE;
use crate::record;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};

/// A get whose pages are being read.
#[derive(Debug)]
pub struct PendingRead {
    /// Who waits.
    pub ticket: Ticket,
    key: Key,
    tag: Tag,
    known: Known,
    stamp: u64,
}

impl Webcosm {
    pub(super) fn get(&mut self, ticket: Ticket, key: Key, now: Instant, out: &mut Outbox) {
        if !self.phase.reads() {
            return out.reply(ticket, Answer::Absent(self.unable().0));
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
            let reason =
                if self.phase.learns() { AbsentReason::Recovering } else { AbsentReason::NotIndexed };
            return out.reply(ticket, Answer::Absent(reason));
        };
        if self.reads_in_flight >= self.settings.waiting_reads {
            return out.reply(ticket, Answer::Absent(AbsentReason::Busy));
        }
        self.index.touch(tag);
        self.uses.changed = true;
        self.reads_in_flight += 1;
        let (_, stamp) = self.position(known.place);
        let (offset, length) = self.reach(known);
        self.submit_read(offset, length, Pending::Read(PendingRead { ticket, key, tag, known, stamp }), out);
    }

    /// The bytes of the file that hold a record, in whole pages of its segment.
    pub(super) fn reach(&self, known: Known) -> (u64, usize) {
        let (slot, byte) = self.geometry.find(known.place);
        let page = byte / PAGE as u64;
        let pages = u64::from(known.extent.pages()).min(u64::from(self.geometry.segment_pages) - page);
        let offset = self.geometry.offset(slot, page as u32);
        (offset, usize::try_from(pages).expect("few pages") * PAGE)
    }

    /// Where a record begins within its first page.
    pub(super) fn skip(&self, known: Known) -> usize {
        let (_, byte) = self.geometry.find(known.place);
        usize::try_from(byte).expect("segments are small") % PAGE
    }

    /// A record that was replaced, removed or given up meanwhile is not returned, whatever was read. One that could not be
    /// read stays known: it may still lie on disk, so whoever replaces it must have it forgotten.
    pub(super) fn read_done(
        &mut self,
        pending: PendingRead,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        self.reads_in_flight -= 1;
        let PendingRead { ticket, key, tag, known, stamp } = pending;
        let still = self.index.get(tag).is_some_and(|other| other.place == known.place);
        if !still || self.is_staged(key) {
            return out.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        }
        let found = match result {
            Err(error) => Err(AbsentReason::DeviceFailed(error)),
            Ok(buffer) => self.record_in(buffer, known, key, stamp),
        };
        if let Ok(record) = &found {
            self.copies.earn(record.len());
        }
        out.reply(ticket, found.map_or_else(Answer::Absent, Answer::Found));
    }

    fn record_in(
        &self,
        buffer: IoBuffer,
        known: Known,
        key: Key,
        stamp: u64,
    ) -> Result<Record, AbsentReason> {
        match known.extent {
            Extent::Packed => packed::decode(buffer.as_ref(), key, stamp, &self.secret),
            Extent::Pages(_) => {
                record::decode(buffer, self.skip(known), key, stamp, &self.secret).map_err(AbsentReason::from)
            }
        }
    }
}
