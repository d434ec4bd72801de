//! Puts request streams on the wire and checks what comes back; and the origin that answers them.
//! The lab sees proxies only through sockets: it links none, and it reads no arguments and no
//! files.

mod alarm;
pub mod answer;
mod client;
mod clients;
pub mod collector;
mod documents;
pub mod fault;
pub mod figures;
mod judge;
pub mod leap;
pub mod live;
pub mod load;
pub mod load_options;
mod loss;
pub mod name_server;
mod numbers;
mod one_stream;
pub mod origin;
mod out;
pub mod outcome;
mod patience;
pub mod peak;
pub mod plan;
pub mod robots;
pub mod schedule;
pub mod sim;
pub mod store_bench;
mod streams;
pub mod tls;
mod wanted;
pub mod wpb;

pub use foxy_http::Scheme;
pub use load::run;
pub use load_options::{LoadOptions, Mode, Pace, Protocol, Stop};
pub use origin::{Origin, OriginOptions};
pub use outcome::{ErrorCause, LoadReport, Tally};
pub use wanted::Wanted;

/// The header by which a reply's request is known: the origin repeats the number of the request
/// that reached it, so a reply with another number was stored before (WORKLOADS: "how a hit is
/// known").
pub const REQUEST_ID: &str = "X-Foxy-Request";

/// The header by which the origin says whose body a reply carries, and in which version:
/// `KEY.VERSION`.
pub const OBJECT_ID: &str = "X-Foxy-Object";
