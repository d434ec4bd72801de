//! Measurements of the default engine for `foxy store bench`. Each measurement has its own module.

pub mod disk;
pub mod engine;
pub mod misses;
pub mod restart;
pub mod steps;
