//! Finds out which incarnation wrote a page. Each opening of a store is a new incarnation with its
//! own number. Every page contains the number of the incarnation that wrote it.

use crate::one_file::superblock::Superblock;
use crate::record::{Header, Secret};
use crate::webcosm::format::geometry::{INCARNATION_SHIFT, LogName, Position, Segment, Sequence};
use crate::webcosm::format::packed;

impl Position {
    /// Returns the incarnation (number of an opening of the store) that the stamp of a page states.
    /// Returns `None` if the stamp is for another position than `self`.
    pub const fn incarnation_in(self, stamp: u64) -> Option<u64> {
        let incarnation = stamp >> INCARNATION_SHIFT;
        if self.stamp(incarnation) == stamp { Some(incarnation) } else { None }
    }
}

/// Packs two segment numbers into one number for the superblock. They name the first segments that
/// an incarnation (opening of the store) writes in the two logs.
pub const fn begins_at([main, probation]: [Sequence; 2]) -> u64 {
    (main as u64) << 32 | probation as u64
}

/// Returns the number of the first segment of a log that the current incarnation (opening of the
/// store) may have written. The superblock contains this number.
pub const fn first_of_incarnation(superblock: &Superblock, log: LogName) -> Sequence {
    match log {
        LogName::Main => (superblock.durable >> 32) as Sequence,
        LogName::Probation => superblock.durable as Sequence,
    }
}

/// Returns whether `incarnation` (the number of an opening of the store) can have written the
/// segment. The current incarnation wrote all segments from its first segment on. Older
/// incarnations wrote all segments before.
pub fn fits(superblock: &Superblock, segment: Segment, incarnation: u64) -> bool {
    if segment.sequence >= first_of_incarnation(superblock, segment.log) {
        incarnation == superblock.opens
    } else {
        incarnation < superblock.opens
    }
}

/// Reads the `u64` at byte offset `at` of a page. Returns `None` if the page is too short.
pub fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Returns the incarnation (number of an opening of the store) that started a segment, as its first
/// page states. Returns `None` if this page is damaged. The page may contain one record or many
/// small records.
pub fn begun_in(page: &[u8], segment: Segment, secret: &Secret) -> Option<u64> {
    let first = Position::new(segment, 0);
    let packed = number(page, 8)
        .and_then(|stamp| first.incarnation_in(stamp))
        .filter(|&incarnation| packed::entries(page, first.stamp(incarnation), secret).is_some());
    packed.or_else(|| first.incarnation_in(Header::decode(page, secret).ok()?.sequence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_says_its_life_at_its_own_place_only() {
        let [here, there] = [(7, 0), (7, 1)].map(|(sequence, page)| {
            Position::new(Segment { log: LogName::Probation, sequence }, page)
        });
        for incarnation in [0, 1, (1 << (64 - INCARNATION_SHIFT)) - 1] {
            assert_eq!(here.incarnation_in(here.stamp(incarnation)), Some(incarnation));
            assert_eq!(there.incarnation_in(here.stamp(incarnation)), None);
        }
    }

    #[test]
    fn a_life_begins_in_each_log_where_it_was_said_to() {
        let superblock = Superblock { durable: begins_at([u32::MAX, 5]), ..Superblock::default() };
        assert_eq!(LogName::ALL.map(|log| first_of_incarnation(&superblock, log)), [u32::MAX, 5]);
    }
}
