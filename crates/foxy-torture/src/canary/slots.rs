//! The canary storage scheme (a test scheme with a known flaw): one file of sixteen slots, each
//! with one record. A key always has the same slot. The scheme carries out one request at a time,
//! and syncs every put and removal. The scheme is slow but simple, so a reader can see that it has
//! no other flaw.

use super::Flaw;
use super::slot::{self, HEADER, SLOT};
use foxy_base::Instant;
use foxy_device::{FileId, IoBuffer, IoDone, IoError, IoId, IoOp, IoOutput, StorePath};
use foxy_store::{
    AbsentReason, Answer, Find, Key, Lookup, Outbox, Record, RecordPlace, RefusedReason, Scheme,
    StoreRequest, Ticket,
};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

const SLOTS: u64 = 16;
const WAITING_LIMIT: usize = 64;
const FILE: FileId = FileId(1);

/// The state of the storage scheme and its current request.
#[derive(Debug)]
enum SlotWork {
    Opening,
    Creating,
    Idle,
    Reading(Ticket, Key),
    Writing(Ticket, Key, Answer),
    Syncing(Ticket, Key, Answer),
    Broken(IoError),
    Closed,
}

/// The canary storage scheme (a test scheme), with or without its known flaw.
#[derive(Debug)]
pub struct Slots {
    flaw: Flaw,
    work: SlotWork,
    operations: u64,
    waiting: VecDeque<StoreRequest>,
    /// Numbers of the slots whose last write failed, so that their content is unknown.
    doubted: HashSet<u64>,
    served: HashMap<Key, Record>,
    first: Arc<LooksBack>,
    owners: Arc<LooksOnce>,
}

impl Slots {
    /// Size in bytes of the file that contains all records.
    pub const CAPACITY: u64 = SLOTS * SLOT as u64;

    /// Makes a canary with the flaw `flaw`.
    pub fn new(flaw: Flaw) -> Self {
        Self {
            flaw,
            work: SlotWork::Opening,
            operations: 0,
            waiting: VecDeque::new(),
            doubted: HashSet::new(),
            served: HashMap::new(),
            first: Arc::default(),
            owners: Arc::default(),
        }
    }

    fn submit(&mut self, op: IoOp, out: &mut Outbox) {
        self.operations += 1;
        out.submit(IoId(self.operations), op);
    }

    /// Starts waiting requests until a request has to wait for the disk.
    fn next(&mut self, out: &mut Outbox) {
        while matches!(self.work, SlotWork::Idle | SlotWork::Broken(_) | SlotWork::Closed) {
            let Some(request) = self.waiting.pop_front() else { return };
            self.begin(request, out);
        }
    }

    fn begin(&mut self, request: StoreRequest, out: &mut Outbox) {
        let ticket = request.ticket();
        let unable = match self.work {
            SlotWork::Broken(error) => {
                Some((AbsentReason::DeviceFailed(error), RefusedReason::DeviceFailed(error)))
            }
            SlotWork::Closed => Some((AbsentReason::Closed, RefusedReason::Closed)),
            _ => None,
        };
        match (request, unable) {
            (StoreRequest::Close { .. }, _) => {
                self.work = SlotWork::Closed;
                out.reply(ticket, Answer::Closed);
            }
            (StoreRequest::Get { .. }, Some((absent, _))) => {
                out.reply(ticket, Answer::Absent(absent))
            }
            (_, Some((_, refused))) => out.reply(ticket, Answer::Refused(refused)),
            (StoreRequest::Get { key, .. }, None) => self.get(ticket, key, out),
            (StoreRequest::Put { key, record, .. }, None) => match slot::encode(key, &record) {
                Some(buffer) => self.write(ticket, key, buffer, Answer::Stored, out),
                None => out.reply(ticket, Answer::Refused(RefusedReason::TooLarge)),
            },
            (StoreRequest::Remove { key, .. }, None) => {
                self.served.remove(&key);
                self.write(ticket, key, IoBuffer::zeroed(HEADER), Answer::Removed, out);
            }
        }
    }

