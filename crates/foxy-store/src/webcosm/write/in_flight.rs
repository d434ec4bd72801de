//! Batches on their way to disk: their records, which are visible meanwhile, and the memory they
//! are written from.

use crate::contract::{Key, Record};
use crate::webcosm::format::geometry::{LogName, Segment, Sequence};
use crate::webcosm::index::Tag;
use crate::webcosm::write::write_buffer::Staged;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoId};
use std::collections::HashMap;

/// Batches in flight at once, so that reads find the device free now and then.
const BATCHES: usize = 4;

/// Records that are being written, and the memory they are written from.
#[derive(Debug, Default)]
pub struct Flying {
    records: HashMap<Key, (IoId, Record)>,
    batches: Vec<Segment>,
    /// Bytes of the records.
    pub bytes: usize,
    spare: Vec<IoBuffer>,
}

impl Flying {
    /// A record that is being written.
    pub fn get(&self, key: Key) -> Option<&Record> {
        self.records.get(&key).map(|(_, record)| record)
    }

    /// A record that is being written is not to be seen any more.
    pub fn forget(&mut self, key: Key) {
        self.records.remove(&key);
    }

    /// Whether nothing is being written.
    pub fn is_idle(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether a batch is on its way to a segment, whose slot must not be written to by another
    /// meanwhile.
    pub fn writes_to(&self, segment: Segment) -> bool {
        self.batches.contains(&segment)
    }

    /// The first segment of a log that a batch is on its way to.
    pub fn first(&self, log: LogName) -> Option<Sequence> {
        self.batches
            .iter()
            .filter(|segment| segment.log == log)
            .map(|segment| segment.sequence)
            .min()
    }

    /// Whether one more batch may be written.
    pub fn has_room(&self) -> bool {
        self.batches.len() < BATCHES
    }

    /// Memory for a batch of that many bytes; what it holds is to be overwritten.
    pub fn buffer(&mut self, length: usize) -> IoBuffer {
        self.spare
            .pop()
            .and_then(|spare| spare.resized(length))
            .unwrap_or_else(|| IoBuffer::zeroed(length))
    }

    /// A batch is submitted.
    pub fn begin(&mut self, io: IoId, segment: Segment, items: Vec<Item>, bytes: usize) {
        self.batches.push(segment);
        self.bytes += bytes;
        self.records
            .extend(items.into_iter().map(|item| (item.staged.key, (io, item.staged.record))));
    }

    /// A batch is written or has failed.
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
        self.spare.truncate(BATCHES);
    }
}

/// A batch in flight.
#[derive(Debug)]
pub struct Batch {
    /// Where it goes.
    pub segment: Segment,
    /// Whose records it has.
    pub keys: Vec<Key>,
    /// Bytes of these.
    pub bytes: usize,
}

/// Where a record of a batch comes from.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// It is carried over from this place.
    Copied(u64),
    /// It was put at this time.
    Put(Instant),
}

/// A record of a batch.
pub struct Item {
    /// The record.
    pub staged: Staged,
    /// Its tag.
    pub tag: Tag,
    /// Where it comes from.
    pub origin: Origin,
}
