//! Points in time as plain values, times in logs, clocks, seeded randomness, byte sizes, and names
//! and addresses of hosts. Only [`clock`] reads the machine's clocks. The crate contains no code for
//! disks or HTTP.

mod cidr;
pub mod clock;
mod hosts;
pub mod log_time;
pub mod random;
pub mod size;
pub mod time;

pub use cidr::{Cidr, CidrError};
pub use hosts::{HostName, HostPattern, HostPatternError};
pub use random::Random;
pub use size::ByteSize;
pub use time::{CivilTime, Instant, WallTime};
