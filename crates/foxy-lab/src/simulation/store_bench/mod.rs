//! Measurements of the default engine for `foxy store bench`, one in each module.

pub mod disk;
pub mod engine;
pub mod misses;
pub mod restart;
pub mod steps;
