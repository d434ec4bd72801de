//! The layout of the storage scheme STREAM: one preallocated file. A record takes the next free
//! slots (512 bytes each) after the last written record, usually one contiguous run. At the end of
//! the file, the search continues at the start.

use super::{FileKind, Layout, LayoutFile, Piece, Placement};
use foxy_store::layout::SLOT;

const BITS: u32 = 64;

/// The state of the layout: a bitmap of the used slots (512 bytes each).
#[derive(Debug)]
pub struct Cyclic {
    used: Vec<u64>,
    slots: u32,
    free: u32,
    cursor: u32,
}

impl Cyclic {
    pub fn new(slots: u32) -> Self {
        let mut used = vec![0; slots.div_ceil(BITS) as usize];
        if let Some(last) = used.last_mut()
            && !slots.is_multiple_of(BITS)
        {
            *last = u64::MAX << (slots % BITS);
        }
        Self { used, slots, free: slots, cursor: 0 }
    }

    fn is_used(&self, slot: u32) -> bool {
        self.used[(slot / BITS) as usize] >> (slot % BITS) & 1 == 1
    }

    fn set(&mut self, piece: Piece, used: bool) {
        for slot in piece.first..piece.first + piece.slots {
            let bit = 1 << (slot % BITS);
            let word = &mut self.used[(slot / BITS) as usize];
            assert_eq!(*word & bit == 0, used, "a slot is taken and given back once");
            *word ^= bit;
        }
        self.free = if used { self.free - piece.slots } else { self.free + piece.slots };
    }

    /// Returns the first free slot (512 bytes) at or after `from` in the file.
    fn next_free(&self, from: u32) -> Option<u32> {
        let mut index = (from / BITS) as usize;
        let mut free = !*self.used.get(index)? & (u64::MAX << (from % BITS));
        loop {
            if free != 0 {
                return Some(u32::try_from(index).ok()? * BITS + free.trailing_zeros());
            }
            index += 1;
            free = !*self.used.get(index)?;
        }
    }

    /// Returns the number of consecutive free slots (512 bytes each) from `first`, at most `most`.
    fn run_length(&self, first: u32, most: u32) -> u32 {
        let end = first.saturating_add(most).min(self.slots);
        let mut slot = first;
        while slot < end {
            let ahead = self.used[(slot / BITS) as usize] >> (slot % BITS);
            let free = ahead.trailing_zeros().min(BITS - slot % BITS);
            slot += free;
            if ahead != 0 {
                break;
            }
        }
        slot.min(end) - first
    }

    pub const fn free_slots(&self) -> u32 {
        self.free
    }

    /// Returns the slot (512 bytes) at which the search for free slots begins.
    pub const fn cursor(&self) -> u32 {
        self.cursor
    }

    pub const fn is_empty(&self) -> bool {
        self.free == self.slots
    }

    /// Takes the next run of `slots` free slots (512 bytes each) that crosses no boundary between
    /// pages of `page` slots.
    pub fn place_within(&mut self, slots: u32, page: u32) -> Option<Piece> {
        let first = self
            .next_within(self.cursor, slots, page)
            .or_else(|| self.next_within(0, slots, page))?;
        let piece = Piece { file: 0, first, slots };
        self.set(piece, true);
        self.cursor = first + slots;
        Some(piece)
    }

    fn next_within(&self, mut from: u32, slots: u32, page: u32) -> Option<u32> {
        loop {
            let first = self.next_free(from)?;
            let run = self.run_length(first, slots.min(page - first % page));
            if run == slots {
                return Some(first);
            }
            from = first + run;
        }
    }
}

impl Layout for Cyclic {
    fn place(&mut self, slots: u32) -> Placement {
        if self.free < slots {
            return Placement::Full;
        }
        let (mut pieces, mut left) = (Vec::with_capacity(1), slots);
        while left > 0 {
            let Some(first) = self.next_free(self.cursor) else {
                self.cursor = 0;
                continue;
            };
            let piece = Piece { file: 0, first, slots: self.run_length(first, left) };
            self.set(piece, true);
            left -= piece.slots;
            self.cursor = first + piece.slots;
            pieces.push(piece);
        }
        Placement::At(pieces)
    }

