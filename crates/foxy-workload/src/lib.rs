//! Request streams as values: which object is asked for next, and the bytes that belong to each
//! object. Pure and seeded: no sockets, no clock, no files. The lab puts a stream on the wire; the
//! origin answers from the same functions.

pub mod body;
pub mod distribution;
pub mod knobs;
pub mod object;
pub mod objects;
pub mod polymix;
pub mod replay;
pub mod stream;
pub mod table3;
pub mod trace;
pub mod workload;
pub mod wpb;

pub use body::{BodyCheck, BodyStream};
pub use knobs::WorkloadError;
pub use object::Object;
pub use objects::{MOST_RANKED, Objects, Popularity};
pub use replay::Replay;
pub use stream::{Content, Request, RequestStream};
pub use trace::{Get, Trace};
pub use workload::{Model, Workload};
