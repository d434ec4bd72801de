//! The layouts. A layout decides which slots of which files store a record. A layout performs no
//! IO.

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
    /// The number of the file. File numbers are never used again.
    pub file: u64,
    pub first: u32,
    pub slots: u32,
}

/// The result of a placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The record goes into these pieces in this order. Their slots are now in use.
    At(Vec<Piece>),
    /// The caller must first drop all records in this piece, then call [`Layout::cleared`].
    AfterClearing(Piece),
    /// The caller must first drop another record.
    Full,
    /// The caller must first remove an abandoned file.
    AfterRemoving,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A file that stays open. The value is its preallocated size in bytes, or 0 for a file that
    /// grows.
    Shared(u64),
    /// A file with a single record. The file is created and removed together with the record.
    Single,
}

pub trait Layout: Send {
    fn place(&mut self, slots: u32) -> Placement;

    /// Reports that the caller dropped the records in a piece. `clear` is false while a write to
    /// the piece is in flight. Returns whether the caller should place the record again.
    fn cleared(&mut self, clear: bool) -> bool {
        clear
    }

    fn clears(&self) -> bool {
        false
    }

    fn free(&mut self, pieces: &[Piece]);

    /// Removes and returns the abandoned files that no earlier call returned. The caller removes
    /// the files.
    fn take_abandoned(&mut self) -> Vec<u64> {
        Vec::new()
    }

    fn removed(&mut self, _file: u64) {}

    /// Adopts the pieces of a record from an earlier run. Returns false if the pieces are
    /// impossible.
    fn adopt(&mut self, pieces: &[Piece]) -> bool;

    /// Reports the size of a file with adopted records. Slots without a record are free but take
    /// disk space.
    fn found(&mut self, _file: u64, _slots: u64) {}

    fn kind(&self, file: u64) -> FileKind;

    /// Returns the file's number in Squid's 16 × 256 folders (requirement R18). Returns `None` for
    /// a file outside these folders.
    fn folder_number(&self, _file: u64) -> Option<u32> {
        None
    }

    fn shares(&self, _slots: u32) -> bool {
        true
    }

    fn capacity(&self) -> u64;

    fn largest(&self) -> u64;

    /// Returns the runs of free slots as `(first slot, length)`, for a layout with one file.
    fn free_runs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }

    fn memory(&self) -> usize;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutKind {
    /// One file. A record takes the next free slots, cyclically (requirement R22).
    Cyclic,
    /// One file per record size, and one file per larger record (requirement R20).
    Classes,
    /// One file that is a ring of stripes (requirement R61).
    Ring,
    /// A mapped file for small records. Each larger record has its own file in Squid's folders
    /// (requirement R37).
    Mapped,
    /// The layout `Mapped`, but a small record never crosses a page boundary.
    MappedAligned,
}

impl LayoutKind {
    /// Creates the layout for `slots` slots. `threshold` is the maximum size in slots of a record
    /// that shares a file.
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