    fn free(&mut self, pieces: &[Piece]) {
        for &piece in pieces {
            self.set(piece, false);
        }
    }

    fn adopt(&mut self, pieces: &[Piece]) -> bool {
        for (count, &piece) in pieces.iter().enumerate() {
            let end = piece.first.checked_add(piece.slots).filter(|&end| end <= self.slots);
            let sound = piece.file == 0
                && end.is_some_and(|end| (piece.first..end).all(|slot| !self.is_used(slot)));
            if !sound {
                self.free(&pieces[..count]);
                return false;
            }
            self.set(piece, true);
        }
        true
    }

    fn kind(&self, _file: u64) -> FileKind {
        FileKind::Shared(u64::from(self.slots) * SLOT as u64)
    }

    fn files(&self) -> Vec<LayoutFile> {
        vec![LayoutFile { file: 0, slots: self.slots, head: Some(self.cursor) }]
    }

    fn capacity(&self) -> u64 {
        u64::from(self.slots)
    }

    fn free_runs(&self) -> Vec<(u32, u32)> {
        let (mut runs, mut from) = (Vec::new(), 0);
        while let Some(first) = self.next_free(from) {
            let length = self.run_length(first, u32::MAX);
            runs.push((first, length));
            from = first + length;
        }
        runs
    }

    fn memory(&self) -> usize {
        self.used.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    fn piece(first: u32, slots: u32) -> Piece {
        Piece { file: 0, first, slots }
    }

    #[test]
    fn records_follow_each_other_and_skip_used_slots() {
        let mut layout = Cyclic::new(100);
        assert_eq!(layout.place(60), Placement::At(vec![piece(0, 60)]));
        assert_eq!(layout.place(30), Placement::At(vec![piece(60, 30)]));
        layout.free(&[piece(10, 5)]);
        assert_eq!(layout.place(12), Placement::At(vec![piece(90, 10), piece(10, 2)]));
        assert_eq!(layout.place(4), Placement::Full);
        assert_eq!(layout.free_runs(), [(12, 3)]);
    }

    #[test]
    fn every_slot_is_given_out_once_whatever_is_freed() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let slots = 64 + u32::try_from(random.below(200)).expect("small");
            let mut layout = Cyclic::new(slots);
            let mut owner = vec![None; slots as usize];
            let mut records: Vec<Vec<Piece>> = Vec::new();
            for step in 0..2000_u32 {
                let wanted = 1 + u32::try_from(random.below(20)).expect("small");
                match layout.place(wanted) {
                    Placement::At(pieces) => {
                        assert_eq!(pieces.iter().map(|piece| piece.slots).sum::<u32>(), wanted);
                        for slot in pieces.iter().flat_map(|p| p.first..p.first + p.slots) {
                            assert_eq!(
                                owner[slot as usize].replace(step),
                                None,
                                "seed {seed}, slot {slot}"
                            );
                        }
                        records.push(pieces);
                    }
                    _ => {
                        let place =
                            usize::try_from(random.below(records.len() as u64)).expect("small");
                        let pieces = records.swap_remove(place);
                        for slot in pieces.iter().flat_map(|p| p.first..p.first + p.slots) {
                            owner[slot as usize] = None;
                        }
                        layout.free(&pieces);
                    }
                }
                let free = owner.iter().filter(|owner| owner.is_none()).count();
                let runs: u32 = layout.free_runs().iter().map(|run| run.1).sum();
                assert_eq!(runs as usize, free, "seed {seed}, step {step}");
            }
        }
    }

    #[test]
    fn pieces_that_overlap_or_lie_outside_are_not_adopted() {
        let mut layout = Cyclic::new(100);
        assert!(layout.adopt(&[piece(10, 5), piece(20, 5)]));
        for wrong in [piece(14, 1), piece(99, 2), piece(u32::MAX, 2)] {
            assert!(!layout.adopt(&[piece(50, 5), wrong]), "{wrong:?}");
        }
        assert_eq!(layout.free_runs(), [(0, 10), (15, 5), (25, 75)]);
    }
}
