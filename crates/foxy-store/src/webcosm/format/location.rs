//! Where a record lies in the file, and what must be found there for it to be the one that the
//! index knows: what reading takes, on any thread. Nothing is read here.

use crate::contract::{AbsentReason, Key, Record};
use crate::layout::PAGE;
use crate::record::{self, Header, Secret};
use crate::webcosm::format::geometry::{Geometry, Position, Segment, Sequence};
use crate::webcosm::format::packed;
use crate::webcosm::index::{Extent, Known};
use bytes::Bytes;
use foxy_device::IoBuffer;

/// The segment that a slot of the file holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// Which of its log.
    pub sequence: Sequence,
    /// The life of the store in which it was begun.
    pub life: u64,
}

/// The slots of a file, and what they hold.
#[derive(Debug)]
pub struct Slots {
    geometry: Geometry,
    written: Vec<Written>,
}

impl Slots {
    /// Slots that hold nothing.
    pub fn new(geometry: Geometry) -> Self {
        Self { geometry, written: vec![Written::default(); geometry.slots() as usize] }
    }

    /// What a slot holds.
    pub fn written(&self, slot: u32) -> Written {
        self.written[slot as usize]
    }

    /// A slot holds another segment.
    pub fn set_written(&mut self, slot: u32, written: Written) {
        self.written[slot as usize] = written;
    }

    /// Where a record is, and what it carries.
    pub fn spot(&self, Known { place, extent, .. }: Known) -> Spot {
        let (slot, byte) = self.geometry.find(place);
        let page = u32::try_from(byte / PAGE as u64).expect("segments are small");
        let Written { sequence, life } = self.written(slot);
        let position = Position::new(Segment { log: self.geometry.log_of(slot), sequence }, page);
        let pages = extent.pages().min(self.geometry.segment_pages - page);
        Spot {
            offset: self.geometry.offset(slot, page),
            length: pages as usize * PAGE,
            position,
            stamp: position.stamp(life),
            skip: usize::try_from(byte).expect("segments are small") % PAGE,
            is_packed: extent == Extent::Packed,
        }
    }
}

/// Where a record is: whole pages of one segment.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub length: usize,
    /// Its page in the log.
    pub position: Position,
    /// What it must carry.
    stamp: u64,
    /// Bytes of the first page before it.
    skip: usize,
    is_packed: bool,
}

impl Spot {
    /// The record of a key in what was read there.
    ///
    /// # Errors
    /// Why it is not there.
    pub fn record(
        &self,
        key: Key,
        buffer: IoBuffer,
        secret: &Secret,
    ) -> Result<Record, AbsentReason> {
        if self.is_packed {
            return packed::decode(buffer.as_ref(), key, self.stamp, secret);
        }
        record::decode(buffer, self.skip, key, self.stamp, secret).map_err(AbsentReason::from)
    }

    /// All records in what was read there, whosever they are.
    pub fn records(&self, buffer: IoBuffer, secret: &Secret) -> Vec<(Key, Record)> {
        if self.is_packed {
            let page = buffer.freeze();
            let Some(entries) = packed::entries(&page, self.stamp, secret) else {
                return Vec::new();
            };
            let part = |from: usize, to: usize| Bytes::copy_from_slice(&page[from..to]);
            return entries
                .map(|(key, start, middle, end)| {
                    (key, Record { head: part(start, middle), body: part(middle, end) })
                })
                .collect();
        }
        let header = buffer.as_ref().get(self.skip..).map(|bytes| Header::decode(bytes, secret));
        let Some(Ok(Header { key, .. })) = header else { return Vec::new() };
        self.record(key, buffer, secret).map_or_else(|_| Vec::new(), |record| vec![(key, record)])
    }
}
