//! The measuring lab. It contains load generators, an origin that verifies requests, LEAP (a
//! comparison of proxies) and a storage simulator. The lab reaches proxies only through sockets and
//! links none of them. It reads no command-line arguments and no files.

pub mod leap;
pub mod load;
mod named;
pub mod parallel;
pub mod simulation;
pub mod wire;

pub use foxy_http::Scheme;
pub use leap::Wanted;
pub use load::options::{LoadOptions, Mode, Pace, Protocol, Stop};
pub use load::origin::{Origin, OriginOptions};
pub use load::outcome::{ErrorCause, LoadReport, Tally};
pub use load::run;
pub use wire::{OBJECT_ID, REQUEST_ID};
