//! The storage simulator. It runs the disk operations of a trace on a storage scheme, with a
//! mechanical disk in virtual time or with a real device.

pub mod crew;
pub mod drive;
pub mod fit;
pub mod operation;
pub mod operation_file;
pub mod outcome;
pub mod runs;
pub mod sizing;
