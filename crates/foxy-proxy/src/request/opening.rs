//! How an answer begins: its head, and how the end of its body is marked.

use crate::request::cache_status::CacheStatus;
use bytes::Bytes;
use foxy_http::Headers;

/// How the body is told apart from the next response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    /// By what the protocol has for bodies of unknown length: chunks, or the end of the stream.
    Chunked,
    UntilClose,
    /// No body at all (204, 304).
    Empty,
}

/// A final head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) status: u16,
    pub(crate) reason: &'a [u8],
    /// Without Age, Cache-Status, framing and what concerns the connection.
    pub(crate) headers: &'a Headers,
    /// Status line and header lines as HTTP/1.1 writes them, where they are kept so.
    pub(crate) wire: Option<&'a Bytes>,
    pub(crate) age: Option<u64>,
    pub(crate) outcome: CacheStatus,
    pub(crate) framing: Framing,
}
