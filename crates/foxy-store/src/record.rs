//! The format of a record on disk: a header of 64 bytes, then head and body, padded to whole slots
//! of 512 bytes. The header makes a recovery by a scan of the disk possible (requirement R39 of
//! `foxy figure requirements`). Every byte read from disk is verified. All checksums use the
//! store's secret as their seed, so no stored body can look like a record.

use crate::contract::{AbsentReason, Key, Record};
use crate::layout::SLOT;
use crate::settings::{RECORD_BODY_LIMIT, RECORD_HEAD_LIMIT};
use bytes::Bytes;
use foxy_device::{IoBuffer, IoError};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Size of a record's header in bytes.
pub const HEADER: usize = 64;

/// Version of the disk format of records, superblocks and journals.
pub const FORMAT_VERSION: u32 = 1;

/// The secret of a store. Without the secret, nobody can create bytes that look like a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secret {
    salt: u64,
    mark: u64,
}

impl Secret {
    pub fn new(salt: u64) -> Self {
        Self { salt, mark: xxh3_64_with_seed(b"foxy record", salt) }
    }

    /// Returns the checksum of `bytes`, seeded with the secret.
    pub fn checksum(&self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.salt)
    }

    /// Returns the mark: the first 8 bytes of every record header in this store. The mark depends
    /// on the secret.
    pub const fn mark(&self) -> u64 {
        self.mark
    }

    /// Returns the salt: the random number in the superblock from which the secret is derived.
    pub const fn salt(&self) -> u64 {
        self.salt
    }
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub key: Key,
    /// The sequence number of the put that wrote the record. A later put has a larger number.
    pub sequence: u64,
    pub head_length: u32,
    pub body_length: u32,
    /// The checksum of head and body together.
    pub content: u64,
}

/// The reason why bytes are not the expected record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The bytes do not start with the mark of a header.
    NoMark,
    /// The header is damaged: its checksum is wrong, or its mark has a few wrong bits.
    HeaderDamaged,
    /// The header was written by another version of the disk format.
    OtherVersion,
    /// The lengths in the header exceed the limits or the bytes that were read.
    Lengths,
    /// The header is valid but belongs to another record.
    OtherRecord,
    /// The head and body do not match their checksum.
    ContentDamaged,
}

/// Converts the reason to the answer of a get. A record that is longer than the bytes that were
/// read counts as a failure of the device, because the read returned too few bytes.
impl From<RecordError> for AbsentReason {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::NoMark | RecordError::OtherRecord | RecordError::OtherVersion => {
                Self::KeyMismatch
            }
            RecordError::HeaderDamaged | RecordError::ContentDamaged => Self::ChecksumMismatch,
            RecordError::Lengths => Self::DeviceFailed(IoError::Device),
        }
    }
}

/// Returns the number of slots for a record with `content` bytes of head and body.
pub const fn slots_for(content: usize) -> u32 {
    (HEADER + content).div_ceil(SLOT) as u32
}

/// Number of slots for the largest possible record.
pub const SLOTS_LIMIT: u32 = slots_for(RECORD_BODY_LIMIT + RECORD_HEAD_LIMIT);

/// A mark with at most this many wrong bits counts as the mark of a damaged header. With more wrong
/// bits, the bytes are something else.
const MARK_DOUBT_BITS: u32 = 8;

impl Header {
    pub const fn slots(&self) -> u32 {
        slots_for(self.head_length as usize + self.body_length as usize)
    }

    /// Decodes and verifies the record header at the start of a slot.
    pub fn decode(slot: &[u8], secret: &Secret) -> Result<Self, RecordError> {
        let Some(bytes) = slot.first_chunk::<HEADER>() else { return Err(RecordError::Lengths) };
        let mark = number(bytes, 0);
        if mark != secret.mark {
            let near = (mark ^ secret.mark).count_ones() <= MARK_DOUBT_BITS;
            return Err(if near { RecordError::HeaderDamaged } else { RecordError::NoMark });
        }
        if number(bytes, 56) != secret.checksum(&bytes[..56]) {
            return Err(RecordError::HeaderDamaged);
        }
        if number_32(bytes, 8) != FORMAT_VERSION {
            return Err(RecordError::OtherVersion);
        }
        let mut key = [0; 16];
        key.copy_from_slice(&bytes[24..40]);
        let header = Self {
            key: Key(key),
            sequence: number(bytes, 40),
            head_length: number_32(bytes, 12),
            body_length: number_32(bytes, 16),
            content: number(bytes, 48),
        };
        let sound = header.head_length as usize <= RECORD_HEAD_LIMIT
            && header.body_length as usize <= RECORD_BODY_LIMIT
            && header.slots() == number_32(bytes, 20);
        if sound { Ok(header) } else { Err(RecordError::Lengths) }
    }

