//! A codec for HTTP/1.1 without IO. It turns received bytes into events, and heads and chunks into
//! bytes. It reads requests from HTTP/2 fields by the same rules ([`http2`]). The codec uses no
//! socket and no clock, and makes no caching decisions. Start at [`RequestDecoder`],
//! [`ResponseDecoder`] and [`encode`]. [`framing`] decides where bodies end, and refuses messages
//! that two parsers could read differently.
//!
//! ```
//! use bytes::BytesMut;
//! use foxy_http::{BodyLength, DecodeError, RequestDecoder, RequestEvent};
//!
//! let mut decoder = RequestDecoder::default();
//! let mut buffer = BytesMut::from("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
//! let Some(RequestEvent::Head(head, length)) = decoder.next(&mut buffer)? else {
//!     panic!("the head is whole")
//! };
//! assert_eq!((head.authority(), length), (Some(&b"h"[..]), BodyLength::Length(2)));
//! assert_eq!(decoder.next(&mut buffer)?, Some(RequestEvent::Body("hi".into())));
//! assert_eq!(decoder.next(&mut buffer)?, Some(RequestEvent::End));
//! assert_eq!(decoder.next(&mut buffer)?, None);
//! # Ok::<(), DecodeError>(())
//! ```

mod body;
mod connection;
pub mod encode;
mod error;
pub mod framing;
mod head_text;
mod headers;
pub mod http2;
mod message;
mod parse;
mod request;
mod response;
mod scan;
mod syntax;
mod target;

pub use body::drop_forbidden_trailers;
pub use connection::{
    CloseReason, Persistence, accepts_trailers, expects_continue, names_other_fields_away,
    strip_hop_by_hop, upgrade_protocol,
};
pub use error::DecodeError;
pub use framing::BodyLength;
pub use head_text::{HeadText, OwnName};
pub use headers::{Headers, InvalidHeader};
pub use message::{Method, RequestHead, ResponseHead, Version, reason_phrase};
pub use request::{RequestDecoder, RequestEvent};
pub use response::{NotReusable, ResponseDecoder, ResponseEvent, may_begin_response};
pub use scan::Limits;
pub use target::{Authority, Scheme, Target, TargetForm};
