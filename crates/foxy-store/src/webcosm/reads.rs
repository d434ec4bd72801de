//! Serves `get` requests. A record that is still in memory is returned from memory. Any other
//! record takes one disk read, whose bytes are verified.

use crate::contract::{AbsentReason, Answer, Key, Ticket};
use crate::webcosm::Webcosm;
use crate::webcosm::pending::{Pending, PendingRead};
use foxy_device::{IoBuffer, IoError};

impl Webcosm {
    pub(super) fn get(&mut self, ticket: Ticket, key: Key) {
        let Self { cx, writer, tombstones, uses, .. } = self;
        if !cx.phase().reads() {
            return cx.reply(ticket, Answer::Absent(cx.unable().0));
        }
        let tag = cx.tag(key);
        if let Some(record) = writer.get(key) {
            let answer = Answer::Found(record.clone());
            cx.index.touch(tag);
            cx.reply(ticket, answer);
            if writer.prove(cx, tombstones, key, tag) {
                self.after_event();
            }
            return;
        }
        let Some(entry) = cx.index.get(tag) else {
            let reason = if cx.phase().rebuilds() {
                AbsentReason::Recovering
            } else {
                AbsentReason::NotIndexed
            };
            return cx.reply(ticket, Answer::Absent(reason));
        };
        if cx.reads_in_flight >= cx.settings.waiting_reads {
            return cx.reply(ticket, Answer::Absent(AbsentReason::Busy));
        }
        cx.index.touch(tag);
        uses.touched(cx);
        cx.reads_in_flight += 1;
        let location = cx.index.location(entry);
        let read = PendingRead { ticket, key, tag, entry, location };
        cx.read(location.offset, location.length, Pending::Read(read));
    }

    /// Answers a get after its disk read.
    ///
    /// If the record was replaced, removed or discarded during the read, the get finds nothing. If
    /// the record is unreadable, its index entry stays. The record may still be on disk, and the
    /// entry ensures that a replacement first writes a tombstone.
    pub(super) fn read_done(&mut self, read: PendingRead, result: Result<IoBuffer, IoError>) {
        let PendingRead { ticket, key, tag, entry, location } = read;
        self.cx.reads_in_flight -= 1;
        let current = self.cx.index.get(tag);
        let is_current = current.is_some_and(|current| current.place == entry.place);
        if !is_current || self.writer.is_buffered(key) {
            return self.cx.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        }
        let found = result
            .map_err(AbsentReason::DeviceFailed)
            .and_then(|buffer| location.record(key, buffer, self.cx.secret()));
        if let Ok(record) = &found {
            self.reclaimer.copies.earn(record.len() as u64);
        }
        self.cx.reply(ticket, found.map_or_else(Answer::Absent, Answer::Found));
    }
}
