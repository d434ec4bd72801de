//! The keys of the records that contain a large body in parts of 1 MiB.

use foxy_store::Key;
use xxhash_rust::xxh3::xxh3_128;

/// Number of body bytes in one record. A larger body is stored in several parts of this size.
pub const PART: usize = foxy_store::settings::RECORD_BODY_LIMIT;

/// Returns the key of one part (1 MiB) of a body. `fill` is the random number of the fetch, so that
/// the parts of two fetches have different keys.
pub fn part_key(object: Key, fill: u64, number: u64) -> Key {
    let mut text = [0; 32];
    text[..16].copy_from_slice(&object.0);
    text[16..24].copy_from_slice(&fill.to_le_bytes());
    text[24..].copy_from_slice(&number.to_le_bytes());
    Key(xxh3_128(&text).to_le_bytes())
}

/// The keys of the records that contain a body in parts of 1 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartKeys {
    /// Key of the object to which the body belongs. The keys of the parts are computed from it.
    pub(crate) object: Key,
    pub(crate) fill: u64,
    /// Length in bytes of the body. If the body is still being stored, this is the number of bytes
    /// in the parts (1 MiB each) that are already stored.
    pub(crate) length: u64,
}

impl PartKeys {
    pub(crate) fn key(self, number: u64) -> Key {
        part_key(self.object, self.fill, number)
    }

    /// Returns the number of body bytes in the parts for which `has` returns true.
    pub(crate) fn stored_bytes(self, has: impl Fn(Key) -> bool) -> u64 {
        let part = PART as u64;
        let numbers = 0..self.length.div_ceil(part);
        let stored = numbers.filter(|number| has(self.key(*number)));
        stored.map(|number| part.min(self.length - number * part)).sum()
    }
}
