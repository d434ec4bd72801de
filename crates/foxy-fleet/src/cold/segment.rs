//! The bytes of a segment: records, then a footer with an entry for each record. A record has its
//! own header and checksum, so that one ranged read verifies it. All numbers are little-endian.
//!
//! ```text
//! record: key 16, length of the head 4, length of the body 4, checksum 8, head, body
//! entry:  key 16, order 8, offset 4, length 4
//! footer: entries, then count 4, version 4, checksum 8
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use foxy_proxy::cache::cold::{Key, Record};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Largest size in bytes of a segment with its footer.
pub const SEGMENT_BYTES: usize = 16 << 20;
const RECORD_HEADER_BYTES: usize = 32;
const ENTRY_BYTES: usize = 32;
const TRAILER_BYTES: usize = 16;
/// Version of the format. A reader ignores segments of other versions.
const VERSION: u32 = 1;

/// The place of a record in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRecord {
    pub key: Key,
    /// Position of the record in the order of offers and removals.
    pub order: u64,
    pub offset: u32,
    pub length: u32,
}

/// A segment in memory that still receives records.
#[derive(Debug, Default)]
pub struct SegmentBuffer {
    bytes: BytesMut,
    entries: Vec<SegmentRecord>,
}

impl SegmentBuffer {
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn has_room(&self, record: &Record) -> bool {
        let record = RECORD_HEADER_BYTES + record.head.len() + record.body.len();
        self.bytes.len() + record + footer_bytes(self.entries.len() + 1) <= SEGMENT_BYTES
    }

    /// Adds a record. The caller has asked [`Self::has_room`].
    pub fn push(&mut self, key: Key, order: u64, record: &Record) {
        let offset = small(self.bytes.len());
        self.bytes.put_slice(&key.0);
        self.bytes.put_u32_le(small(record.head.len()));
        self.bytes.put_u32_le(small(record.body.len()));
        self.bytes.put_u64_le(checksum(key, &record.head, &record.body));
        self.bytes.put_slice(&record.head);
        self.bytes.put_slice(&record.body);
        let length = small(self.bytes.len()) - offset;
        self.entries.push(SegmentRecord { key, order, offset, length });
    }

    /// Appends the footer. Returns the segment's bytes and entries.
    pub fn finish(self) -> (Bytes, Vec<SegmentRecord>) {
        let Self { mut bytes, entries } = self;
        let begin = bytes.len();
        for entry in &entries {
            bytes.put_slice(&entry.key.0);
            bytes.put_u64_le(entry.order);
            bytes.put_u32_le(entry.offset);
            bytes.put_u32_le(entry.length);
        }
        bytes.put_u32_le(small(entries.len()));
        bytes.put_u32_le(VERSION);
        let checksum = xxh3_64(&bytes[begin..]);
        bytes.put_u64_le(checksum);
        (bytes.freeze(), entries)
    }
}

/// Returns a length within a segment as it stands in the formats.
pub fn small(length: usize) -> u32 {
    u32::try_from(length).expect("a segment has at most 16 MiB")
}

fn checksum(key: Key, head: &[u8], body: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&key.0);
    hash.update(&(head.len() as u64).to_le_bytes());
    hash.update(head);
    hash.update(body);
    hash.digest()
}

/// Returns the size in bytes of the footer of a segment with `count` records.
pub const fn footer_bytes(count: usize) -> usize {
    count * ENTRY_BYTES + TRAILER_BYTES
}

/// Reads the footer of a segment. Returns `None` if it is damaged or has another version, or names
/// a place outside of a segment.
pub fn read_footer(footer: &[u8]) -> Option<Vec<SegmentRecord>> {
    let checked = footer.len().checked_sub(8)?;
    let count = number(footer, footer.len().checked_sub(TRAILER_BYTES)?)? as usize;
    let is_sound = wide(footer, checked)? == xxh3_64(&footer[..checked])
        && number(footer, checked - 4)? == VERSION
        && footer_bytes(count) == footer.len();
    let entry = |bytes: &[u8]| {
        let key = Key(bytes.get(..16)?.try_into().ok()?);
        let (order, offset, length) = (wide(bytes, 16)?, number(bytes, 24)?, number(bytes, 28)?);
        let is_inside = offset.checked_add(length).is_some_and(|end| end as usize <= SEGMENT_BYTES);
        is_inside.then_some(SegmentRecord { key, order, offset, length })
    };
    is_sound.then(|| footer.chunks_exact(ENTRY_BYTES).take(count).map(entry).collect())?
}

