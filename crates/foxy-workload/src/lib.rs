//! Workloads: streams of requests, and the contents of the requested objects. A random seed
//! determines everything. The crate uses no sockets, clocks or files. A benchmark's client and
//! origin call the same functions, so each can predict the other's messages. Read the modules
//! `workload` and `stream` first. The module `trace` reads and generates traces.

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
