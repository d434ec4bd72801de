//! Encodes and decodes one slot in the file of the canary (a test scheme with a known flaw):
//! header, head and body of a record.

use super::Flaw;
use bytes::Bytes;
use foxy_device::IoBuffer;
use foxy_store::{Key, Record};
use xxhash_rust::xxh3::Xxh3;

/// Size of a slot in bytes.
pub(super) const SLOT: usize = 24 << 10;
/// Size of the header in bytes: magic, lengths of head and body, key, checksum.
pub(super) const HEADER: usize = 36;
const MAGIC: &[u8; 4] = b"slot";

/// Encodes a record. Returns `None` if it does not fit into a slot.
pub(super) fn encode(key: Key, record: &Record) -> Option<IoBuffer> {
    if HEADER + record.len() > SLOT {
        return None;
    }
    let mut buffer = IoBuffer::zeroed(HEADER + record.len());
    let bytes = buffer.as_mut();
    bytes[..4].copy_from_slice(MAGIC);
    bytes[4..8].copy_from_slice(&length(&record.head));
    bytes[8..12].copy_from_slice(&length(&record.body));
    bytes[12..28].copy_from_slice(&key.0);
    bytes[28..36].copy_from_slice(&checksum(key, record).to_le_bytes());
    bytes[HEADER..HEADER + record.head.len()].copy_from_slice(&record.head);
    bytes[HEADER + record.head.len()..].copy_from_slice(&record.body);
    Some(buffer)
}

/// Decodes the record in `bytes`. Returns `None` for another key or damaged bytes.
pub(super) fn decode(key: Key, bytes: &Bytes, flaw: Flaw) -> Option<Record> {
    let header = bytes.get(..HEADER)?;
    let number =
        |at: usize| header[at..at + 4].try_into().ok().map(|b| u32::from_le_bytes(b) as usize);
    let compared = match flaw {
        Flaw::ChecksHalfTheKey => 8,
        Flaw::LooksOnce => 0,
        _ => 16,
    };
    if header[..4] != *MAGIC || header[12..12 + compared] != key.0[..compared] {
        return None;
    }
    let owner = Key(header[12..28].try_into().ok()?);
    let (head, body) = (number(4)?, number(8)?);
    if head > SLOT || body > SLOT || HEADER + head + body > bytes.len() {
        return None;
    }
    let record = Record {
        head: bytes.slice(HEADER..HEADER + head),
        body: bytes.slice(HEADER + head..HEADER + head + body),
    };
    let sound = checksum(owner, &record).to_le_bytes() == header[28..36];
    (sound || flaw == Flaw::SkipsChecksum).then_some(record)
}

fn checksum(key: Key, record: &Record) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(&key.0);
    hash.update(&length(&record.head));
    hash.update(&record.head);
    hash.update(&record.body);
    hash.digest()
}

fn length(bytes: &Bytes) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes()
}
