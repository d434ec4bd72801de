//! The layouts decide which slots of which files store a record. They do no IO.

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
    /// The number of the file. File numbers are never reused.
    pub file: u64,
    pub first: u32,
    pub slots: u32,
}

/// The result of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The record goes into these pieces, in order. The slots are now in use.
    At(Vec<Piece>),
    /// First drop all records in this piece, then call [`Layout::cleared`].
    AfterClearing(Piece),
    /// First drop some other record.
    Full,
    /// First remove an abandoned file.
    AfterRemoving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file that stays open, preallocated to this many bytes; 0 for a file that grows.
    Shared(u64),
    /// A file with a single record, opened and removed together with the record.
    Single,
}

pub trait Layout: Send {
    fn place(&mut self, slots: u32) -> Placement;

    /// Notes that the piece was cleared; `clear` is false while a write to the piece is in flight.
    /// Returns whether the caller should try to place the record again.
    fn cleared(&mut self, clear: bool) -> bool {
        clear
    }

    fn clears(&self) -> bool {
        false
    }

    fn free(&mut self, pieces: &[Piece]);

    /// Returns abandoned files, each of them only once. The scheme removes them.
    fn take_abandoned(&mut self) -> Vec<u64> {
        Vec::new()
    }

    fn removed(&mut self, _file: u64) {}

    /// Adopts the pieces of a record from an earlier run. Returns false if they are impossible.
    fn adopt(&mut self, pieces: &[Piece]) -> bool;

    /// Notes the size of a file with adopted records. Its other slots are free but use space.
    fn found(&mut self, _file: u64, _slots: u64) {}

    fn kind(&self, file: u64) -> FileKind;

    /// The file's number in Squid's 16 × 256 folders (R18); `None` for a file outside them.
    fn folder_number(&self, _file: u64) -> Option<u32> {
        None
    }

    fn shares(&self, _slots: u32) -> bool {
        true
    }

    fn capacity(&self) -> u64;

    fn largest(&self) -> u64;

    /// The runs of free slots in a layout with one file, each as first slot and length.
    fn free_runs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }

    fn memory(&self) -> usize;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutKind {
    /// One file; a record takes the next free slots, cyclically (R22).
    Cyclic,
    /// One file per record size, and one file per larger record (R20).
    Classes,
    /// One file, used as a ring of stripes (R61).
    Ring,
    /// A mapped file for small records, and one file in Squid's folders per larger record (R37).
    Mapped,
    /// Like `Mapped`, but a small record never crosses a page boundary.
    MappedAligned,
}

impl LayoutKind {
    /// Creates the layout. `threshold` is the largest record, in slots, that shares a file.
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
