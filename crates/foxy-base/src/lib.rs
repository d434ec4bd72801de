//! What every part may use: time as a value, dates, seeded randomness, byte sizes.
//! It is the only place that reads a clock, and it knows nothing of disks or HTTP.

pub mod civil;
pub mod clock;
pub mod random;
pub mod size;
pub mod steady;
pub mod time;

pub use civil::Civil;
pub use random::Random;
pub use size::ByteSize;
pub use time::{Instant, WallTime};