/// Reads a record. Returns `None` if it is damaged or belongs to another key.
pub fn read_record(key: Key, bytes: &Bytes) -> Option<Record> {
    let is_of_key = bytes.get(..16)? == key.0;
    let (head, body) = (number(bytes, 16)? as usize, number(bytes, 20)? as usize);
    let end = RECORD_HEADER_BYTES.checked_add(head)?.checked_add(body)?;
    if !is_of_key || end != bytes.len() {
        return None;
    }
    let (begin, sum) = (RECORD_HEADER_BYTES + head, wide(bytes, 24)?);
    let record =
        Record { head: bytes.slice(RECORD_HEADER_BYTES..begin), body: bytes.slice(begin..) };
    (checksum(key, &record.head, &record.body) == sum).then_some(record)
}

pub fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub fn wide(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    fn key(number: u64) -> Key {
        Key(u128::from(number).to_le_bytes())
    }

    fn record(number: usize) -> Record {
        Record { head: vec![7; number % 90].into(), body: vec![number as u8; number * 13].into() }
    }

    fn segment(count: usize) -> (Bytes, Vec<SegmentRecord>) {
        let mut buffer = SegmentBuffer::default();
        (0..count).for_each(|at| buffer.push(key(at as u64), at as u64 + 5, &record(at)));
        buffer.finish()
    }

    fn at(bytes: &Bytes, entry: &SegmentRecord) -> Bytes {
        bytes.slice(entry.offset as usize..(entry.offset + entry.length) as usize)
    }

    #[test]
    fn every_record_is_read_back() {
        for count in [0, 1, 2, 300] {
            let (bytes, entries) = segment(count);
            let footer = &bytes[bytes.len() - footer_bytes(count)..];
            assert_eq!(read_footer(footer), Some(entries.clone()));
            for (number, entry) in entries.iter().enumerate() {
                let found = read_record(entry.key, &at(&bytes, entry));
                assert_eq!(found, Some(record(number)));
                assert_eq!(read_record(key(9_999), &at(&bytes, entry)), None, "another key");
            }
        }
    }

    #[test]
    fn no_damage_is_taken_for_a_record_or_footer() {
        let (bytes, entries) = segment(40);
        let mut random = Random::new(11);
        for _ in 0..2_000 {
            let mut damaged = bytes.to_vec();
            let place = random.below(bytes.len() as u64) as usize;
            damaged[place] ^= 1 << random.below(8);
            let damaged = Bytes::from(damaged);
            let footer = damaged.len() - footer_bytes(40);
            assert_eq!(read_footer(&damaged[footer..]).is_none(), place >= footer);
            for (number, entry) in entries.iter().enumerate() {
                let is_hit = (entry.offset..entry.offset + entry.length).contains(&(place as u32));
                let expected = (!is_hit).then(|| record(number));
                assert_eq!(read_record(entry.key, &at(&damaged, entry)), expected);
            }
        }
        (0..footer_bytes(3)).for_each(|length| assert_eq!(read_footer(&bytes[..length]), None));
    }

    #[test]
    fn a_footer_with_a_place_outside_of_a_segment_is_refused() {
        for (offset, length) in [(u32::MAX, 1000), (SEGMENT_BYTES as u32, 1), (0, u32::MAX)] {
            let entries = vec![SegmentRecord { key: key(1), order: 1, offset, length }];
            let (footer, _) = SegmentBuffer { bytes: BytesMut::new(), entries }.finish();
            assert_eq!(read_footer(&footer), None, "{offset} {length}");
        }
    }

    #[test]
    fn a_segment_never_exceeds_its_size() {
        let mut buffer = SegmentBuffer::default();
        let record = Record { head: vec![1; 700].into(), body: vec![2; 900_000].into() };
        let mut count = 0;
        while buffer.has_room(&record) {
            buffer.push(key(count), count, &record);
            count += 1;
        }
        let (bytes, _) = buffer.finish();
        assert!(bytes.len() <= SEGMENT_BYTES && bytes.len() > SEGMENT_BYTES - 1_000_000);
    }
}
