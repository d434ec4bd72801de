//! The caching proxy: HTTP in, HTTP out. It reads no arguments, no environment and no files.

pub mod access;
mod cache;
pub mod cache_status;
pub mod counters;
mod fields;
mod flight;
pub mod memory;
pub mod reason;
pub mod settings;
pub mod storage;
pub mod stored;
pub mod upstream;
