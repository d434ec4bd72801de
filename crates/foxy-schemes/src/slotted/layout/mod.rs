//! The layouts: the placement of records as slots of files, without IO.

mod budget;
mod classes;
mod cyclic;
mod mapped;
mod ring;

use classes::Classes;
use cyclic::Cyclic;
use mapped::Mapped;
pub use ring::Ring;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// File numbers are never reused.
    pub file: u64,
    pub first: u32,
    pub slots: u32,
}

/// The result of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The record goes into these pieces, in order. They are taken.
    At(Vec<Piece>),
    /// The records in this piece must be dropped; then call [`Layout::cleared`].
    AfterClearing(Piece),
    /// Some record must be dropped first.
    Full,
    /// An abandoned file must be removed first.
    AfterRemoving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file that stays open, preallocated to this many bytes; 0 for a growing file.
    Shared(u64),
    /// A file of one record, opened and removed with the record.
    Single,
}

pub trait Layout: Send {
    fn place(&mut self, slots: u32) -> Placement;

    /// Reports that the piece was cleared; `clear` is false while a write to it is in flight.
    /// Returns whether to ask again for a place.
    fn cleared(&mut self, clear: bool) -> bool {
        clear
    }

    fn clears(&self) -> bool {
        false
    }

    fn free(&mut self, pieces: &[Piece]);

    /// Returns each abandoned file once. The scheme removes them.
    fn take_abandoned(&mut self) -> Vec<u64> {
        Vec::new()
    }

    fn removed(&mut self, _file: u64) {}

    /// Adopts the pieces of a record of a closed store; returns false when they cannot be right.
    fn adopt(&mut self, pieces: &[Piece]) -> bool;

    /// Reports the size of a file with adopted records; its other slots are free and take room.
    fn found(&mut self, _file: u64, _slots: u64) {}

    fn kind(&self, file: u64) -> FileKind;

    /// The file's number in Squid's 16 × 256 folders (R18); `None` outside them.
    fn folder_number(&self, _file: u64) -> Option<u32> {
        None
    }

    fn shares(&self, _slots: u32) -> bool {
        true
    }

    fn capacity(&self) -> u64;

    fn largest(&self) -> u64;

    /// The free runs of a layout with one file, as first slot and length.
    fn free_runs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }

    fn memory(&self) -> usize;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutKind {
    /// One file; the next free slots, cyclically (R22).
    Cyclic,
    /// A file for each size, and a file for each larger record (R20).
    Classes,
    /// One file as a ring of stripes (R61).
    Ring,
    /// A mapped file for small records, and a file in Squid's folders for each larger record (R37).
    Mapped,
    /// As `Mapped`, with small records within a page.
    MappedAligned,
}

impl LayoutKind {
    /// `threshold` is the largest record, in slots, that shares a file.
    pub fn make(self, slots: u32, threshold: u32) -> Box<dyn Layout> {
        match self {
            Self::Cyclic => Box::new(Cyclic::new(slots)),
            Self::Classes => Box::new(Classes::new(slots, threshold)),
            Self::Ring => Box::new(Ring::new(slots)),
            Self::Mapped => Box::new(Mapped::new(slots, false)),
            Self::MappedAligned => Box::new(Mapped::new(slots, true)),
        }
    }
}
