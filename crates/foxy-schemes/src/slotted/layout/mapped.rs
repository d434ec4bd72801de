//! The layout of the storage schemes SQUIDM and SQUIDMLA (Maltzahn, Richardson and Grunwald, USENIX
//! 1999). Small records are stored cyclically in a file that the authors' modified Squid maps into
//! memory. Foxy reads and writes this file. It is split into parts, which are separate files. Each
//! larger record has its own file in Squid's folders. If a large record finds no space, the layout
//! clears and removes a part that is at least half empty.

use super::budget::Budget;
use super::cyclic::Cyclic;
use super::{FileKind, Layout, LayoutFile, Piece, Placement};
use foxy_store::layout::SLOT;

/// Number of slots (512 bytes each) in a page of the mapped file: 8 KiB, as in the paper of
/// Maltzahn and others (USENIX 1999).
const PAGE_SLOTS: u32 = 16;
/// Maximum size in slots (512 bytes each) of a small record, which shares a file with others. Such
/// a record fits in one page.
const MAX_SMALL_SLOTS: u32 = PAGE_SLOTS;
/// Number of parts into which the space of a store would be divided if it contained only small
/// records.
const PARTS: u32 = 16;

#[derive(Debug)]
struct Part {
    file: u64,
    slots: Cyclic,
    /// Whether the part accepts no more records. When the last record in the part is dropped, the
    /// file of the part is removed.
    retired: bool,
}

#[derive(Debug)]
pub struct Mapped {
    /// Whether a small record crosses no page boundary, unless no page of the part has enough free
    /// slots (512 bytes each).
    aligned: bool,
    part_slots: u32,
    budget: Budget,
    /// Serial number of the newest file. A file number consists of the serial number and a lowest
    /// bit, which is 1 for a part.
    next_serial: u64,
    parts: Vec<Part>,
    /// File number of the part that receives new records.
    current: Option<u64>,
}

const fn is_mapped(file: u64) -> bool {
    file & 1 == 1
}

impl Mapped {
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

    /// If the current part lacks `slots` free slots (512 bytes each), makes a new part current, or
    /// the part with the most free slots. If none has enough, no part is current.
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
            let roomy =
                self.parts.iter().filter(with_room).max_by_key(|part| part.slots.free_slots());
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
        let placement =
            whole.map_or_else(|| part.slots.place(slots), |piece| Placement::At(vec![piece]));
        let file = part.file;
        match placement {
            Placement::At(pieces) => {
                Placement::At(pieces.into_iter().map(|piece| Piece { file, ..piece }).collect())
            }
            other => other,
        }
    }

    /// Returns whether `slots` slots (512 bytes each) will be free once all retired and abandoned
    /// files are removed.
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
            self.budget.abandon(part.file, self.part_slots);
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
                Placement::AfterClearing(Piece {
                    file: part.file,
                    first: 0,
                    slots: self.part_slots,
                })
            }
            None => Placement::Full,
        }
    }

    /// Frees the slots (512 bytes each) of a record in a part. Abandons the part's file if the part
    /// is retired and now empty.
    fn free_mapped(&mut self, file: u64, pieces: &[Piece]) {
        let place = self
            .parts
            .iter()
            .position(|part| part.file == file)
            .expect("a part with a record is kept");
        let part = &mut self.parts[place];
        part.slots.free(pieces);
        if part.retired && part.slots.is_empty() {
            self.parts.swap_remove(place);
            self.budget.abandon(file, self.part_slots);
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

    /// Always returns true, so that the caller tries again to place the record. The file of the
    /// part that the caller cleared is removed as soon as all records in the part are freed.
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

    fn take_abandoned(&mut self) -> Vec<u64> {
        self.budget.take_abandoned()
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
        slots <= MAX_SMALL_SLOTS
    }

    fn files(&self) -> Vec<LayoutFile> {
        let is_current = |part: &Part| Some(part.file) == self.current;
        let file = |part: &Part| LayoutFile {
            file: part.file,
            slots: self.part_slots,
            head: is_current(part).then(|| part.slots.cursor()),
        };
        self.parts.iter().map(file).collect()
    }

    fn unallocated(&self) -> u32 {
        self.budget.free()
    }

    fn capacity(&self) -> u64 {
        u64::from(self.budget.slots())
    }

    fn memory(&self) -> usize {
        self.parts.iter().map(|part| part.slots.memory()).sum::<usize>() + self.budget.memory()
    }
}

#[cfg(test)]
#[path = "mapped_tests.rs"]
mod tests;
