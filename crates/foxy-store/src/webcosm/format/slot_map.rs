//! How the slots of a log follow each other when their number has changed. Arithmetic only.

use crate::webcosm::format::geometry::Sequence;

/// Where the main log's slots were counted from anew, since a store that changes its size keeps its
/// segments where they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The segment that lies in the first slot.
    pub base: Sequence,
    /// How many slots there were before it: where older segments are counted back from.
    pub before: u32,
}

impl Turn {
    /// As the superblock has it.
    #[must_use]
    pub const fn pack(self) -> u64 {
        (self.base as u64) << 32 | self.before as u64
    }

    /// The place of a segment in the order of the slots, which may be some turns too far.
    #[must_use]
    pub const fn place(self, sequence: Sequence) -> u32 {
        match sequence.checked_sub(self.base) {
            Some(number) => number,
            None => sequence.wrapping_sub(self.base).wrapping_add(self.before),
        }
    }

    /// How many segments the log can have in so many slots when that is the oldest: while there are
    /// some from before the base, no more than there were slots then, as the next one takes the
    /// slot of the oldest.
    #[must_use]
    pub const fn segments(self, slots: u32, oldest: Sequence) -> u32 {
        if oldest < self.base { self.before } else { slots }
    }

    /// From the superblock.
    #[must_use]
    pub const fn unpack(packed: u64) -> Self {
        Self { base: (packed >> 32) as Sequence, before: packed as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_segments_are_counted_back_from_where_the_slots_ended() {
        let turn = Turn { base: 20, before: 10 };
        let places = [12, 19, 20, 21, 35].map(|sequence| turn.place(sequence));
        assert_eq!(places, [2, 9, 0, 1, 15]);
        assert_eq!([turn.segments(30, 12), turn.segments(30, 20)], [10, 30]);
        assert_eq!(Turn::unpack(turn.pack()), turn);
    }
}
