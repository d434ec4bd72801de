//! Points in time as plain values, times in logs, clocks, seeded randomness, byte sizes, names and
//! addresses of hosts, texts that are safe to print, and the owners and rates of a fleet's keys.
//! Only [`clock`] reads the clocks of the machine. The crate contains no code for disks or HTTP.

mod cidr;
pub mod clock;
mod hosts;
mod key_rates;
pub mod log_time;
mod printable;
pub mod random;
mod rendezvous;
pub mod size;
pub mod time;

pub use cidr::{Cidr, CidrError};
pub use hosts::{HostName, HostPattern, HostPatternError};
pub use key_rates::KeyRates;
pub use printable::{ascii_json, printable};
pub use random::Random;
pub use rendezvous::Rendezvous;
pub use size::ByteSize;
pub use time::{CivilTime, Instant, WallTime};
