//! Makes keys and records from small numbers. So a script can name a record by numbers, and the
//! model can check every byte of an answer.

use bytes::Bytes;
use foxy_base::Random;
use foxy_base::random::split_mix;
use foxy_store::{Key, Record};

/// Size in bytes of the record's name at the start of its head. The name consists of key, version
/// and size as little-endian numbers.
const NAME_LENGTH: usize = 16;

/// The name of a record in scripts: key, version and body size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordName {
    /// Number of the record's key.
    pub key: u32,
    /// Number of the version. Each `put` of the key has another version.
    pub version: u32,
    /// Size of the record's body in bytes.
    pub size: u32,
}

/// Returns the store's key for a key number. The first halves of keys 2n and 2n+1 are equal, so
/// that a storage scheme which compares only half of the key fails.
pub fn key(number: u32) -> Key {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&mixed(u64::from(number / 2)).to_le_bytes());
    bytes[8..].copy_from_slice(&mixed(u64::from(number) | 1 << 40).to_le_bytes());
    Key(bytes)
}

/// Returns the record that belongs to a name. Bodies of different names differ in nearly every
/// byte. The head's length depends on the name.
pub fn record(name: RecordName) -> Record {
    let mut random = Random::new(mixed(u64::from(name.key) << 32 | u64::from(name.version)));
    let mut head = vec![0; NAME_LENGTH + usize::try_from(random.below(48)).unwrap_or(0)];
    random.fill(&mut head);
    head[..4].copy_from_slice(&name.key.to_le_bytes());
    head[4..8].copy_from_slice(&name.version.to_le_bytes());
    head[8..12].copy_from_slice(&name.size.to_le_bytes());
    head[12..16].copy_from_slice(b"fox!");
    let mut body = vec![0; name.size as usize];
    random.fill(&mut body);
    Record { head: Bytes::from(head), body: Bytes::from(body) }
}

/// Returns the name whose record equals `found` in every byte, or `None`.
pub fn identify(found: &Record) -> Option<RecordName> {
    let number = |at: usize| {
        let bytes = found.head.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let name = RecordName { key: number(0)?, version: number(4)?, size: number(8)? };
    let plausible = found.body.len() == name.size as usize;
    (plausible && record(name) == *found).then_some(name)
}

fn mixed(number: u64) -> u64 {
    let mut state = number;
    split_mix(&mut state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_identified_and_one_flipped_bit_is_not() {
        let name = RecordName { key: 3, version: 9, size: 700 };
        let whole = record(name);
        assert_eq!(identify(&whole), Some(name));
        for at in [0, 350, 699] {
            let mut body = whole.body.to_vec();
            body[at] ^= 4;
            assert_eq!(
                identify(&Record { body: Bytes::from(body), ..whole.clone() }),
                None,
                "byte {at}"
            );
        }
        assert_eq!(identify(&Record::default()), None);
    }

    #[test]
    fn neighbouring_keys_share_their_first_half_only() {
        assert_eq!(key(6).0[..8], key(7).0[..8]);
        assert_ne!(key(6), key(7));
        assert_ne!(key(7).0[..8], key(8).0[..8]);
    }
}
