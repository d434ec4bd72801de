//! HTTP/2 to origins (RFC 9113): connections that many exchanges share, and the exchanges on them.
//! Frames, compression and windows are the business of the library `h2`; what a connection may cost
//! and who may use it is decided here.

mod connection;
mod error;
mod lines;
mod message;
mod meter;
mod metered;
mod stream;

pub(crate) use connection::{Lease, begin};
pub use error::Http2Error;
pub(crate) use lines::{Attempt, DialOutcome, Lines, OriginConnections};
pub(crate) use message::request;
pub(crate) use stream::Http2Exchange;

/// Whether HTTP/2 is spoken with origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OriginHttp2 {
    /// With those behind TLS that choose it (ALPN, RFC 7301).
    #[default]
    Auto,
    /// With none.
    Off,
    /// As with `Auto`, and with those without TLS at once (RFC 9113 §3.3).
    PriorKnowledge,
}
