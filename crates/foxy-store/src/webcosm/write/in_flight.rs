//! Tracks the batches of records that are being written to disk, with their buffers. A get finds
//! the records of these batches in memory.

use crate::contract::{Key, Record};
use crate::webcosm::format::geometry::{LogName, Segment, Sequence};
use crate::webcosm::pending::Batch;
use foxy_device::{IoBuffer, IoId};
use std::collections::HashMap;

/// Largest number of batches in flight at the same time. The limit lets the device serve reads
/// between the writes.
const MAX_BATCHES: usize = 4;

/// The batches that are being written, with their records and reusable buffers.
#[derive(Debug, Default)]
pub struct InFlight {
    records: HashMap<Key, (IoId, Record)>,
    batches: Vec<Segment>,
    bytes: usize,
    spare: Vec<IoBuffer>,
}

impl InFlight {
    pub fn get(&self, key: Key) -> Option<&Record> {
        self.records.get(&key).map(|(_, record)| record)
    }

    /// Hides a record whose write is in flight, because it was replaced or removed. A get no longer
    /// finds it in memory.
    pub fn forget(&mut self, key: Key) {
        self.records.remove(&key);
    }

    pub fn is_idle(&self) -> bool {
        self.batches.is_empty()
    }

    /// Returns the number of bytes in the records in flight.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn writes_to(&self, segment: Segment) -> bool {
        self.batches.contains(&segment)
    }

    /// Returns the number of the oldest segment of a log to which a batch in flight is being
    /// written.
    pub fn first(&self, log: LogName) -> Option<Sequence> {
        let of_log = self.batches.iter().filter(|segment| segment.log == log);
        of_log.map(|segment| segment.sequence).min()
    }

    pub fn has_room(&self) -> bool {
        self.batches.len() < MAX_BATCHES
    }

    /// Returns a buffer of `length` bytes. The content of the buffer is arbitrary, because the
    /// buffer may be reused.
    pub fn buffer(&mut self, length: usize) -> IoBuffer {
        let spare = self.spare.pop().and_then(|spare| spare.resized(length));
        spare.unwrap_or_else(|| IoBuffer::zeroed(length))
    }

    pub fn begin(&mut self, io: IoId, segment: Segment, records: Vec<(Key, Record)>, bytes: usize) {
        self.batches.push(segment);
        self.bytes += bytes;
        self.records.extend(records.into_iter().map(|(key, record)| (key, (io, record))));
    }

    /// Notes that the write of a batch has ended, with success or not. Keeps its buffer for the
    /// next batch.
    pub fn end(&mut self, io: IoId, batch: &Batch, buffer: Option<IoBuffer>) {
        if let Some(place) = self.batches.iter().position(|&segment| segment == batch.segment) {
            self.batches.swap_remove(place);
        }
        self.bytes -= batch.bytes;
        for key in &batch.keys {
            if self.records.get(key).is_some_and(|(other, _)| *other == io) {
                self.records.remove(key);
            }
        }
        self.spare.extend(buffer);
        self.spare.truncate(MAX_BATCHES);
    }
}
