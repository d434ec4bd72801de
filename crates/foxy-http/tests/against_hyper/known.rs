//! The known kinds of disagreement with hyper. Whatever is not here fails the tests.

use foxy_http::{DecodeError, Method};

/// Where we and hyper differ on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    /// hyper lets Transfer-Encoding win; we refuse both together.
    LengthAndTransferEncoding,
    /// hyper takes equal lengths given twice.
    RepeatedEqualLength,
    /// hyper skips codings and empty list members before chunked, and takes chunked twice.
    OtherCodings,
    /// httparse takes LF as a line end.
    BareLineFeed,
    /// hyper leaves Host to the application.
    Host,
    /// `http::Uri` takes authorities and schemes we do not.
    Target,
    /// hyper takes other bytes in chunk extensions, and sizes of more than 16 digits.
    ChunkLine,
    /// hyper skips any number of empty lines.
    EmptyLines,
    /// `http::Uri` refuses bytes that we forward as they came.
    RawTarget,
}

impl RequestKind {
    /// Every kind.
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

    /// The kind for an error of ours where hyper accepts.
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

/// Where we and hyper differ on responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResponseKind {
    /// httparse takes LF as a line end.
    BareLineFeed,
    /// hyper skips empty lines before a status line; to us they are bytes that nobody asked for.
    EmptyLines,
    /// hyper takes a 101 that was not asked for.
    UnexpectedSwitch,
    /// hyper reads on until the close after a coding it does not know, and ignores codings before
    /// chunked.
    OtherCodings,
    /// hyper takes other bytes in chunk extensions, and sizes of more than 16 digits.
    ChunkLine,
    /// hyper does not look at Content-Length beside Transfer-Encoding, nor at any framing header
    /// after HEAD.
    UnusedFraming,
}

impl ResponseKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::BareLineFeed,
        Self::EmptyLines,
        Self::UnexpectedSwitch,
        Self::OtherCodings,
        Self::ChunkLine,
        Self::UnusedFraming,
    ];

    /// The kind for an error of ours where hyper accepts.
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
