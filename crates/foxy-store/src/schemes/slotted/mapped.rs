//! The layout of SQUIDM and SQUIDMLA (R37): small records in a file that is mapped into memory, one after the other
//! cyclically; each larger one in a file of its own, in Squid's folders. The mapped file comes in parts, because it has to
//! give room back to the others: a part that holds little is dropped when a large record finds no room.

use super::budget::Budget;
use super::cyclic::Cyclic;
use super::layout::{FileKind, Layout, Piece, Placement};
use crate::layout::SLOT;

/// Slots of a page of the mapped file: 8 KiB, as on the machine of the work cited.
const PAGE_SLOTS: u32 = 16;
/// The largest record that is kept in the mapped file, in slots: it fits into a page.
const SMALL: u32 = PAGE_SLOTS;
/// Parts of the mapped file that a store has room for.
const PARTS: u32 = 16;

/// A part of the mapped file.
#[derive(Debug)]
struct Part {
    file: u64,
    slots: Cyclic,
    /// Takes no records any more, and goes with the last it has.
    retired: bool,
}

/// The mapped file, and the others.
#[derive(Debug)]
pub struct Mapped {
    /// Records do not lie across a page boundary where that can be helped.
    aligned: bool,
    part_slots: u32,
    budget: Budget,
    /// The low bit of a file's number says whether it is mapped.
    next_serial: u64,
    parts: Vec<Part>,
    /// The part that takes records.
    current: Option<u64>,
}

const fn is_mapped(file: u64) -> bool {
    file & 1 == 1
}

impl Mapped {
    /// No file yet; all of them together will take at most `slots`.
    #[must_use]
    pub fn new(slots: u32, aligned: bool) -> Self {
        let part_slots = (slots / PARTS / PAGE_SLOTS).max(1) * PAGE_SLOTS;
        Self {
            aligned,
            part_slots,
            budget: Budget::new(slots),
            next_serial: 0,
            parts: Vec::new(),
            current: None,
        }
    }

    fn new_file(&mut self, mapped: bool) -> u64 {
        self.next_serial += 1;
        (self.next_serial << 1) + u64::from(mapped)
    }

    fn add_part(&mut self, file: u64) -> &mut Part {
        self.budget.take(self.part_slots);
        self.parts.push(Part { file, slots: Cyclic::new(self.part_slots), retired: false });
        self.parts.last_mut().expect("just added")
    }

    /// Makes another part current when the one that is has no room: a new one, or the one with most room.
    fn turn_to_room(&mut self, slots: u32) {
        let with_room = |part: &&Part| !part.retired && part.slots.free_slots() >= slots;
        let current = self.parts.iter().find(|part| Some(part.file) == self.current);
        if current.filter(with_room).is_some() {
            return;
        }
        if self.budget.has_room(self.part_slots) {
            let file = self.new_file(true);
            self.add_part(file);
            self.current = Some(file);
        } else {
            let roomy = self.parts.iter().filter(with_room).max_by_key(|part| part.slots.free_slots());
            self.current = roomy.map(|part| part.file);
        }
    }

    fn place_small(&mut self, slots: u32) -> Placement {
        self.turn_to_room(slots);
        let Some(part) = self.parts.iter_mut().find(|part| Some(part.file) == self.current) else {
            return if self.will_have_room(self.part_slots) {
                Placement::AfterRemoving
            } else {
                Placement::Full
            };
        };
        let whole = if self.aligned { part.slots.place_within(slots, PAGE_SLOTS) } else { None };
        let placement = whole.map_or_else(|| part.slots.place(slots), |piece| Placement::At(vec![piece]));
        let file = part.file;
        match placement {
            Placement::At(pieces) => {
                Placement::At(pieces.into_iter().map(|piece| Piece { file, ..piece }).collect())
            }
            other => other,
        }
    }

    /// Whether there will be room once all that is on its way out is gone.
    fn will_have_room(&self, slots: u32) -> bool {
        let retired = self.parts.iter().filter(|part| part.retired).count();
        let retired = u32::try_from(retired).unwrap_or(u32::MAX).saturating_mul(self.part_slots);
        self.budget.will_have_room(slots.saturating_sub(retired))
    }

