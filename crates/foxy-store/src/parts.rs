//! Objects of any size as records of bounded size. A small object is one record; a larger one is parts of 1 MiB, each a
//! record under a key of its own, and a head record that is put last and so makes the object visible. Pure: it makes
//! and reads records, the caller puts and gets them, with one part in memory at a time.

use crate::contract::{Key, Record};
use crate::settings::RECORD_BODY_LIMIT;
use bytes::{Bytes, BytesMut};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_128;

/// Bytes of each part but the last.
pub const PART_BYTES: usize = RECORD_BODY_LIMIT;

const DESCRIPTION: usize = 24;
const PART_HEAD: usize = 28;
const WHOLE: u8 = 1;
const PARTS: u8 = 2;

/// Splits an object into records while it arrives.
#[derive(Debug)]
pub struct ObjectWriter {
    key: Key,
    fill: u64,
    total: u64,
    parts: u32,
    gathered: BytesMut,
}

impl ObjectWriter {
    /// Begins an object. `fill` is random and never used again for this key, so that parts of two fills cannot mix.
    #[must_use]
    pub fn new(key: Key, fill: u64) -> Self {
        Self { key, fill, total: 0, parts: 0, gathered: BytesMut::new() }
    }

    /// Takes the next bytes of the object, and hands parts that are full to `put`. An object that fits one record
    /// hands nothing over before [`ObjectWriter::finish`].
    pub fn push(&mut self, mut bytes: &[u8], mut put: impl FnMut(Key, Record)) {
        self.total += bytes.len() as u64;
        while self.gathered.len() + bytes.len() > PART_BYTES {
            let (now, later) = bytes.split_at(PART_BYTES - self.gathered.len());
            self.gathered.extend_from_slice(now);
            bytes = later;
            let (key, record) = self.part();
            put(key, record);
        }
        self.gathered.extend_from_slice(bytes);
    }

    /// Bytes taken so far.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Ends the object: its last part, if it has parts, and the head record. The head record must be put only once
    /// every part was answered `Stored`; else the object is given up and its parts are left to be evicted.
    #[must_use]
    pub fn finish(mut self, head: &[u8]) -> (Option<(Key, Record)>, Record) {
        if self.parts == 0 {
            let description = Description { kind: WHOLE, parts: 0, total: self.total, fill: self.fill };
            let record = Record { head: description.with(head), body: self.gathered.freeze() };
            return (None, record);
        }
        let last = self.part();
        let description = Description { kind: PARTS, parts: self.parts, total: self.total, fill: self.fill };
        (Some(last), Record { head: description.with(head), body: Bytes::new() })
    }

    fn part(&mut self) -> (Key, Record) {
        let key = part_key(self.key, self.fill, self.parts);
        let head = Bytes::copy_from_slice(&part_head(self.key, self.fill, self.parts));
        self.parts += 1;
        (key, Record { head, body: self.gathered.split().freeze() })
    }
}

/// Why a record is not what an object needs. Each is to be taken as a miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartsError {
    /// It has no description, or one that contradicts itself.
    NotAnObject,
    /// It is not the part asked for.
    OtherPart,
    /// The part has not the length it should have.
    PartLength,
}

/// An object as its head record describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    key: Key,
    description: Description,
    /// The caller's metadata.
    pub head: Bytes,
    /// All content of a small object; empty for one in parts.
    body: Bytes,
}

/// A piece of an object's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes that came with the head record.
    Here(Bytes),
    /// A part to get, and which of its bytes are wanted.
    Part(PartPiece),
}

/// A part to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartPiece {
    /// The key of its record.
    pub key: Key,
    number: u32,
    length: usize,
    wanted: Range<usize>,
}

impl Object {
    /// Reads the head record that was stored under `key`.
    ///
    /// # Errors
    /// When it does not describe an object.
    pub fn open(key: Key, record: Record) -> Result<Self, PartsError> {
        let description = Description::read(&record.head).ok_or(PartsError::NotAnObject)?;
        let sound = match description.kind {
            WHOLE => description.total == record.body.len() as u64 && description.parts == 0,
            _ => {
                let parts = description.total.div_ceil(PART_BYTES as u64);
                record.body.is_empty() && parts == u64::from(description.parts) && parts > 1
            }
        };
        let Record { head, body } = record;
        if !sound {
            return Err(PartsError::NotAnObject);
        }
        Ok(Self { key, description, head: head.slice(DESCRIPTION..), body })
    }

