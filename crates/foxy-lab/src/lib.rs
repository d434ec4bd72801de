//! Puts request streams on the wire and checks what comes back; and the origin that answers them.
//! The lab sees proxies only through sockets: it links none, and it reads no arguments and no files.

pub mod answer;
mod client;
pub mod figures;
pub mod load;
pub mod origin;
pub mod outcome;
pub mod sim;
pub mod store_bench;

pub use load::{LoadOptions, Mode, Pace, Stop, run};
pub use origin::{Origin, OriginOptions};
pub use outcome::{ErrorCause, LoadReport};

/// The header by which a reply's request is known: the origin repeats the number of the request that reached it, so a
/// reply with another number was stored before (WORKLOADS: "how a hit is known").
pub const REQUEST_ID: &str = "X-Foxy-Request";
