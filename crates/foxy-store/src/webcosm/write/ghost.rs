//! The ghost: a hash table that remembers records that left the store early. They were recently
//! discarded from the probation log (the log for large new records), or dropped while deferred
//! (kept only in memory). If such a record is stored again, it goes to the main log at once. The
//! table stores only a fingerprint of four bytes per record. A new fingerprint may overwrite an
//! older fingerprint. A false match only wastes space in the main log.

use crate::webcosm::format::geometry::Geometry;
use crate::webcosm::index::Tag;
use foxy_base::random::split_mix;

/// The table has one place per `STORE_BYTES_PER_PLACE` bytes of the store.
const STORE_BYTES_PER_PLACE: u64 = 128 << 10;

#[derive(Debug)]
pub struct Ghost {
    places: Vec<u32>,
}

impl Ghost {
    pub fn new(geometry: &Geometry) -> Self {
        let bytes = u64::from(geometry.slots()) * geometry.segment_bytes();
        let count = (bytes / STORE_BYTES_PER_PLACE).clamp(64, 1 << 26).next_power_of_two();
        Self { places: vec![0; usize::try_from(count).expect("clamped")] }
    }

    /// Returns the size of the table in bytes of memory.
    pub const fn memory(&self) -> u64 {
        self.places.len() as u64 * 4
    }

    fn find(&mut self, tag: Tag) -> (&mut u32, u32) {
        let hash = split_mix(&mut { tag.0 });
        let place = hash as usize & (self.places.len() - 1);
        (&mut self.places[place], (hash >> 32) as u32 | 1)
    }

    pub fn add(&mut self, tag: Tag) {
        let (place, fingerprint) = self.find(tag);
        *place = fingerprint;
    }

    /// Removes a record from the table. Returns whether the table contained it.
    pub fn take(&mut self, tag: Tag) -> bool {
        let (place, fingerprint) = self.find(tag);
        let is_known = *place == fingerprint;
        if is_known {
            *place = 0;
        }
        is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_records_are_known_once_and_others_rarely() {
        let mut ghost = Ghost::new(&Geometry::of(64 << 20));
        (0..100).for_each(|n| ghost.add(Tag(n)));
        let known = (0..100).filter(|&n| ghost.take(Tag(n))).count();
        assert!(known > 80, "{known}");
        assert!((0..10_000).all(|n| !ghost.take(Tag(n))));
    }
}
