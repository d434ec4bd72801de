//! Simulated caches without disks. They count the hits of replacement policies and of the default
//! engine's rules.

pub mod belady;
pub mod cache;
pub mod policies;
pub mod segments;
