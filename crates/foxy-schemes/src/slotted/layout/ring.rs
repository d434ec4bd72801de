//! The layout of Squid's storage scheme coss: one file as a ring of stripes. Records are written
//! one after another into the current stripe. If a record does not fit, the next stripe becomes
//! current. The old records of this stripe are dropped before they are overwritten.

use super::{FileKind, Layout, LayoutFile, Piece, Placement};
use foxy_store::layout::SLOT;

/// Number of slots (512 bytes each) in a stripe of 1 MiB. Stores with less space than eight such
/// stripes have smaller stripes.
const STRIPE: u32 = (1 << 20) / SLOT as u32;
const MIN_STRIPES: u32 = 8;

#[derive(Debug)]
pub struct Ring {
    stripe: u32,
    stripes: u32,
    current: u32,
    used: u32,
    /// Whether the old records of the next stripe are already dropped.
    cleared: bool,
}

impl Ring {
    pub fn new(slots: u32) -> Self {
        let stripe = STRIPE.min(slots / MIN_STRIPES).max(1);
        Self { stripe, stripes: slots / stripe, current: 0, used: 0, cleared: false }
    }

    /// Returns the number of slots (512 bytes each) in a stripe of a store with `slots` slots.
    pub fn stripe_of(slots: u32) -> u32 {
        Self::new(slots).stripe
    }
}

impl Layout for Ring {
    fn place(&mut self, slots: u32) -> Placement {
        assert!(slots <= self.stripe, "the scheme refuses what is larger than a stripe");
        if self.used + slots > self.stripe {
            let next = (self.current + 1) % self.stripes;
            if !self.cleared {
                let piece = Piece { file: 0, first: next * self.stripe, slots: self.stripe };
                return Placement::AfterClearing(piece);
            }
            (self.current, self.used, self.cleared) = (next, 0, false);
        }
        let first = self.current * self.stripe + self.used;
        self.used += slots;
        Placement::At(vec![Piece { file: 0, first, slots }])
    }

    fn cleared(&mut self, clear: bool) -> bool {
        self.cleared = clear;
        clear
    }

    fn clears(&self) -> bool {
        true
    }

    fn free(&mut self, _pieces: &[Piece]) {}

    /// Accepts the place of a record from an earlier run. The caller adopts the newest record last.
    /// New records then go into the stripe after the stripe of that record.
    fn adopt(&mut self, pieces: &[Piece]) -> bool {
        let [Piece { file: 0, first, slots }] = *pieces else { return false };
        let stripe = first / self.stripe;
        let within = first % self.stripe + slots <= self.stripe && stripe < self.stripes;
        if within {
            (self.current, self.used) = (stripe, self.stripe);
        }
        within
    }

    fn kind(&self, _file: u64) -> FileKind {
        FileKind::Shared(u64::from(self.stripe) * u64::from(self.stripes) * SLOT as u64)
    }

    fn files(&self) -> Vec<LayoutFile> {
        let head = (self.current * self.stripe + self.used).checked_sub(1);
        vec![LayoutFile { file: 0, slots: self.stripe * self.stripes, head: head.or(Some(0)) }]
    }

    fn capacity(&self) -> u64 {
        u64::from(self.stripe) * u64::from(self.stripes)
    }

    fn largest(&self) -> u64 {
        u64::from(self.stripe)
    }

    fn memory(&self) -> usize {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_turns_stripe_by_stripe_and_asks_for_each_to_be_cleared() {
        let mut ring = Ring::new(80);
        let at = |first, slots| Placement::At(vec![Piece { file: 0, first, slots }]);
        assert_eq!((ring.place(6), ring.place(4)), (at(0, 6), at(6, 4)));
        for turn in 1..20 {
            let first = turn % 8 * 10;
            let clear = Placement::AfterClearing(Piece { file: 0, first, slots: 10 });
            assert_eq!((ring.place(7), ring.place(7)), (clear.clone(), clear), "turn {turn}");
            ring.cleared(true);
            assert_eq!(ring.place(7), at(first, 7), "turn {turn}");
        }
    }

    #[test]
    fn after_adoption_the_ring_goes_on_behind_the_newest_record() {
        let mut ring = Ring::new(80);
        for first in [70, 0, 15] {
            assert!(ring.adopt(&[Piece { file: 0, first, slots: 5 }]));
        }
        for wrong in [Piece { file: 0, first: 8, slots: 5 }, Piece { file: 0, first: 80, slots: 1 }]
        {
            assert!(!ring.adopt(&[wrong]));
        }
        assert_eq!(
            ring.place(1),
            Placement::AfterClearing(Piece { file: 0, first: 20, slots: 10 })
        );
    }
}
