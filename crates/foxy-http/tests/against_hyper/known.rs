//! The known differences between foxy's decoders and hyper. Any other difference fails the tests.

use foxy_http::{DecodeError, Method};

/// A known difference for requests. "We" means foxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    /// hyper ignores Content-Length next to Transfer-Encoding; we refuse such a request.
    LengthAndTransferEncoding,
    /// hyper accepts a repeated Content-Length with equal values; we refuse it.
    RepeatedEqualLength,
    /// hyper ignores codings and empty list members before `chunked`, and accepts `chunked` twice;
    /// we refuse them.
    OtherCodings,
    /// httparse accepts LF without CR as a line end; we refuse it.
    BareLineFeed,
    /// hyper does not check Host; we do.
    Host,
    /// `http::Uri` accepts authorities and schemes that we refuse.
    Target,
    /// hyper accepts more bytes in chunk extensions, and chunk sizes of more than 16 digits; we
    /// refuse both.
    ChunkLine,
    /// hyper skips any number of empty lines; we limit the number.
    EmptyLines,
    /// `http::Uri` refuses bytes in a target that we forward unchanged.
    RawTarget,
}

impl RequestKind {
    pub const ALL: [Self; 9] = [
        Self::LengthAndTransferEncoding,
        Self::RepeatedEqualLength,
        Self::OtherCodings,
        Self::BareLineFeed,
        Self::Host,
        Self::Target,
        Self::ChunkLine,
        Self::EmptyLines,
        Self::RawTarget,
    ];

    /// The known difference for a request that hyper accepts and we refuse with `error`.
    pub fn stricter(error: DecodeError) -> Option<Self> {
        Some(match error {
            DecodeError::LengthAndTransferEncoding => Self::LengthAndTransferEncoding,
            DecodeError::RepeatedContentLength => Self::RepeatedEqualLength,
            DecodeError::UnsupportedTransferCoding | DecodeError::RepeatedChunked => {
                Self::OtherCodings
            }
            DecodeError::BareLineFeed => Self::BareLineFeed,
            DecodeError::MissingHost | DecodeError::RepeatedHost | DecodeError::InvalidHost => {
                Self::Host
            }
            DecodeError::InvalidTarget | DecodeError::InvalidAuthority => Self::Target,
            DecodeError::InvalidChunkLine | DecodeError::InvalidChunkSize => Self::ChunkLine,
            DecodeError::InvalidRequestLine => Self::EmptyLines,
            _ => return None,
        })
    }
}

/// A known difference for responses. "We" means foxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResponseKind {
    /// httparse accepts LF without CR as a line end; we refuse it.
    BareLineFeed,
    /// hyper skips empty lines before a status line; we treat them as bytes that belong to no
    /// request.
    EmptyLines,
    /// hyper accepts a 101 without a request for an upgrade; we refuse it.
    UnexpectedSwitch,
    /// After an unknown coding hyper reads until the connection closes, and it ignores codings
    /// before `chunked`. We refuse both.
    OtherCodings,
    /// hyper accepts more bytes in chunk extensions, and chunk sizes of more than 16 digits; we
    /// refuse both.
    ChunkLine,
    /// hyper does not check Content-Length next to Transfer-Encoding, nor any framing header in a
    /// response to HEAD; we do.
    UnusedFraming,
}

impl ResponseKind {
    pub const ALL: [Self; 6] = [
        Self::BareLineFeed,
        Self::EmptyLines,
        Self::UnexpectedSwitch,
        Self::OtherCodings,
        Self::ChunkLine,
        Self::UnusedFraming,
    ];

    /// The known difference for a response that hyper accepts and we refuse with `error`.
    pub fn stricter(error: DecodeError, method: &Method) -> Option<Self> {
        Some(match error {
            DecodeError::BareLineFeed => Self::BareLineFeed,
            DecodeError::InvalidStatusLine => Self::EmptyLines,
            DecodeError::UnexpectedSwitch => Self::UnexpectedSwitch,
            DecodeError::ChunkedNotLast
            | DecodeError::RepeatedChunked
            | DecodeError::UnsupportedTransferCoding => Self::OtherCodings,
            DecodeError::InvalidChunkLine | DecodeError::InvalidChunkSize => Self::ChunkLine,
            DecodeError::InvalidContentLength | DecodeError::RepeatedContentLength => {
                Self::UnusedFraming
            }
            DecodeError::TransferEncodingInHttp10 if *method == Method::Head => Self::UnusedFraming,
            _ => return None,
        })
    }
}
