//! Points in time as plain values, clocks, seeded randomness and byte sizes. Only [`clock`] reads
//! the machine's clocks. The crate contains no code for disks or HTTP.

pub mod clock;
pub mod random;
pub mod size;
pub mod time;

pub use random::Random;
pub use size::ByteSize;
pub use time::{CivilTime, Instant, WallTime};
