//! The caching proxy: HTTP in, HTTP out. It reads no arguments, no environment and no files.

pub mod upstream;