    fn encode(&self, secret: &Secret) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&secret.mark.to_le_bytes());
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.head_length.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.body_length.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.slots().to_le_bytes());
        bytes[24..40].copy_from_slice(&self.key.0);
        bytes[40..48].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.content.to_le_bytes());
        let checksum = secret.checksum(&bytes[..56]);
        bytes[56..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

fn number(bytes: &[u8; HEADER], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

fn number_32(bytes: &[u8; HEADER], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

/// Encodes a record at the start of `out`. The bytes of `out` must be zero.
///
/// # Panics
/// If `out` is too short or the record exceeds the limits. The caller must check both.
pub fn encode(out: &mut [u8], key: Key, sequence: u64, record: &Record, secret: &Secret) {
    let (head, body) = (&record.head, &record.body);
    let end = HEADER + head.len() + body.len();
    out[HEADER..HEADER + head.len()].copy_from_slice(head);
    out[HEADER + head.len()..end].copy_from_slice(body);
    let header = Header {
        key,
        sequence,
        head_length: u32::try_from(head.len()).expect("heads are limited"),
        body_length: u32::try_from(body.len()).expect("bodies are limited"),
        content: secret.checksum(&out[HEADER..end]),
    };
    out[..HEADER].copy_from_slice(&header.encode(secret));
}

/// Smallest buffer in bytes that a record may share instead of copying its bytes. The allocator
/// gives such a buffer memory pages of its own, so a shared buffer blocks no other memory.
const MIN_SHARED_BYTES: usize = 256 << 10;

/// A record may share a buffer if the unused part of the buffer is at most 1/`MAX_UNUSED_SHARE` of
/// the record's length.
const MAX_UNUSED_SHARE: usize = 16;

/// Verifies the record of `key` and `sequence` that starts at byte `skip` of the buffer, and
/// returns it. If the record nearly fills a large buffer, it shares the buffer's memory. Otherwise
/// the record is copied, so that it keeps no more memory in use than its length.
pub fn decode(
    buffer: IoBuffer,
    skip: usize,
    key: Key,
    sequence: u64,
    secret: &Secret,
) -> Result<Record, RecordError> {
    let bytes = buffer.as_ref().get(skip..).ok_or(RecordError::Lengths)?;
    let header = Header::decode(bytes, secret)?;
    if header.key != key || header.sequence != sequence {
        return Err(RecordError::OtherRecord);
    }
    let (head, body) = (header.head_length as usize, header.body_length as usize);
    let content = bytes.get(HEADER..HEADER + head + body).ok_or(RecordError::Lengths)?;
    if secret.checksum(content) != header.content {
        return Err(RecordError::ContentDamaged);
    }
    if buffer.len() < MIN_SHARED_BYTES
        || content.len() + content.len() / MAX_UNUSED_SHARE < buffer.len()
    {
        let copy = Bytes::copy_from_slice(content);
        return Ok(Record { head: copy.slice(..head), body: copy.slice(head..) });
    }
    let start = skip + HEADER;
    let all = buffer.freeze();
    Ok(Record {
        head: all.slice(start..start + head),
        body: all.slice(start + head..start + head + body),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    const KEY: Key = Key([9; 16]);

    fn encoded(head: usize, body: usize) -> (Record, Vec<u8>) {
        let mut random = Random::new(3);
        let mut make = |length| {
            let mut bytes = vec![0; length];
            random.fill(&mut bytes);
            Bytes::from(bytes)
        };
        let record = Record { head: make(head), body: make(body) };
        let mut out = vec![0; slots_for(head + body) as usize * SLOT];
        encode(&mut out, KEY, 5, &record, &Secret::new(1));
        (record, out)
    }

    fn read(bytes: &[u8], key: Key, sequence: u64, salt: u64) -> Result<Record, RecordError> {
        decode(IoBuffer::copy_of(bytes), 0, key, sequence, &Secret::new(salt))
    }

    #[test]
    fn records_come_back_byte_for_byte() {
        for (head, body) in [(0, 0), (0, 1), (200, 448 - 200), (10, 5000), (65_536, 1 << 20)] {
            let (record, bytes) = encoded(head, body);
            assert_eq!(read(&bytes, KEY, 5, 1), Ok(record), "head {head}, body {body}");
        }
    }

    #[test]
    fn a_record_that_is_kept_keeps_no_more_than_its_length() {
        for (length, is_shared) in [
            (2_200, false),
            (4_000, false),
            (40_000, false),
            (MIN_SHARED_BYTES / 2, false),
            (1 << 20, true),
        ] {
            let (record, mut bytes) = encoded(0, length);
            bytes.resize(bytes.len().next_multiple_of(4096), 0);
            let buffer = IoBuffer::copy_of(&bytes);
            let place = buffer.as_ref().as_ptr_range();
            let found = decode(buffer, 0, KEY, 5, &Secret::new(1)).expect("it is there");
            assert_eq!(
                (place.contains(&found.body.as_ptr()), &found),
                (is_shared, &record),
                "{length}"
            );
        }
    }

    #[test]
    fn every_flipped_bit_of_a_record_is_noticed() {
        let (_, bytes) = encoded(13, 40);
        for bit in 0..(HEADER + 53) * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let expected = if bit < HEADER * 8 {
                RecordError::HeaderDamaged
            } else {
                RecordError::ContentDamaged
            };
            assert_eq!(read(&damaged, KEY, 5, 1), Err(expected), "bit {bit}");
        }
    }

    #[test]
    fn refusals_are_named() {
        let (_, bytes) = encoded(0, 2000);
        assert_eq!(read(&bytes, Key([1; 16]), 5, 1), Err(RecordError::OtherRecord));
        assert_eq!(read(&bytes, KEY, 6, 1), Err(RecordError::OtherRecord));
        assert_eq!(read(&bytes, KEY, 5, 2), Err(RecordError::NoMark), "another store's secret");
        assert_eq!(read(&[0; 512], KEY, 5, 1), Err(RecordError::NoMark));
        assert_eq!(read(&bytes[..1024], KEY, 5, 1), Err(RecordError::Lengths));
        assert_eq!(read(&bytes[..40], KEY, 5, 1), Err(RecordError::Lengths));
    }
}
