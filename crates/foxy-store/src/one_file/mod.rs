//! Common parts of all storage schemes with one preallocated file: opening, superblocks, the
//! journal of removed records, operations in flight, writes and syncs in a fixed order, and phases.

pub mod io_sequence;
pub mod journal;
pub mod lifecycle;
pub mod medium;
pub mod opening;
pub mod store_file;
pub mod superblock;
