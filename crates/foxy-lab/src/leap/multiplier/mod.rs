//! The Multiplier's runs: sends each request of a stream on every path at its time.

pub mod group;
pub mod means;
pub mod multiply;
pub mod passthrough;
