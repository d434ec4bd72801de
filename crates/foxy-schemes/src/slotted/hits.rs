//! Handles `get` requests. A record in memory is returned at once. Other records are read from
//! disk, and their checksum is verified. Reads start at once, or several together in the order of
//! their disk places.

use super::Slotted;
use super::entries::EntryId;
use super::files::Access;
use super::plan::{OnHit, ReadOrder};
use super::prefetch::Neighbour;
use super::work::Job;
use crate::SchemeSettings;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};
use foxy_store::contract::{AbsentReason, Answer, Key, Outbox, Record, Ticket};
use foxy_store::layout::SLOT;
use foxy_store::record;
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Identifies the record that a get found in the index. The record may be gone when the read
/// finishes.
#[derive(Clone, Copy, Debug)]
pub struct WantedHit {
    pub key: Key,
    pub sequence: u64,
    pub entry: EntryId,
}

#[derive(Clone, Copy, Debug)]
struct PendingGet {
    ticket: Ticket,
    wanted: WantedHit,
    asked: Instant,
}

#[derive(Debug)]
struct Reading {
    get: PendingGet,
    parts: SmallVec<[Option<IoBuffer>; 1]>,
    left: usize,
    error: Option<IoError>,
    neighbours: Vec<Neighbour>,
    /// Gets of the neighbouring records that this read prefetches. They wait for the read.
    also: Vec<PendingGet>,
}

/// The conditions under which a batch of reads starts.
#[derive(Clone, Copy, Debug)]
struct ReadBatch {
    count: usize,
    /// Time after which a batch with fewer than `count` reads starts.
    patience: Duration,
}

#[derive(Debug)]
pub struct Hits {
    /// The conditions under which a batch of reads starts. `None` if each read starts at once.
    batch: Option<ReadBatch>,
    /// Gets that wait until their reads start as a batch, in the order of arrival.
    waiting: VecDeque<PendingGet>,
    reading: HashMap<u64, Reading>,
    /// Records that a read in flight prefetches. The value is the number of the read.
    coming: HashMap<EntryId, u64>,
    /// Number of gets that wait for a read in flight that prefetches their record.
    also: usize,
    next: u64,
}

impl Hits {
    pub fn new(order: ReadOrder, settings: &SchemeSettings) -> Self {
        let SchemeSettings { read_batch, read_patience: patience, ref store, .. } = *settings;
        let count = read_batch.min(store.waiting_reads);
        Self {
            batch: (order == ReadOrder::Batched).then_some(ReadBatch { count, patience }),
            waiting: VecDeque::new(),
            reading: HashMap::new(),
            coming: HashMap::new(),
            also: 0,
            next: 0,
        }
    }

    pub fn count(&self) -> usize {
        self.waiting.len() + self.reading.len() + self.also
    }

    /// Returns whether a read in flight prefetches the record.
    pub fn is_coming(&self, id: EntryId) -> bool {
        self.coming.contains_key(&id)
    }

    /// Lets a get wait for the read that prefetches its record. Returns false if no read prefetches
    /// it.
    fn join(&mut self, get: PendingGet) -> bool {
        let reading =
            self.coming.get(&get.wanted.entry).and_then(|number| self.reading.get_mut(number));
        let Some(reading) = reading else { return false };
        reading.also.push(get);
        self.also += 1;
        true
    }

    pub fn is_reading(&self) -> bool {
        !self.reading.is_empty()
    }

    /// Returns the time at which the waiting reads must start, even if the batch is not full.
    /// Returns `None` if no read waits, or another batch is in flight.
    pub fn deadline(&self) -> Option<Instant> {
        let (batch, first) = (self.batch?, self.waiting.front()?);
        self.reading.is_empty().then(|| first.asked + batch.patience)
    }

    /// Returns whether the waiting reads must start now as a batch.
    fn is_batch_due(&self, now: Instant) -> bool {
        let Some(batch) = self.batch else { return false };
        let is_full = self.reading.is_empty() && self.waiting.len() >= batch.count;
        is_full || self.deadline().is_some_and(|deadline| deadline <= now)
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
        if let Some(record) = &entry.in_memory {
            return out.reply(ticket, Answer::Found(record.clone()));
        }
        if let Some(record) = self.take_prefetched(id) {
            return out.reply(ticket, Answer::Found(record));
        }
        if self.hits.count() >= self.settings.store.waiting_reads {
            return out.reply(ticket, Answer::Absent(AbsentReason::Busy));
        }
        let wanted = WantedHit { key, sequence: self.entries.get(id).sequence, entry: id };
        let get = PendingGet { ticket, wanted, asked: now };
        if self.hits.join(get) {
            return;
        }
        match self.plan.reads {
            ReadOrder::Eager => self.read(get, out),
            ReadOrder::Batched => {
                self.hits.waiting.push_back(get);
                self.start_due_batch(now, out);
            }
        }
    }

