//! Request streams as values, and the bytes of the objects they ask for. Pure and seeded: no
//! sockets, clocks or files. Client and origin compute both from the same functions. Start at
//! `workload` and `stream`; `trace` reads and generates traces.

mod distribution;
mod knobs;
mod object;
mod objects;
pub mod polymix;
pub mod replay;
mod stream;
pub mod table3;
pub mod trace;
mod workload;
pub mod wpb;

pub use knobs::WorkloadError;
pub use object::{BodyCheck, BodyStream, Object};
pub use objects::{MAX_RANKED_OBJECTS, Objects, Popularity};
pub use replay::Replay;
pub use stream::{Content, Request, RequestStream};
pub use trace::{Get, Trace};
pub use workload::{Model, Workload};
