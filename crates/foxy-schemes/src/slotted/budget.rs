//! Room for layouts of many files: how many slots all files take together, which of them hold one
//! record only, and which were given up. What a file took comes back when it is removed. Pure
//! bookkeeping, no IO.

use super::layout::Piece;
use std::collections::HashMap;

/// The slots of all files.
#[derive(Debug)]
pub struct Budget {
    slots: u32,
    taken: u32,
    /// Files of one record, and their slots.
    singles: HashMap<u64, u32>,
    abandoned: Vec<u64>,
    /// Files given up, and their slots, which stay taken until they are removed.
    leaving: HashMap<u64, u32>,
}

impl Budget {
    /// No file yet; all of them together will take at most `slots`.
    pub fn new(slots: u32) -> Self {
        Self {
            slots,
            taken: 0,
            singles: HashMap::new(),
            abandoned: Vec::new(),
            leaving: HashMap::new(),
        }
    }

    /// Slots of all files at most.
    pub const fn slots(&self) -> u32 {
        self.slots
    }

    /// Slots of all files.
    pub const fn taken(&self) -> u32 {
        self.taken
    }

    /// Whether there is room for so many slots.
    pub const fn has_room(&self, slots: u32) -> bool {
        self.slots - self.taken >= slots
    }

    /// Whether there will be once all files given up are removed.
    pub fn will_have_room(&self, slots: u32) -> bool {
        self.slots - self.taken + self.leaving.values().sum::<u32>() >= slots
    }

    /// Takes room that there is.
    pub fn take(&mut self, slots: u32) {
        assert!(self.has_room(slots), "room is taken where there is some");
        self.taken += slots;
    }

    /// A file of so many slots is to be removed.
    pub fn give_up(&mut self, file: u64, slots: u32) {
        self.abandoned.push(file);
        self.leaving.insert(file, slots);
    }

    /// Names, once, the files given up.
    pub fn given_up(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.abandoned)
    }

    /// A file that was given up is gone.
    pub fn removed(&mut self, file: u64) {
        self.taken -= self.leaving.remove(&file).unwrap_or(0);
    }

    /// Takes the room of a file of one record.
    pub fn add_single(&mut self, file: u64, slots: u32) -> Piece {
        self.take(slots);
        self.singles.insert(file, slots);
        Piece { file, first: 0, slots }
    }

    /// Gives up the file of a record that has one of its own; false when it has none.
    pub fn free_single(&mut self, file: u64) -> bool {
        let slots = self.singles.remove(&file);
        if let Some(slots) = slots {
            self.give_up(file, slots);
        }
        slots.is_some()
    }

    /// Takes the file of one record that a closed store left behind. False when it cannot be right.
    pub fn adopt_single(&mut self, Piece { file, first, slots }: Piece) -> bool {
        let sound = first == 0 && self.has_room(slots) && !self.singles.contains_key(&file);
        if sound {
            self.add_single(file, slots);
        }
        sound
    }

    /// Memory taken, in bytes.
    pub fn memory(&self) -> usize {
        (self.singles.capacity() + self.leaving.capacity()) * 16
    }
}