    /// Starts a batch of reads if the batch is full or has waited long enough.
    pub(super) fn start_due_batch(&mut self, now: Instant, out: &mut Outbox) {
        if let Some(batch) = self.hits.batch.filter(|_| self.hits.is_batch_due(now)) {
            self.release_reads(batch.count, out);
        }
    }

    /// Takes the `count` oldest waiting reads and starts them in the order of their places on disk.
    pub(super) fn release_reads(&mut self, count: usize, out: &mut Outbox) {
        let count = count.min(self.hits.waiting.len());
        let mut batch: Vec<PendingGet> = self.hits.waiting.drain(..count).collect();
        batch.sort_by_key(|get| {
            self.entries.get(get.wanted.entry).pieces.first().map(|piece| (piece.file, piece.first))
        });
        for get in batch {
            self.read(get, out);
        }
    }

    /// Returns whether the index still contains the requested record.
    pub(super) fn still_there(&self, wanted: &WantedHit) -> bool {
        let entry = self.entries.get(wanted.entry);
        entry.live && entry.key == wanted.key && entry.sequence == wanted.sequence
    }

    fn read(&mut self, get: PendingGet, out: &mut Outbox) {
        let PendingGet { ticket, wanted, .. } = get;
        if !self.still_there(&wanted) {
            return out.reply(ticket, Answer::Absent(AbsentReason::NotIndexed));
        }
        if let Some(record) = self.take_prefetched(wanted.entry) {
            return out.reply(ticket, Answer::Found(record));
        }
        if self.hits.join(get) {
            return;
        }
        let neighbours = self.neighbours(wanted.entry);
        self.read_with(get, neighbours, out);
    }

    fn read_with(&mut self, get: PendingGet, neighbours: Vec<Neighbour>, out: &mut Outbox) {
        let pieces = self.entries.get(get.wanted.entry).pieces.clone();
        let number = self.hits.next;
        self.hits.next += 1;
        let along: u32 = neighbours.iter().map(|neighbour| neighbour.slots).sum();
        self.hits
            .coming
            .extend(neighbours.iter().map(|neighbour| (neighbour.wanted.entry, number)));
        let parts = pieces.iter().map(|_| None).collect();
        let (left, also) = (pieces.len(), Vec::new());
        let reading = Reading { get, parts, left, error: None, neighbours, also };
        self.hits.reading.insert(number, reading);
        for (part, piece) in pieces.into_iter().enumerate() {
            let offset = u64::from(piece.first) * SLOT as u64;
            let job = Job::Read { file: piece.file, read: number, part };
            let length = (piece.slots + along) as usize * SLOT;
            self.access(piece.file, Access::Read { offset, length }, job, out);
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

    pub(super) fn decode(
        &self,
        bytes: IoBuffer,
        wanted: &WantedHit,
    ) -> Result<Record, AbsentReason> {
        record::decode(bytes, 0, wanted.key, wanted.sequence, &self.secret)
            .map_err(AbsentReason::from)
    }

    /// Answers the get that caused a read, then the gets that waited for its prefetched neighbours.
    /// If a read with neighbours failed, reads the requested record again without them.
    fn finish_read(&mut self, reading: Reading, now: Instant, out: &mut Outbox) {
        let Reading { get, parts, error, neighbours, also, .. } = reading;
        let wanted = get.wanted;
        for neighbour in &neighbours {
            self.hits.coming.remove(&neighbour.wanted.entry);
        }
        self.hits.also -= also.len();
        match error {
            Some(_) if !neighbours.is_empty() && self.still_there(&wanted) => {
                self.read_with(get, Vec::new(), out);
            }
            Some(error) => {
                self.answer_read(get, Err(AbsentReason::DeviceFailed(error)), now, out);
            }
            None => {
                let bytes = join(parts);
                self.keep_neighbours(&neighbours, &bytes);
                let record = self.decode(bytes, &wanted);
                self.answer_read(get, record, now, out);
            }
        }
        for get in also {
            self.read(get, out);
        }
    }

    /// Answers a get. If the record was replaced, removed or evicted during the read, the answer is
    /// "absent".
    fn answer_read(
        &mut self,
        PendingGet { ticket, wanted, .. }: PendingGet,
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
}

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
