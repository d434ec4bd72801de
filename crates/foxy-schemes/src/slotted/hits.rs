//! Gets: from memory while the record is held, else read at once or in sorted batches, and always
//! verified.

use super::Slotted;
use super::entries::EntryId;
use super::files::Access;
use super::plan::{OnHit, ReadOrder};
use super::prefetch::Neighbour;
use super::work::Job;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};
use foxy_store::contract::{AbsentReason, Answer, Key, Outbox, Record, Ticket};
use foxy_store::layout::SLOT;
use foxy_store::record;
use smallvec::SmallVec;
use std::collections::HashMap;

/// A record as it was when it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct WantedHit {
    /// Whose.
    pub key: Key,
    /// Its place in the order of puts.
    pub sequence: u64,
    /// Its entry then.
    pub entry: EntryId,
}

#[derive(Debug)]
struct Reading {
    ticket: Ticket,
    wanted: WantedHit,
    parts: SmallVec<[Option<IoBuffer>; 1]>,
    left: usize,
    error: Option<IoError>,
    neighbours: Vec<Neighbour>,
    /// Gets of the neighbours.
    also: Vec<(Ticket, WantedHit)>,
}

/// Gets under way.
#[derive(Debug)]
pub struct Hits {
    order: ReadOrder,
    waiting: Vec<(Ticket, WantedHit)>,
    since: Instant,
    reading: HashMap<u64, Reading>,
    /// Records that come along with a read under way, and which.
    coming: HashMap<EntryId, u64>,
    /// Gets that wait for these.
    also: usize,
    next: u64,
}

impl Hits {
    /// None yet.
    pub fn new(order: ReadOrder) -> Self {
        Self {
            order,
            waiting: Vec::new(),
            since: Instant::ZERO,
            reading: HashMap::new(),
            coming: HashMap::new(),
            also: 0,
            next: 0,
        }
    }

    fn count(&self) -> usize {
        self.waiting.len() + self.reading.len() + self.also
    }

    /// Whether a record comes along with a read under way.
    pub fn is_coming(&self, id: EntryId) -> bool {
        self.coming.contains_key(&id)
    }

    /// Has a get wait for a read that the record comes along with; false when there is none.
    fn join(&mut self, ticket: Ticket, wanted: WantedHit) -> bool {
        let reading =
            self.coming.get(&wanted.entry).and_then(|number| self.reading.get_mut(number));
        let Some(reading) = reading else { return false };
        reading.also.push((ticket, wanted));
        self.also += 1;
        true
    }