    /// Bytes of content.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.description.total
    }

    /// All content, when it came with the head record.
    #[must_use]
    pub fn body(&self) -> Option<&Bytes> {
        (self.description.kind == WHOLE).then_some(&self.body)
    }

    /// The same object with other metadata, as a 304 asks for: the record to put instead of its head record.
    #[must_use]
    pub fn with_head(&self, head: &[u8]) -> Record {
        Record { head: self.description.with(head), body: self.body.clone() }
    }

    /// The pieces that make up a range of the content, in order. What lies beyond the end is left out.
    pub fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = Piece> + use<> {
        let end = range.end.min(self.total());
        let start = range.start.min(end);
        let whole = (self.description.kind == WHOLE && start < end).then(|| {
            let at = |offset: u64| usize::try_from(offset).expect("within the body");
            Piece::Here(self.body.slice(at(start)..at(end)))
        });
        let size = PART_BYTES as u64;
        let numbers = match self.description.kind {
            PARTS if start < end => start / size..end.div_ceil(size),
            _ => 0..0,
        };
        let (key, description) = (self.key, self.description);
        let parts = numbers.map(move |number| {
            let from = number * size;
            let length = (description.total - from).min(size);
            let within = |offset: u64| usize::try_from(offset).expect("within a part");
            let wanted = within(start.saturating_sub(from))..within((end - from).min(length));
            let number = u32::try_from(number).expect("parts are counted in 32 bits");
            let key = part_key(key, description.fill, number);
            Piece::Part(PartPiece { key, number, length: within(length), wanted })
        });
        whole.into_iter().chain(parts)
    }

    /// The keys of all parts, to remove them with the object.
    pub fn part_keys(&self) -> impl Iterator<Item = Key> + use<> {
        let (key, fill) = (self.key, self.description.fill);
        (0..self.description.parts).map(move |number| part_key(key, fill, number))
    }

    /// Takes the wanted bytes out of the record got for a piece.
    ///
    /// # Errors
    /// When the record is not that part.
    pub fn take(&self, piece: &PartPiece, record: &Record) -> Result<Bytes, PartsError> {
        if record.head[..] != part_head(self.key, self.description.fill, piece.number) {
            return Err(PartsError::OtherPart);
        }
        if record.body.len() != piece.length {
            return Err(PartsError::PartLength);
        }
        Ok(record.body.slice(piece.wanted.clone()))
    }
}

/// What the head record says of the object, before the caller's own metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Description {
    kind: u8,
    parts: u32,
    total: u64,
    fill: u64,
}

impl Description {
    fn with(&self, head: &[u8]) -> Bytes {
        let mut bytes = BytesMut::with_capacity(DESCRIPTION + head.len());
        bytes.extend_from_slice(&[self.kind, 0, 0, 0]);
        bytes.extend_from_slice(&self.parts.to_le_bytes());
        bytes.extend_from_slice(&self.total.to_le_bytes());
        bytes.extend_from_slice(&self.fill.to_le_bytes());
        bytes.extend_from_slice(head);
        bytes.freeze()
    }

    fn read(head: &[u8]) -> Option<Self> {
        let bytes = head.first_chunk::<DESCRIPTION>()?;
        let (mut parts, mut total, mut fill) = ([0; 4], [0; 8], [0; 8]);
        parts.copy_from_slice(&bytes[4..8]);
        total.copy_from_slice(&bytes[8..16]);
        fill.copy_from_slice(&bytes[16..24]);
        let kind = bytes[0];
        let known = matches!(kind, WHOLE | PARTS) && bytes[1..4] == [0; 3];
        known.then(|| Self {
            kind,
            parts: u32::from_le_bytes(parts),
            total: u64::from_le_bytes(total),
            fill: u64::from_le_bytes(fill),
        })
    }
}

fn part_head(key: Key, fill: u64, number: u32) -> [u8; PART_HEAD] {
    let mut bytes = [0; PART_HEAD];
    bytes[..16].copy_from_slice(&key.0);
    bytes[16..24].copy_from_slice(&fill.to_le_bytes());
    bytes[24..].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// The key of a part. It depends on the fill, so a new fill of the object never replaces parts that are being read.
fn part_key(key: Key, fill: u64, number: u32) -> Key {
    Key(xxh3_128(&part_head(key, fill, number)).to_le_bytes())
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
