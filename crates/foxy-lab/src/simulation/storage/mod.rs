//! The storage simulator: puts the URL operations of a trace to a storage scheme, on a mechanical
//! disk in virtual time or on a real device.

pub mod drive;
pub mod fit;
pub mod operation;
pub mod operation_file;
pub mod outcome;
pub mod runs;
pub mod sizing;
