//! A hit in ufs: open, read, close. What was read is believed only when key, sequence number and
//! checksum are right.

use super::shelf::file_bytes;
use super::{Ufs, UfsJob};
use foxy_device::{FileId, IoBuffer, IoDone, IoError, IoOp, IoOutput};
use foxy_store::contract::{AbsentReason, Answer, Key, Outbox, Ticket};
use foxy_store::record::{self, RecordError};

/// A get under way.
#[derive(Debug)]
pub(super) struct Get {
    ticket: Ticket,
    key: Key,
    number: u32,
    sequence: u64,
    content: u32,
    file: FileId,
}

impl Ufs {
    pub(super) fn get(&mut self, ticket: Ticket, key: Key, out: &mut Outbox) {
        let Some(number) = self.shelf.find(key) else {
            return out.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        };
        if self.gets >= self.settings.store.waiting_reads || self.jobs.len() >= self.opens_until {
            return out.reply(ticket, Answer::Absent(AbsentReason::Busy));
        }
        self.gets += 1;
        self.shelf.touch(number);
        let slot = self.shelf.slot(number);
        let file = self.take_file();
        let get = Get { ticket, key, number, sequence: slot.sequence, content: slot.content, file };
        self.submit(
            IoOp::Open { file, path: self.mapping.spot(number, slot.place).path() },
            UfsJob::GetOpen(get),
            out,
        );
    }

    pub(super) fn get_opened(&mut self, get: Get, done: &IoDone, out: &mut Outbox) {
        if let Err(error) = done.result {
            self.files.push(get.file.0);
            return self.miss(&get, AbsentReason::DeviceFailed(error), out);
        }
        let buffer = IoBuffer::zeroed(file_bytes(get.content as usize));
        self.submit(IoOp::Read { file: get.file, offset: 0, buffer }, UfsJob::GetRead(get), out);
    }

    pub(super) fn get_read(&mut self, get: Get, done: IoDone, out: &mut Outbox) {
        self.close_file(get.file, out);
        let buffer = match (done.result, done.buffer) {
            (Ok(IoOutput::Moved { count }), Some(buffer)) if count == buffer.len() => buffer,
            (result, _) => {
                let error = result.err().unwrap_or(IoError::Device);
                return self.miss(&get, AbsentReason::DeviceFailed(error), out);
            }
        };
        match record::decode(buffer, 0, get.key, get.sequence, &self.secret) {
            Ok(record) => {
                self.gets -= 1;
                out.reply(get.ticket, Answer::Found(record));
            }
            Err(RecordError::OtherRecord) => self.miss(&get, AbsentReason::KeyMismatch, out),
            Err(_) => self.miss(&get, AbsentReason::ChecksumMismatch, out),
        }
    }

    /// Answers, and gives the record up when what lies there is not it.
    fn miss(&mut self, get: &Get, reason: AbsentReason, out: &mut Outbox) {
        self.gets -= 1;
        out.reply(get.ticket, Answer::Absent(reason));
        let lost = matches!(
            reason,
            AbsentReason::KeyMismatch
                | AbsentReason::ChecksumMismatch
                | AbsentReason::DeviceFailed(IoError::NotFound)
        );
        if lost
            && self.shelf.find(get.key) == Some(get.number)
            && self.shelf.slot(get.number).sequence == get.sequence
        {
            self.forget(get.number, out);
        }
    }
}