    /// When the waiting reads are to begin, however few they are.
    pub fn deadline(&self) -> Option<Instant> {
        match self.order {
            ReadOrder::Batched { patience, .. } if !self.waiting.is_empty() => {
                Some(self.since + patience)
            }
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
        if let Some(record) = self.take_prefetched(id) {
            return out.reply(ticket, Answer::Found(record));
        }
        if self.hits.count() >= self.settings.store.waiting_reads {
            return out.reply(ticket, Answer::Absent(AbsentReason::Busy));
        }
        let wanted = WantedHit { key, sequence: self.entries.get(id).sequence, entry: id };
        if self.hits.join(ticket, wanted) {
            return;
        }
        match self.plan.reads {
            ReadOrder::Eager => self.read(ticket, wanted, out),
            ReadOrder::Batched { count, .. } => {
                if self.hits.waiting.is_empty() {
                    self.hits.since = now;
                }
                self.hits.waiting.push((ticket, wanted));
                if self.hits.waiting.len() >= count.min(self.settings.store.waiting_reads) {
                    self.release_reads(out);
                }
            }
        }
    }

    /// Begins the waiting reads, in the order in which they lie on disk.
    pub(super) fn release_reads(&mut self, out: &mut Outbox) {
        let mut waiting = std::mem::take(&mut self.hits.waiting);
        waiting.sort_by_key(|(_, wanted)| {
            self.entries.get(wanted.entry).pieces.first().map(|piece| (piece.file, piece.first))
        });
        for (ticket, wanted) in waiting {
            self.read(ticket, wanted, out);
        }
    }

    /// Whether a record is still the one that was asked for.
    pub(super) fn still_there(&self, wanted: &WantedHit) -> bool {
        let entry = self.entries.get(wanted.entry);
        entry.live && entry.key == wanted.key && entry.sequence == wanted.sequence
    }

    fn read(&mut self, ticket: Ticket, wanted: WantedHit, out: &mut Outbox) {
        if !self.still_there(&wanted) {
            return out.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        }
        if let Some(record) = self.take_prefetched(wanted.entry) {
            return out.reply(ticket, Answer::Found(record));
        }
        if self.hits.join(ticket, wanted) {
            return;
        }
        let neighbours = self.neighbours(wanted.entry);
        self.read_with(ticket, wanted, neighbours, out);
    }

    fn read_with(
        &mut self,
        ticket: Ticket,
        wanted: WantedHit,
        neighbours: Vec<Neighbour>,
        out: &mut Outbox,
    ) {
        let pieces = self.entries.get(wanted.entry).pieces.clone();
        let number = self.hits.next;
        self.hits.next += 1;
        let along: u32 = neighbours.iter().map(Neighbour::slots).sum();
        self.hits
            .coming
            .extend(neighbours.iter().map(|neighbour| (neighbour.wanted.entry, number)));
        let parts = pieces.iter().map(|_| None).collect();
        let (left, also) = (pieces.len(), Vec::new());
        let reading = Reading { ticket, wanted, parts, left, error: None, neighbours, also };
        self.hits.reading.insert(number, reading);
        for (part, piece) in pieces.into_iter().enumerate() {
            let offset = u64::from(piece.first) * SLOT as u64;
            let job = Job::Read { file: piece.file, read: number, part };
            let length = (piece.slots + along) as usize * SLOT;
            self.access(piece.file, Access::Read(offset, length), job, out);
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

    /// What was read, if it is sound.
    pub(super) fn decode(
        &self,
        bytes: IoBuffer,
        wanted: &WantedHit,
    ) -> Result<Record, AbsentReason> {
        record::decode(bytes, 0, wanted.key, wanted.sequence, &self.secret)
            .map_err(AbsentReason::from)
    }

    /// A read has ended: its record is answered, then those that came along with it and were asked
    /// for meanwhile. What cannot be read along must not cost the record itself.
    fn finish_read(&mut self, reading: Reading, now: Instant, out: &mut Outbox) {
        let Reading { ticket, wanted, parts, error, neighbours, also, .. } = reading;
        for neighbour in &neighbours {
            self.hits.coming.remove(&neighbour.wanted.entry);
        }
        self.hits.also -= also.len();
        match error {
            Some(_) if !neighbours.is_empty() && self.still_there(&wanted) => {
                self.read_with(ticket, wanted, Vec::new(), out);
            }
            Some(error) => {
                self.answer_read(ticket, wanted, Err(AbsentReason::DeviceFailed(error)), now, out);
            }
            None => {
                let bytes = join(parts);
                self.keep_neighbours(&neighbours, &bytes);
                let record = self.decode(bytes, &wanted);
                self.answer_read(ticket, wanted, record, now, out);
            }
        }
        for (ticket, wanted) in also {
            self.read(ticket, wanted, out);
        }
    }

    /// A record that was replaced, removed or evicted meanwhile is not returned, whatever was read.
    fn answer_read(
        &mut self,
        ticket: Ticket,
        wanted: WantedHit,
        record: Result<Record, AbsentReason>,
        now: Instant,
        out: &mut Outbox,
    ) {
        if !self.still_there(&wanted) {
            return out.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        }
        match record {
            Ok(record) => {
                if self.plan.on_hit == OnHit::Rewrite {
                    self.rewrite(wanted.entry, &record, now, out);
                }
                out.reply(ticket, Answer::Found(record));
            }
            Err(reason) => {
                self.drop_live(wanted.entry, out);
                out.reply(ticket, Answer::Absent(reason));
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
