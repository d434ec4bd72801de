//! Lists the known differences between foxy's decoders and hyper (with its parser httparse). The
//! tests fail on any other difference.

use foxy_http::{DecodeError, Method};

/// A difference between foxy and hyper in the requests that they accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestKind {
    /// hyper ignores Content-Length next to Transfer-Encoding. foxy refuses such a request.
    LengthAndTransferEncoding,
    /// hyper accepts a repeated Content-Length with equal values. foxy refuses it.
    RepeatedEqualLength,
    /// hyper ignores codings and empty list members before `chunked`, and accepts `chunked` twice.
    /// foxy refuses such lists of codings.
    OtherCodings,
    /// httparse accepts LF without CR as a line end. foxy refuses it.
    BareLineFeed,
    /// foxy checks Host, but hyper does not.
    Host,
    /// `http::Uri` accepts authorities and schemes that foxy refuses.
    Target,
    /// hyper accepts more bytes in chunk extensions, and chunk sizes of more than 16 digits. foxy
    /// refuses such chunks.
    ChunkLine,
    /// hyper skips any number of empty lines. foxy limits the number.
    EmptyLines,
    /// `http::Uri` refuses bytes in a target that foxy forwards unchanged.
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

    /// Returns the known difference for a request that hyper accepts and foxy refuses with `error`.
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

/// A difference between foxy and hyper in the responses that they accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResponseKind {
    /// httparse accepts LF without CR as a line end. foxy refuses it.
    BareLineFeed,
    /// hyper skips empty lines before a status line. foxy treats them as bytes that belong to no
    /// request.
    EmptyLines,
    /// hyper accepts a 101 response to a request without Upgrade. foxy refuses it.
    UnexpectedSwitch,
    /// After an unknown coding, hyper reads until the connection closes. It also ignores codings
    /// before `chunked`. foxy refuses all these codings.
    OtherCodings,
    /// hyper accepts more bytes in chunk extensions, and chunk sizes of more than 16 digits. foxy
    /// refuses such chunks.
    ChunkLine,
    /// hyper does not check Content-Length next to Transfer-Encoding, nor framing headers in a
    /// response to HEAD. foxy checks them.
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

    /// Returns the known difference for a response that hyper accepts and foxy refuses with
    /// `error`.
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
