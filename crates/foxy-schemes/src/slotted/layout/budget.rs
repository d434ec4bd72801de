//! Counts the used slots (512 bytes each) of a layout with many files. Some files contain a single
//! record. An abandoned file contains no record and will be removed. The slots of the file become
//! free when it is removed.

use super::Piece;
use std::collections::HashMap;

#[derive(Debug)]
pub struct Budget {
    slots: u32,
    taken: u32,
    /// Files with a single record, each with its number of slots (512 bytes each).
    singles: HashMap<u64, u32>,
    abandoned: Vec<u64>,
    /// Number of slots (512 bytes each) of each abandoned file. They count as used until the file
    /// is removed.
    abandoned_slots: HashMap<u64, u32>,
}

impl Budget {
    pub fn new(slots: u32) -> Self {
        Self {
            slots,
            taken: 0,
            singles: HashMap::new(),
            abandoned: Vec::new(),
            abandoned_slots: HashMap::new(),
        }
    }

    pub const fn slots(&self) -> u32 {
        self.slots
    }

    #[cfg(test)]
    pub const fn taken(&self) -> u32 {
        self.taken
    }

    pub const fn free(&self) -> u32 {
        self.slots - self.taken
    }

    pub const fn has_room(&self, slots: u32) -> bool {
        self.free() >= slots
    }

    /// Returns whether `slots` slots (512 bytes each) will be free once all abandoned files are
    /// removed.
    pub fn will_have_room(&self, slots: u32) -> bool {
        self.free() + self.abandoned_slots.values().sum::<u32>() >= slots
    }

    pub fn take(&mut self, slots: u32) {
        assert!(self.has_room(slots), "room is taken only where some is left");
        self.taken += slots;
    }

    pub fn abandon(&mut self, file: u64, slots: u32) {
        self.abandoned.push(file);
        self.abandoned_slots.insert(file, slots);
    }

    /// Removes and returns the abandoned (empty) files that no earlier call returned.
    pub fn take_abandoned(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.abandoned)
    }

    pub fn removed(&mut self, file: u64) {
        self.taken -= self.abandoned_slots.remove(&file).unwrap_or(0);
    }

    pub fn add_single(&mut self, file: u64, slots: u32) -> Piece {
        self.take(slots);
        self.singles.insert(file, slots);
        Piece { file, first: 0, slots }
    }

    /// Abandons `file` and returns true if the file has a single record. Otherwise returns false.
    pub fn free_single(&mut self, file: u64) -> bool {
        let slots = self.singles.remove(&file);
        if let Some(slots) = slots {
            self.abandon(file, slots);
        }
        slots.is_some()
    }

    /// Counts a file with a single record that an earlier run of the store wrote. Returns false if
    /// its slots (512 bytes each) do not fit or it is already counted.
    pub fn adopt_single(&mut self, Piece { file, first, slots }: Piece) -> bool {
        let sound = first == 0 && self.has_room(slots) && !self.singles.contains_key(&file);
        if sound {
            self.add_single(file, slots);
        }
        sound
    }

    pub fn memory(&self) -> usize {
        (self.singles.capacity() + self.abandoned_slots.capacity()) * 16
    }
}
