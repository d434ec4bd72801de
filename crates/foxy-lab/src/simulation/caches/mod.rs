//! Simulated caches without disks. They count the hits of each replacement policy.

pub mod belady;
pub mod cache;
pub mod policies;
pub mod segments;