    fn place_alone(&mut self, slots: u32) -> Placement {
        while !self.will_have_room(slots)
            && let Some(empty) = self.parts.iter().position(|part| part.slots.is_empty())
        {
            let part = self.parts.swap_remove(empty);
            self.budget.give_up(part.file, self.part_slots);
        }
        if self.budget.has_room(slots) {
            let file = self.new_file(false);
            return Placement::At(vec![self.budget.add_single(file, slots)]);
        }
        if self.will_have_room(slots) {
            return Placement::AfterRemoving;
        }
        let half = self.part_slots / 2;
        let sparse = |part: &&mut Part| {
            !part.retired && Some(part.file) != self.current && part.slots.free_slots() >= half
        };
        match self.parts.iter_mut().filter(sparse).max_by_key(|part| part.slots.free_slots()) {
            Some(part) => {
                part.retired = true;
                Placement::AfterClearing(Piece { file: part.file, first: 0, slots: self.part_slots })
            }
            None => Placement::Full,
        }
    }

    /// Gives pieces of a mapped file back, and the file if it has nothing to wait for any more.
    fn free_mapped(&mut self, file: u64, pieces: &[Piece]) {
        let place =
            self.parts.iter().position(|part| part.file == file).expect("a part with a record is kept");
        let part = &mut self.parts[place];
        part.slots.free(pieces);
        if part.retired && part.slots.is_empty() {
            self.parts.swap_remove(place);
            self.budget.give_up(file, self.part_slots);
        }
    }

    fn adopt_mapped(&mut self, file: u64, pieces: &[Piece]) -> bool {
        let local: Vec<Piece> = pieces.iter().map(|&piece| Piece { file: 0, ..piece }).collect();
        let known = self.parts.iter().position(|part| part.file == file);
        let sound = pieces.iter().all(|piece| piece.file == file)
            && (known.is_some() || self.budget.has_room(self.part_slots));
        if !sound {
            return false;
        }
        let part = match known {
            Some(place) => &mut self.parts[place],
            None => self.add_part(file),
        };
        part.slots.adopt(&local)
    }
}

impl Layout for Mapped {
    fn place(&mut self, slots: u32) -> Placement {
        if self.shares(slots) { self.place_small(slots) } else { self.place_alone(slots) }
    }

    /// The part that is to be cleared waits for its last record only.
    fn cleared(&mut self, _clear: bool) -> bool {
        true
    }

    fn clears(&self) -> bool {
        true
    }

    fn free(&mut self, pieces: &[Piece]) {
        let Some(&Piece { file, .. }) = pieces.first() else { return };
        if is_mapped(file) {
            self.free_mapped(file, pieces);
        } else {
            assert!(self.budget.free_single(file), "a file of its own is given back once");
        }
    }

    fn given_up(&mut self) -> Vec<u64> {
        self.budget.given_up()
    }

    fn removed(&mut self, file: u64) {
        self.budget.removed(file);
    }

    fn adopt(&mut self, pieces: &[Piece]) -> bool {
        let Some(&first) = pieces.first() else { return false };
        self.next_serial = self.next_serial.max(first.file >> 1);
        if is_mapped(first.file) {
            self.adopt_mapped(first.file, pieces)
        } else {
            pieces.len() == 1 && self.budget.adopt_single(first)
        }
    }

    fn kind(&self, file: u64) -> FileKind {
        if is_mapped(file) {
            FileKind::Shared(u64::from(self.part_slots) * SLOT as u64)
        } else {
            FileKind::Single
        }
    }

    fn folder_number(&self, file: u64) -> Option<u32> {
        (!is_mapped(file)).then(|| u32::try_from(file >> 1 & u64::from(u32::MAX)).expect("masked"))
    }

    fn shares(&self, slots: u32) -> bool {
        slots <= SMALL
    }

    fn capacity(&self) -> u64 {
        u64::from(self.budget.slots())
    }

    fn largest(&self) -> u64 {
        u64::from(self.budget.slots() / 4)
    }

