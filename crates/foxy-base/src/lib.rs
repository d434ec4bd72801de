//! Time as a value, clocks, seeded randomness and byte sizes. Only [`clock`] reads the machine's
//! clocks; the crate knows nothing of disks or HTTP.

pub mod clock;
pub mod random;
pub mod size;
pub mod time;

pub use random::Random;
pub use size::ByteSize;
pub use time::{CivilTime, Instant, WallTime};
