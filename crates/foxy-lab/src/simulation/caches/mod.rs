//! Cache models without disks: the hits that each policy makes of a stream of look-ups.

pub mod belady;
pub mod cache;
pub mod policies;
pub mod segments;