    fn get(&mut self, ticket: Ticket, key: Key, out: &mut Outbox) {
        if self.flaw == Flaw::ServesPrevious
            && let Some(record) = self.served.get(&key)
        {
            return out.reply(ticket, Answer::Found(record.clone()));
        }
        if self.doubted.contains(&slot_of(key)) {
            return out.reply(ticket, Answer::Absent(AbsentReason::ChecksumMismatch));
        }
        self.work = SlotWork::Reading(ticket, key);
        let buffer = IoBuffer::zeroed(SLOT);
        self.submit(IoOp::Read { file: FILE, offset: offset_of(key), buffer }, out);
    }

    fn write(
        &mut self,
        ticket: Ticket,
        key: Key,
        buffer: IoBuffer,
        answer: Answer,
        out: &mut Outbox,
    ) {
        self.owners.lose(key);
        self.work = SlotWork::Writing(ticket, key, answer);
        self.submit(IoOp::Write { file: FILE, offset: offset_of(key), buffer }, out);
    }

    fn opened(&mut self, done: &IoDone, out: &mut Outbox) {
        let creating = matches!(self.work, SlotWork::Creating);
        self.work = match &done.result {
            Ok(IoOutput::Opened { size }) if *size >= Self::CAPACITY => SlotWork::Idle,
            Ok(IoOutput::Done) => SlotWork::Idle,
            Ok(_) | Err(IoError::NotFound) if !creating => {
                let path = StorePath::new("slots");
                self.submit(IoOp::Create { file: FILE, path, size: Self::CAPACITY }, out);
                SlotWork::Creating
            }
            Ok(_) => SlotWork::Broken(IoError::Device),
            Err(error) => SlotWork::Broken(*error),
        };
    }

    fn read(&mut self, ticket: Ticket, key: Key, done: IoDone, out: &mut Outbox) {
        let answer = match (done.result, done.buffer) {
            (Ok(IoOutput::Moved { count }), Some(buffer)) if count == buffer.len() => {
                match slot::decode(key, &buffer.freeze(), self.flaw) {
                    Some(record) => {
                        self.served.insert(key, record.clone());
                        Answer::Found(record)
                    }
                    None => Answer::Absent(AbsentReason::ChecksumMismatch),
                }
            }
            (Err(error), _) => Answer::Absent(AbsentReason::DeviceFailed(error)),
            _ => Answer::Absent(AbsentReason::DeviceFailed(IoError::Device)),
        };
        out.reply(ticket, answer);
    }

    fn written(
        &mut self,
        ticket: Ticket,
        key: Key,
        answer: Answer,
        done: &IoDone,
        out: &mut Outbox,
    ) {
        let asked = done.buffer.as_ref().map_or(0, IoBuffer::len);
        match &done.result {
            Ok(IoOutput::Moved { count }) if *count == asked => {
                if self.flaw == Flaw::RemovesWithoutSync && answer == Answer::Removed {
                    return self.finish(ticket, key, answer, out);
                }
                self.work = SlotWork::Syncing(ticket, key, answer);
                self.submit(IoOp::Sync { file: FILE }, out);
            }
            result => self.fail(ticket, key, result.as_ref().err().copied(), out),
        }
    }

    fn finish(&mut self, ticket: Ticket, key: Key, answer: Answer, out: &mut Outbox) {
        if answer == Answer::Stored {
            self.owners.stores(key);
        }
        self.doubted.remove(&slot_of(key));
        out.reply(ticket, answer);
    }

    fn fail(&mut self, ticket: Ticket, key: Key, error: Option<IoError>, out: &mut Outbox) {
        self.doubted.insert(slot_of(key));
        let error = error.unwrap_or(IoError::Device);
        out.reply(ticket, Answer::Refused(RefusedReason::DeviceFailed(error)));
    }
}

impl Scheme for Slots {
    fn start(&mut self, _now: Instant, out: &mut Outbox) {
        self.submit(IoOp::Open { file: FILE, path: StorePath::new("slots") }, out);
    }

