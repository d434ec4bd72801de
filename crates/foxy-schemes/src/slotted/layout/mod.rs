//! The layouts of the slotted storage schemes. A layout decides which slots (512 bytes each) of
//! which files store a record. It only counts slots and performs no IO.

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
    /// The number of the file. The number of a removed file is never used again.
    pub file: u64,
    pub first: u32,
    pub slots: u32,
}

/// A file that many records share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutFile {
    pub file: u64,
    /// Number of slots (512 bytes each) in the file.
    pub slots: u32,
    /// The slot at which the search for the next record's slots begins. `None` if new records go to
    /// other files, or into any free place of this file.
    pub head: Option<u32>,
}

/// The result of a search for slots (512 bytes each) for a new record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// The record goes into these runs of slots (512 bytes each) in this order. The slots now count
    /// as used.
    At(Vec<Piece>),
    /// The caller must first drop all records in this piece, then call [`Layout::cleared`].
    AfterClearing(Piece),
    /// No space. The caller must first evict another record.
    Full,
    /// No space now. The caller must first remove an abandoned (empty) file.
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

    /// Tells the layout that the caller dropped the records in the piece of
    /// [`Placement::AfterClearing`]. `clear` is false while a write to the piece is in flight.
    /// Returns whether the caller should place the record again.
    fn cleared(&mut self, clear: bool) -> bool {
        clear
    }

    fn clears(&self) -> bool {
        false
    }

    fn free(&mut self, pieces: &[Piece]);

    /// Returns the files that became abandoned (empty) since the last call. The caller removes
    /// these files from the disk.
    fn take_abandoned(&mut self) -> Vec<u64> {
        Vec::new()
    }

    fn removed(&mut self, _file: u64) {}

    /// Marks the slots (512 bytes each) of a record that an earlier run of the store wrote as used.
    /// Returns false if the slots are impossible.
    fn adopt(&mut self, pieces: &[Piece]) -> bool;

    /// Tells the layout the size in slots (512 bytes each) of a file with adopted records. The
    /// slots without a record are free but take disk space.
    fn found(&mut self, _file: u64, _slots: u64) {}

    fn kind(&self, file: u64) -> FileKind;

    /// Returns the number that selects the file's folder among Squid's 16 × 256 folders. Returns
    /// `None` for a file outside these folders.
    fn folder_number(&self, _file: u64) -> Option<u32> {
        None
    }

    fn shares(&self, _slots: u32) -> bool {
        true
    }

    /// Returns the files that records share.
    fn files(&self) -> Vec<LayoutFile>;

    /// Returns the number of slots (512 bytes each) that no file has taken yet.
    fn unallocated(&self) -> u32 {
        0
    }

    fn capacity(&self) -> u64;

    /// Returns the size in slots (512 bytes each) of the largest record that the layout accepts.
    fn largest(&self) -> u64 {
        self.capacity() / 4
    }

    /// Returns the runs of free slots (512 bytes each) as `(first slot, length)`, for a layout with
    /// one file.
    fn free_runs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }

    fn memory(&self) -> usize;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutKind {
    /// One file. A record takes the next free slots (512 bytes each). The search continues at the
    /// start after the end.
    Cyclic,
    /// One file per record size, and one file per larger record.
    Classes,
    /// One file of stripes (sections of equal size), which are filled in turn. Before a stripe is
    /// filled again, its old records are dropped.
    Ring,
    /// Shared files for small records. Each larger record has its own file in Squid's folders.
    Mapped,
    /// The layout `Mapped`, but a small record lies within one page if a page has space for it.
    MappedAligned,
}

impl LayoutKind {
    /// Returns the name of the layout for maps.
    pub const fn area(self) -> &'static [&'static str; 1] {
        match self {
            Self::Cyclic => &["one file, written cyclically"],
            Self::Classes => &["a file for each record size"],
            Self::Ring => &["one file, a ring of stripes"],
            Self::Mapped | Self::MappedAligned => &["files of small records"],
        }
    }

    /// Creates the layout for a store of `slots` slots (512 bytes each). `threshold` is the maximum
    /// size in slots of a record that shares a file.
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
