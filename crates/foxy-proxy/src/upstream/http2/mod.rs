//! HTTP/2 with origins (RFC 9113): connections that several exchanges share, and the exchanges on
//! them. The library `h2` handles frames, compression and flow control. This module limits the
//! memory and frames of a connection, and decides which requests may use it.

mod connection;
mod message;
mod meter;
mod pool;
mod stream;

pub(crate) use connection::{Lease, begin};
pub(crate) use message::request;
pub(crate) use pool::{Attempt, DialOutcome, Http2Pool, OriginConnections};
pub(crate) use stream::Http2Exchange;
