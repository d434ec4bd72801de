//! What the default engine is measured by, one file a measure: `foxy store bench` runs them.

pub mod disk;
pub mod engine;
pub mod misses;
pub mod production;
pub mod raw;
pub mod restart;
pub mod steps;
