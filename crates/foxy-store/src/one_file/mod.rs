//! The parts that all schemes with a single preallocated file share: opening the file, its
//! superblocks and forget journal, operations in flight, ordered IO, and the phases of a store.

pub mod io_sequence;
pub mod journal;
pub mod lifecycle;
pub mod medium;
pub mod opening;
pub mod store_file;
pub mod superblock;
