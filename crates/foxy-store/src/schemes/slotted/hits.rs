//! Gets: from memory while the record is held, else read at once or in sorted batches, and always verified.

use super::Slotted;
use super::entries::EntryId;
use super::files::Access;
use super::plan::{OnHit, ReadOrder};
use super::work::Job;
use crate::contract::{AbsentReason, Answer, Key, Outbox, Ticket};
use crate::layout::SLOT;
use crate::record;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};
use smallvec::SmallVec;
use std::collections::HashMap;

#[derive(Clone, Copy, Debug)]
struct Wanted {
    ticket: Ticket,
    key: Key,
    sequence: u64,
    entry: EntryId,
}

#[derive(Debug)]
struct Reading {
    wanted: Wanted,
    parts: SmallVec<[Option<IoBuffer>; 1]>,
    left: usize,
    error: Option<IoError>,
}

/// Gets under way.
#[derive(Debug)]
pub struct Hits {
    order: ReadOrder,
    waiting: Vec<Wanted>,
    since: Instant,
    reading: HashMap<u64, Reading>,
    next: u64,
}

impl Hits {
    /// None yet.
    #[must_use]
    pub fn new(order: ReadOrder) -> Self {
        Self { order, waiting: Vec::new(), since: Instant::ZERO, reading: HashMap::new(), next: 0 }
    }

    fn count(&self) -> usize {
        self.waiting.len() + self.reading.len()
    }

    /// When the waiting reads are to begin, however few they are.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        match self.order {
            ReadOrder::Batched { patience, .. } if !self.waiting.is_empty() => Some(self.since + patience),
            _ => None,
        }
    }
}

impl Slotted {
    pub(super) fn get(&mut self, ticket: Ticket, key: Key, now: Instant, out: &mut Outbox) {
        let Some(id) = self.entries.find(key) else {
            return out.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        };
        if self.plan.on_hit == OnHit::Touch {
            self.entries.touch(id);
        }
        let entry = self.entries.get(id);
        if let Some(record) = &entry.held {
            return out.reply(ticket, Answer::Found(record.clone()));
        }
        if self.hits.count() >= self.settings.waiting_reads {
            return out.reply(ticket, Answer::Absent(AbsentReason::Busy));
        }
        let wanted = Wanted { ticket, key, sequence: entry.sequence, entry: id };
        match self.plan.reads {
            ReadOrder::Eager => self.read(wanted, out),
            ReadOrder::Batched { count, .. } => {
                if self.hits.waiting.is_empty() {
                    self.hits.since = now;
                }
                self.hits.waiting.push(wanted);
                if self.hits.waiting.len() >= count.min(self.settings.waiting_reads) {
                    self.release_reads(out);
                }
            }
        }
    }

    /// Begins the waiting reads, in the order in which they lie on disk.
    pub(super) fn release_reads(&mut self, out: &mut Outbox) {
        let mut waiting = std::mem::take(&mut self.hits.waiting);
        waiting.sort_by_key(|wanted| {
            self.entries.get(wanted.entry).pieces.first().map(|piece| (piece.file, piece.first))
        });
        for wanted in waiting {
            self.read(wanted, out);
        }
    }

    fn still_there(&self, wanted: &Wanted) -> bool {
        let entry = self.entries.get(wanted.entry);
        entry.live && entry.key == wanted.key && entry.sequence == wanted.sequence
    }

    fn read(&mut self, wanted: Wanted, out: &mut Outbox) {
        if !self.still_there(&wanted) {
            return out.reply(wanted.ticket, Answer::Absent(AbsentReason::NotIndexed));
        }
        let pieces = self.entries.get(wanted.entry).pieces.clone();
        let number = self.hits.next;
        self.hits.next += 1;
        let parts = pieces.iter().map(|_| None).collect();
        self.hits.reading.insert(number, Reading { wanted, parts, left: pieces.len(), error: None });
        for (part, piece) in pieces.into_iter().enumerate() {
            let offset = u64::from(piece.first) * SLOT as u64;
            let job = Job::Read { file: piece.file, read: number, part };
            self.access(piece.file, Access::Read(offset, piece.slots as usize * SLOT), job, out);
        }
    }

    pub(super) fn part_read(
        &mut self,
        number: u64,
        part: usize,
        result: Result<IoBuffer, IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        let Some(reading) = self.hits.reading.get_mut(&number) else { return };
        match result {
            Ok(buffer) => reading.parts[part] = Some(buffer),
            Err(error) => reading.error = Some(error),
        }
        reading.left -= 1;
        if reading.left == 0
            && let Some(reading) = self.hits.reading.remove(&number)
        {
            self.finish_read(reading, now, out);
        }
    }

    /// A record that was replaced, removed or evicted meanwhile is not returned, whatever was read.
    fn finish_read(&mut self, reading: Reading, now: Instant, out: &mut Outbox) {
        let Reading { wanted, parts, error, .. } = reading;
        if !self.still_there(&wanted) {
            return out.reply(wanted.ticket, Answer::Absent(AbsentReason::NotIndexed));
        }
        let record = match error {
            Some(error) => Err(AbsentReason::DeviceFailed(error)),
            None => record::decode(join(parts), 0, wanted.key, wanted.sequence, &self.secret)
                .map_err(AbsentReason::from),
        };
        match record {
            Ok(record) => {
                if self.plan.on_hit == OnHit::Rewrite {
                    self.rewrite(wanted.entry, &record, now, out);
                }
                out.reply(wanted.ticket, Answer::Found(record));
            }
            Err(reason) => {
                self.drop_live(wanted.entry, out);
                out.reply(wanted.ticket, Answer::Absent(reason));
            }
        }
    }

    /// Whether no get is under way.
    pub(super) fn no_reads(&self) -> bool {
        self.hits.count() == 0
    }
}

/// The parts of a record as one buffer.
fn join(parts: SmallVec<[Option<IoBuffer>; 1]>) -> IoBuffer {
    let mut parts: SmallVec<[IoBuffer; 1]> = parts.into_iter().flatten().collect();
    if parts.len() == 1 {
        return parts.remove(0);
    }
    let mut all = IoBuffer::zeroed(parts.iter().map(IoBuffer::len).sum());
    let mut at = 0;
    for part in parts {
        all.as_mut()[at..at + part.len()].copy_from_slice(part.as_ref());
        at += part.len();
    }
    all
}
