//! Keeps new records only in memory while the store is over its write budget (bytes per day). These
//! records are called deferred. A deferred record is written to disk after its next request. If the
//! memory for deferred records is full, the oldest are dropped. A restart loses all deferred
//! records.
//!
//! A deferred record may replace a record on disk. Before the record is deferred, a durable
//! tombstone marks all older records of its key as removed. So an old record never returns.

use crate::contract::{Key, Record};
use crate::settings::{Newcomers, WriteBudget};
use crate::webcosm::write::write_budget::BudgetMeter;
use crate::webcosm::write::write_buffer::{BufferedRecord, WriteBuffer};
use crate::worth::Distance;
use bytes::{Bytes, BytesMut};
use foxy_base::Instant;

/// Estimated memory per record in bytes, in addition to the record's content.
const OVERHEAD_BYTES: usize = 320;

/// A single record may use at most 1/`MAX_RECORD_SHARE` of the memory for deferred records.
const MAX_RECORD_SHARE: usize = 2;

/// The deferred records, and the count of written bytes against the write budget.
#[derive(Debug)]
pub struct Deferred {
    budget: WriteBudget,
    meter: BudgetMeter,
    /// The part of the store's written bytes that `meter` has counted already.
    metered_bytes: u64,
    records: WriteBuffer,
}

impl Deferred {
    pub fn new(budget: WriteBudget) -> Self {
        Self {
            budget,
            meter: BudgetMeter::new(budget.bytes_a_day),
            metered_bytes: 0,
            records: WriteBuffer::default(),
        }
    }

    /// Returns whether to defer a new record (keep it only in memory). `distance` is the record's
    /// size relative to the mean. `written_bytes` is the number of bytes that the store has written
    /// so far.
    pub fn wants(
        &mut self,
        distance: Distance,
        length: usize,
        written_bytes: u64,
        now: Instant,
    ) -> bool {
        self.meter.spend(written_bytes - self.metered_bytes);
        self.metered_bytes = written_bytes;
        let is_newcomer = match self.budget.newcomers {
            Newcomers::Heavy => distance.is_heavy(),
            Newcomers::All => true,
        };
        let fits = length + OVERHEAD_BYTES <= self.budget.memory / MAX_RECORD_SHARE;
        is_newcomer && fits && self.meter.is_spent(now)
    }

    /// Adds a deferred record. Returns the keys of the records that were dropped because the memory
    /// was full.
    pub fn insert(&mut self, record: BufferedRecord, now: Instant) -> Vec<Key> {
        self.records.insert(BufferedRecord { record: own(&record.record), ..record }, now);
        let mut dropped = Vec::new();
        while self.memory() > self.budget.memory {
            dropped.extend(self.records.take(1).into_iter().map(|(record, _)| record.key));
        }
        dropped
    }

    pub fn get(&mut self, key: Key) -> Option<&Record> {
        self.records.get(key)
    }

    pub fn contains(&self, key: Key) -> bool {
        self.records.contains(key)
    }

    pub fn length(&self, key: Key) -> Option<usize> {
        self.records.length(key)
    }

    pub fn take(&mut self, key: Key) -> Option<BufferedRecord> {
        self.records.take_one(key)
    }

    pub fn remove(&mut self, key: Key) -> bool {
        self.records.remove(key)
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the estimated memory of all deferred records, in bytes.
    pub fn memory(&self) -> usize {
        self.records.bytes() + self.len() * OVERHEAD_BYTES
    }
}

/// Copies a record into memory of its own. The record may be a part of a larger buffer, which can
/// then be freed.
fn own(record: &Record) -> Record {
    let mut all = BytesMut::with_capacity(record.len());
    all.extend_from_slice(&record.head);
    all.extend_from_slice(&record.body);
    let mut body: Bytes = all.freeze();
    let head = body.split_to(record.head.len());
    Record { head, body }
}
