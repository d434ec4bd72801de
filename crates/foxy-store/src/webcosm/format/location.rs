//! Finds the place of a record in the file, and verifies the bytes read from there. This module
//! does no IO.

use crate::contract::{AbsentReason, Key, Record};
use crate::layout::PAGE;
use crate::record::{self, Header, Secret};
use crate::webcosm::format::geometry::{Geometry, Position, Segment, Sequence};
use crate::webcosm::format::packed;
use crate::webcosm::index::{Extent, IndexEntry};
use bytes::Bytes;
use foxy_device::IoBuffer;

/// The content of a slot (place for a segment): the number of a segment, and the incarnation
/// (opening of the store) that started it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlotContent {
    pub sequence: Sequence,
    /// The number of the opening of the store (incarnation) that started the segment.
    pub incarnation: u64,
}

/// The slots of a file, and the segment in each slot.
#[derive(Debug)]
pub struct Slots {
    geometry: Geometry,
    content: Vec<SlotContent>,
}

impl Slots {
    pub fn new(geometry: Geometry) -> Self {
        Self { geometry, content: vec![SlotContent::default(); geometry.slots() as usize] }
    }

    pub const fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    pub fn get(&self, slot: u32) -> SlotContent {
        self.content[slot as usize]
    }

    pub fn set(&mut self, slot: u32, content: SlotContent) {
        self.content[slot as usize] = content;
    }

    pub fn location(&self, IndexEntry { place, extent, .. }: IndexEntry) -> Location {
        let (slot, byte) = self.geometry.find(place);
        let page = u32::try_from(byte / PAGE as u64).expect("segments are small");
        let SlotContent { sequence, incarnation } = self.get(slot);
        let position = Position::new(Segment { log: self.geometry.log_of(slot), sequence }, page);
        let pages = extent.pages().min(self.geometry.segment_pages - page);
        Location {
            offset: self.geometry.offset(slot, page),
            length: pages as usize * PAGE,
            position,
            stamp: position.stamp(incarnation),
            skip: usize::try_from(byte).expect("segments are small") % PAGE,
            is_packed: extent == Extent::Packed,
        }
    }
}

/// The pages of the file that contain a record. They are consecutive and belong to one segment.
#[derive(Clone, Copy, Debug)]
pub struct Location {
    /// Byte offset in the file of the first of these pages.
    pub offset: u64,
    /// Length of all these pages together, in bytes.
    pub length: usize,
    pub position: Position,
    stamp: u64,
    /// Number of bytes of the first page that precede the record.
    skip: usize,
    is_packed: bool,
}

impl Location {
    /// Verifies the bytes that were read from the pages, and returns the record of `key`.
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

    /// Returns all valid records in the bytes that were read from the pages. There are several if
    /// small records share a page.
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
