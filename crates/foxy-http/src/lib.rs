//! HTTP/1.1 on the wire: a sans-IO codec. Bytes in, events out; heads and chunks in, bytes out.
//! It reads no socket and no clock, and it decides nothing about caching. Start at [`RequestDecoder`],
//! [`ResponseDecoder`] and [`encode`]; [`framing`] holds the decisions that two parsers must not make differently.

mod body;
mod chunked;
mod connection;
mod decode;
pub mod encode;
mod error;
pub mod framing;
mod headers;
mod limits;
mod list;
mod message;
mod parse;
mod response;
mod scan;
mod target;

pub use connection::{
    CloseReason, Persistence, accepts_trailers, expects_continue, strip_hop_by_hop, upgrade_protocol,
};
pub use decode::{RequestDecoder, RequestEvent};
pub use error::DecodeError;
pub use framing::BodyLength;
pub use headers::{Headers, InvalidHeader};
pub use limits::Limits;
pub use message::{Method, RequestHead, ResponseHead, Version, reason_phrase};
pub use response::{NotReusable, ResponseDecoder, ResponseEvent};
pub use target::{Authority, Target, TargetForm};