    fn memory(&self) -> usize {
        self.parts.iter().map(|part| part.slots.memory()).sum::<usize>() + self.budget.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    fn placed(layout: &mut Mapped, slots: u32) -> Piece {
        match layout.place(slots) {
            Placement::At(pieces) => pieces[0],
            other => panic!("{other:?}"),
        }
    }

    /// The first slots of records of so many slots each.
    fn check(aligned: bool, records: &[u32], expected: &[u32]) {
        let mut layout = Mapped::new(16 * 32, aligned);
        let firsts: Vec<u32> = records.iter().map(|&slots| placed(&mut layout, slots).first).collect();
        assert_eq!(firsts, expected, "aligned {aligned}, records {records:?}");
    }

    #[test]
    fn small_records_follow_each_other_and_keep_to_a_page_when_aligned() {
        check(false, &[10, 10, 6, 6], &[0, 10, 20, 26]);
        check(true, &[10, 10, 6, 6], &[0, 16, 26, 10]);
        check(true, &[16, 16, 1], &[0, 16, 0]);
    }

    #[test]
    fn a_large_record_has_a_file_in_the_folders_that_goes_with_it() {
        let mut layout = Mapped::new(1000, false);
        let (small, large) = (placed(&mut layout, SMALL), placed(&mut layout, SMALL + 1));
        assert_eq!(layout.kind(large.file), FileKind::Single);
        assert_eq!([small, large].map(|piece| layout.folder_number(piece.file)), [None, Some(2)]);
        layout.free(&[large]);
        assert_eq!(layout.given_up(), [large.file]);
    }

    #[test]
    fn a_part_that_holds_little_makes_way_for_a_large_record() {
        let mut layout = Mapped::new(160, false);
        let small: Vec<Piece> = (0..40).map(|_| placed(&mut layout, 4)).collect();
        assert_eq!(layout.place(4), Placement::Full);
        assert_eq!(layout.place(20), Placement::Full);
        let first: Vec<Piece> = small.iter().copied().filter(|piece| piece.file == small[0].file).collect();
        let second: Vec<Piece> = small.iter().copied().filter(|piece| piece.file == small[4].file).collect();
        layout.free(&first[..3]);
        layout.free(&second[..2]);
        for part in [first[3].file, second[3].file] {
            assert_eq!(
                layout.place(20),
                Placement::AfterClearing(Piece { file: part, first: 0, slots: layout.part_slots })
            );
        }
        assert_eq!(layout.place(20), Placement::AfterRemoving);
        layout.free(&first[3..]);
        layout.free(&second[2..3]);
        layout.free(&second[3..]);
        for file in layout.given_up() {
            layout.removed(file);
        }
        let large = placed(&mut layout, 20);
        assert_eq!(layout.kind(large.file), FileKind::Single);
    }

    #[test]
    fn room_is_accounted_for_and_survives_adoption() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut layout = Mapped::new(2000, seed % 2 == 0);
            let mut records: Vec<Vec<Piece>> = Vec::new();
            for _ in 0..1000 {
                let most = [20, 100][usize::from(random.chance(0.2))];
                match layout.place(1 + u32::try_from(random.below(most)).expect("small")) {
                    Placement::At(pieces) => records.push(pieces),
                    Placement::AfterClearing(part) => {
                        let (inside, rest) =
                            records.into_iter().partition(|pieces: &Vec<Piece>| pieces[0].file == part.file);
                        records = rest;
                        inside.iter().for_each(|pieces| layout.free(pieces));
                        assert!(layout.cleared(true));
                    }
                    _ => {
                        let place = usize::try_from(random.below(records.len() as u64)).expect("small");
                        layout.free(&records.swap_remove(place));
                    }
                }
                for file in layout.given_up() {
                    layout.removed(file);
                }
            }
            let used: u32 = records.iter().flatten().map(|piece| piece.slots).sum();
            assert!(used <= layout.budget.taken() && layout.budget.taken() <= 2000, "seed {seed}");
            let mut again = Mapped::new(2000, seed % 2 == 0);
            for pieces in &records {
                assert!(again.adopt(pieces), "seed {seed}: {pieces:?}");
                assert!(!again.adopt(pieces), "seed {seed}: twice");
            }
            assert!(again.budget.taken() <= layout.budget.taken(), "seed {seed}");
            for pieces in records {
                again.free(&pieces);
            }
            for file in again.given_up() {
                again.removed(file);
            }
            assert!(again.parts.iter().all(|part| part.slots.is_empty()), "seed {seed}");
            let parts = u32::try_from(again.parts.len()).expect("few");
            assert_eq!(again.budget.taken(), parts * again.part_slots, "seed {seed}");
        }
    }
}
