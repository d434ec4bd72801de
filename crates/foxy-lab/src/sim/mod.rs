//! Simulations that take no sockets and no disk: a trace's look-ups through a policy, for hit
//! ratios against sizes.

pub mod belady;
pub mod cache;
pub mod counts;
pub mod disk;
pub mod drive;
pub mod fit;
pub mod levels;
pub mod operation;
pub mod operation_file;
pub mod outcome;
pub mod pace;
pub mod pages;
pub mod parallel;
pub mod policies;
pub mod runs;
pub mod segments;
pub mod sizing;