    fn on_request(&mut self, request: StoreRequest, _now: Instant, out: &mut Outbox) {
        if let (Flaw::LooksBack, StoreRequest::Put { key, record, .. }) = (self.flaw, &request) {
            self.first.remember(*key, record);
        }
        let ticket = request.ticket();
        let full = self.waiting.len() >= WAITING_LIMIT;
        let forgotten = self.flaw == Flaw::LosesAnswers && self.waiting.len() > 2;
        match request {
            _ if forgotten => {}
            StoreRequest::Get { .. } if full => {
                out.reply(ticket, Answer::Absent(AbsentReason::Busy))
            }
            StoreRequest::Put { .. } | StoreRequest::Remove { .. } if full => {
                out.reply(ticket, Answer::Refused(RefusedReason::Busy));
            }
            request => self.waiting.push_back(request),
        }
        self.next(out);
    }

    fn on_io_done(&mut self, done: IoDone, _now: Instant, out: &mut Outbox) {
        match std::mem::replace(&mut self.work, SlotWork::Idle) {
            opening @ (SlotWork::Opening | SlotWork::Creating) => {
                self.work = opening;
                self.opened(&done, out);
            }
            SlotWork::Reading(ticket, key) => self.read(ticket, key, done, out),
            SlotWork::Writing(ticket, key, answer) => self.written(ticket, key, answer, &done, out),
            SlotWork::Syncing(ticket, key, answer) => match done.result {
                Ok(_) => self.finish(ticket, key, answer, out),
                Err(error) => self.fail(ticket, key, Some(error), out),
            },
            idle => self.work = idle,
        }
        self.next(out);
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn on_deadline(&mut self, _now: Instant, _out: &mut Outbox) {}

    fn lookup(&self) -> Option<Arc<dyn Lookup>> {
        match self.flaw {
            Flaw::LooksAway => Some(Arc::new(LooksAway)),
            Flaw::LooksBack => Some(Arc::clone(&self.first) as Arc<dyn Lookup>),
            Flaw::LooksOnce => Some(Arc::clone(&self.owners) as Arc<dyn Lookup>),
            _ => None,
        }
    }
}

struct LooksAway;

impl Lookup for LooksAway {
    fn find(&self, _: Key) -> Find {
        Find::Absent
    }

    fn verify(&self, _: Key, _: RecordPlace, _: IoBuffer) -> Option<Record> {
        None
    }
}

#[derive(Debug, Default)]
struct LooksBack(Mutex<HashMap<Key, Record>>);

impl LooksBack {
    fn remember(&self, key: Key, record: &Record) {
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.entry(key).or_insert_with(|| record.clone());
    }
}

impl Lookup for LooksBack {
    fn find(&self, key: Key) -> Find {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if first.contains_key(&key) { Find::At(place_of(key)) } else { Find::Unsure }
    }

    fn verify(&self, key: Key, _: RecordPlace, _: IoBuffer) -> Option<Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }
}

/// The key of the record in each slot. A slot is left out while a write changes it. A look-up
/// checks the key only before its read.
#[derive(Debug, Default)]
struct LooksOnce(Mutex<HashMap<u64, Key>>);

impl LooksOnce {
    fn lose(&self, key: Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&slot_of(key));
    }

    fn stores(&self, key: Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(slot_of(key), key);
    }
}

impl Lookup for LooksOnce {
    fn find(&self, key: Key) -> Find {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owns = owners.get(&slot_of(key)) == Some(&key);
        if owns { Find::At(place_of(key)) } else { Find::Unsure }
    }

    fn verify(&self, key: Key, _: RecordPlace, buffer: IoBuffer) -> Option<Record> {
        slot::decode(key, &buffer.freeze(), Flaw::LooksOnce)
    }
}

fn place_of(key: Key) -> RecordPlace {
    RecordPlace { file: FILE, offset: offset_of(key), length: SLOT }
}

fn slot_of(key: Key) -> u64 {
    key.0[..8].iter().fold(0, |sum, &byte| sum ^ u64::from(byte)) % SLOTS
}

fn offset_of(key: Key) -> u64 {
    slot_of(key) * SLOT as u64
}
