//! Where records lie, as slots of files: the seam between the scheme and its layouts. Pure
//! bookkeeping, no IO.

/// A run of slots in one of the scheme's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Which file; a number is never used again for another file.
    pub file: u64,
    /// Its first slot.
    pub first: u32,
    /// How many slots.
    pub slots: u32,
}

/// Where a record may go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Into these pieces, in order. They are taken.
    At(Vec<Piece>),
    /// Nowhere before all records in this piece are dropped; then tell [`Layout::cleared`].
    AfterClearing(Piece),
    /// Nowhere before some record is dropped; then ask again.
    Full,
    /// Nowhere before a file that was given up is removed.
    AfterRemoving,
}

/// What kind of file a number names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Opened once, of this many bytes from the start; 0 when it grows with what is written.
    Shared(u64),
    /// Holds one record, is opened for it and removed with it.
    Single,
}

/// A layout.
pub trait Layout: Send {
    /// Takes room for a record of so many slots.
    fn place(&mut self, slots: u32) -> Placement;

    /// All records in the piece that was to be cleared are dropped, and unless `clear` is false
    /// nothing is under way to it any more. Whether to ask again for a place.
    fn cleared(&mut self, clear: bool) -> bool {
        clear
    }

    /// Whether it ever asks for pieces to be cleared.
    fn clears(&self) -> bool {
        false
    }

    /// Gives room back.
    fn free(&mut self, pieces: &[Piece]);

    /// Names, once, the files that placing and freeing gave up; they are to be removed.
    fn given_up(&mut self) -> Vec<u64> {
        Vec::new()
    }

    /// A file that was given up is gone from the disk.
    fn removed(&mut self, _file: u64) {}

    /// Takes the pieces of a record that a closed store left behind. False when they cannot be
    /// right.
    fn adopt(&mut self, pieces: &[Piece]) -> bool;

    /// A file with adopted records is so many slots long on disk: what no record has of it is free,
    /// and takes room.
    fn found(&mut self, _file: u64, _slots: u64) {}

    /// What kind of file it is.
    fn kind(&self, file: u64) -> FileKind;

    /// The number by which a file lies in Squid's 16 × 256 folders (R18); `None` for one that lies
    /// in none.
    fn folder_number(&self, _file: u64) -> Option<u32> {
        None
    }

    /// Whether a record of so many slots shares a file with others.
    fn shares(&self, _slots: u32) -> bool {
        true
    }

    /// Slots that records can use.
    fn capacity(&self) -> u64;

    /// The most slots one record can take.
    fn largest(&self) -> u64;

    /// The free runs of its one file, as first slot and length; none for layouts of many files.
    fn free_runs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }

    /// Memory taken, in bytes.
    fn memory(&self) -> usize;
}
