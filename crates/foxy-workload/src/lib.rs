//! Request streams as values: which object is asked for next, and the bytes that belong to each object.
//! Pure and seeded: no sockets, no clock. The lab puts a stream on the wire; the origin answers from the same functions.

pub mod body;
pub mod object;
pub mod stream;
pub mod trace;

pub use body::{BodyCheck, BodyStream};
pub use object::Object;
pub use stream::{Popularity, RequestStream, Workload};
pub use trace::{Get, Trace};
