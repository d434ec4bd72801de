//! Computes whether a record is worth its disk space, from its size relative to the mean size and
//! its number of uses (requests). The result decides which log a new record is written to. It also
//! decides whether an old record is copied before its segment is discarded. Rationale:
//! `docs/decisions/webcosm-admission.md`.

/// Largest number of uses that is counted per record. It fits in two bits.
pub const MAX_USES: u8 = 3;

/// Larger records are treated like records of this many bytes, because objects are stored in parts
/// of about this size.
const MAX_BYTES: u64 = 1 << 20;

/// Number of half octaves (factors of √2 in size) in a step. A step is a factor of four in size.
/// For each step below the mean size, a small record starts with one more use. For each step above
/// twice the mean size, a large record needs one more use to be copied.
const STEP_HALF_OCTAVES: i32 = 4;

/// A record is heavy if its size is at least this many half octaves above the mean. Two half
/// octaves mean twice the mean size. Heavy records cause most of the written bytes but few hits.
const HEAVY_HALF_OCTAVES: i32 = 2;

/// The size of a record relative to the mean size, in half octaves. A half octave is a factor of
/// about the square root of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Distance(i32);

impl Distance {
    /// Returns the distance between the size `bytes` and the mean size `mean`. Returns zero if
    /// `mean` is 0.
    pub fn between(bytes: u64, mean: u64) -> Self {
        Self(if mean == 0 { 0 } else { half_octaves(bytes) - half_octaves(mean) })
    }

    /// Returns whether a new record of this size goes to the probation log. Records in that log are
    /// discarded unless they are requested again.
    pub const fn is_large(self) -> bool {
        self.0 > 0
    }

    /// Returns whether the record is heavy, which means about twice the mean size or more. A store
    /// that has used up its write budget (the limit of bytes written per day) first keeps new heavy
    /// records only in memory.
    pub const fn is_heavy(self) -> bool {
        self.0 >= HEAVY_HALF_OCTAVES
    }

    /// Returns the number of uses that a new record starts with. Small records start with more
    /// uses, because they need little disk space.
    pub fn first_uses(self) -> u8 {
        steps(-self.0)
    }

    /// Returns the use count after a copy from a discarded segment to a new segment. A copy costs
    /// one use. Returns `None` if the record is not worth the copy. A large record needs more uses
    /// to be worth it.
    pub fn uses_after_copy(self, uses: u8) -> Option<u8> {
        (uses > steps(self.0 - STEP_HALF_OCTAVES / 2)).then(|| uses - 1)
    }
}

/// Converts half octaves (factors of √2 in size) to whole steps (factors of four). The result is
/// between 0 and [`MAX_USES`].
fn steps(half_octaves: i32) -> u8 {
    u8::try_from((half_octaves / STEP_HALF_OCTAVES).clamp(0, i32::from(MAX_USES)))
        .unwrap_or(MAX_USES)
}

fn half_octaves(bytes: u64) -> i32 {
    let bytes = bytes.clamp(2, MAX_BYTES);
    let octave = bytes.ilog2();
    let upper_half = bytes >> (octave - 1) & 1;
    i32::try_from(2 * u64::from(octave) + upper_half).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a record of `bytes` bytes in a store with a mean record size of 16 KiB. `is_large`
    /// means that the record goes to the probation log, and `is_heavy` that a write budget defers
    /// the record. `needed` is the use count that the record needs to be copied.
    fn check(bytes: u64, is_large: bool, is_heavy: bool, first_uses: u8, needed: Option<u8>) {
        let distance = Distance::between(bytes, 16 << 10);
        let found = (0..=MAX_USES).find(|&uses| distance.uses_after_copy(uses).is_some());
        let all = (distance.is_large(), distance.is_heavy(), distance.first_uses(), found);
        assert_eq!(all, (is_large, is_heavy, first_uses, needed), "{bytes}");
    }

    #[test]
    fn small_records_have_credit_and_large_ones_pay_toll() {
        check(0, false, false, 3, Some(1));
        check(256, false, false, 3, Some(1));
        check(1 << 10, false, false, 2, Some(1));
        check(4 << 10, false, false, 1, Some(1));
        check(6 << 10, false, false, 0, Some(1));
        check(16 << 10, false, false, 0, Some(1));
        check(23 << 10, false, false, 0, Some(1));
        check(24 << 10, true, false, 0, Some(1));
        check(31 << 10, true, false, 0, Some(1));
        check(32 << 10, true, true, 0, Some(1));
        check(127 << 10, true, true, 0, Some(1));
        check(128 << 10, true, true, 0, Some(2));
        check(512 << 10, true, true, 0, Some(3));
        check(1 << 20, true, true, 0, Some(3));
        check(u64::MAX, true, true, 0, Some(3));
    }

    #[test]
    fn a_copy_costs_one_use_so_that_nothing_stays_for_ever() {
        let distance = Distance::between(100, 100);
        let left: Vec<_> = (0..=MAX_USES).map(|uses| distance.uses_after_copy(uses)).collect();
        assert_eq!(left, [None, Some(0), Some(1), Some(2)]);
    }

    #[test]
    fn in_an_empty_store_a_record_is_like_the_others() {
        for bytes in [0, 1, 4096, u64::MAX] {
            assert_eq!(Distance::between(bytes, 0), Distance::between(4096, 4096));
        }
    }
}
