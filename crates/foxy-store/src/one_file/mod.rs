//! Common parts of all storage schemes with one preallocated file: opening, phases, superblocks and
//! the journal of removed records. Also operations in flight, and writes and syncs in a fixed
//! order.

pub mod io_sequence;
pub mod journal;
pub mod lifecycle;
pub mod medium;
pub mod opening;
pub mod store_file;
pub mod superblock;
