//! Which life of a store wrote a segment: what its pages say, and where the life that the
//! superblock names began. Reading only; which segments count follows from it in `head`, and in
//! `check` again.

use crate::one_file::superblock::Superblock;
use crate::record::{Header, Secret};
use crate::webcosm::format::geometry::{LIFE_SHIFT, LogName, Position, Segment, Sequence};
use crate::webcosm::format::packed;

impl Position {
    /// The life that a stamp says, if it is one of this place.
    #[must_use]
    pub const fn life_in(self, stamp: u64) -> Option<u64> {
        let life = stamp >> LIFE_SHIFT;
        if self.stamp(life) == stamp { Some(life) } else { None }
    }
}

/// What a superblock says of where a life begins in each log, the main one first.
pub const fn begins_at([main, probation]: [Sequence; 2]) -> u64 {
    (main as u64) << 32 | probation as u64
}

/// The first segment of a log that the life named by the superblock may have written.
pub const fn first_of_life(superblock: &Superblock, log: LogName) -> Sequence {
    match log {
        LogName::Main => (superblock.durable >> 32) as Sequence,
        LogName::Probation => superblock.durable as Sequence,
    }
}

/// The number at a byte of some page.
pub fn number(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The life in which a segment was begun, if its first page is a sound beginning of it: a record,
/// or a page of small ones.
pub fn begun_in(page: &[u8], segment: Segment, secret: &Secret) -> Option<u64> {
    let first = Position::new(segment, 0);
    let packed = number(page, 8)
        .and_then(|stamp| first.life_in(stamp))
        .filter(|&life| packed::entries(page, first.stamp(life), secret).is_some());
    packed.or_else(|| first.life_in(Header::decode(page, secret).ok()?.sequence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_says_its_life_at_its_own_place_only() {
        let [here, there] = [(7, 0), (7, 1)].map(|(sequence, page)| {
            Position::new(Segment { log: LogName::Probation, sequence }, page)
        });
        for life in [0, 1, (1 << (64 - LIFE_SHIFT)) - 1] {
            assert_eq!(here.life_in(here.stamp(life)), Some(life));
            assert_eq!(there.life_in(here.stamp(life)), None);
        }
    }

    #[test]
    fn a_life_begins_in_each_log_where_it_was_said_to() {
        let superblock = Superblock { durable: begins_at([u32::MAX, 5]), ..Superblock::default() };
        assert_eq!(LogName::ALL.map(|log| first_of_life(&superblock, log)), [u32::MAX, 5]);
    }
}
