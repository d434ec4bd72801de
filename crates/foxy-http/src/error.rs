//! Why a message was refused: a name, a sentence, and a status for the client.

use std::fmt;

/// Why bytes are not an acceptable message. Close the connection after any of them: the rest of the
/// stream has no agreed meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecodeError {
    /// The head is longer than [`crate::Limits::head`].
    HeadTooLarge,
    /// The request line is longer than [`crate::Limits::request_line`].
    RequestLineTooLong,
    /// More header lines than [`crate::Limits::headers`].
    TooManyHeaders,
    /// A line ends in LF without CR (RFC 9112 §2.2). Two parsers may see different lines.
    BareLineFeed,
    /// A CR is not followed by LF (RFC 9112 §2.2).
    BareCarriageReturn,
    /// The head or the trailers have a NUL byte.
    NulByte,
    /// A header line starts with a blank (RFC 9112 §5.2; refused in requests, trailers and before
    /// the first header).
    ObsoleteFold,
    /// The first line is not `method SP target SP version`.
    InvalidRequestLine,
    /// The first line looks like a request line of another protocol than HTTP.
    OtherProtocol,
    /// The method is not a token.
    InvalidMethod,
    /// The request target has a form or a byte that its method does not allow.
    InvalidTarget,
    /// The authority in the target is not `host [":" port]`. User information is refused too.
    InvalidAuthority,
    /// The first line is not `version SP status SP reason`, or the status is not between 100 and
    /// 599.
    InvalidStatusLine,
    /// The version is neither HTTP/1.0 nor HTTP/1.1.
    UnsupportedVersion,
    /// A header name is not a token, or is followed by a blank.
    InvalidHeaderName,
    /// A header value has a control byte.
    InvalidHeaderValue,
    /// An HTTP/1.1 request has no Host (RFC 9112 §3.2).
    MissingHost,
    /// A request has more than one Host line (RFC 9112 §3.2).
    RepeatedHost,
    /// Host is not `host [":" port]` (RFC 9112 §3.2).
    InvalidHost,
    /// An HTTP/2 message has a connection field of HTTP/1.1 (RFC 9113 §8.2.2).
    ConnectionField,
    /// Host and `:authority` of an HTTP/2 request differ (RFC 9113 §8.3.1).
    HostDiffers,
    /// A request has both Content-Length and Transfer-Encoding (RFC 9112 §6.1).
    LengthAndTransferEncoding,
    /// Content-Length is not a plain decimal number below 2^64.
    InvalidContentLength,
    /// Content-Length is given more than once (in a response: with different values).
    RepeatedContentLength,
    /// An HTTP/1.0 message has Transfer-Encoding (RFC 9112 §6.1).
    TransferEncodingInHttp10,
    /// Transfer-Encoding names chunked twice (RFC 9112 §7).
    RepeatedChunked,
    /// Transfer-Encoding does not end in chunked (RFC 9112 §6.1).
    ChunkedNotLast,
    /// Transfer-Encoding names a coding besides chunked.
    UnsupportedTransferCoding,
    /// A CONNECT has content. RFC 9110 §9.3.6 gives it no meaning: body to one parser, tunnel bytes
    /// to another.
    ConnectWithContent,
    /// A chunk size is not hexadecimal, or does not fit 64 bits.
    InvalidChunkSize,
    /// A chunk line has a byte that extensions may not have, or does not end in CRLF.
    InvalidChunkLine,
    /// The chunk extensions are longer than [`crate::Limits::chunk_extensions`].
    ChunkExtensionsTooLarge,
    /// Chunk data is not followed by CRLF.
    InvalidChunkEnd,
    /// The trailer section is longer than [`crate::Limits::trailers`].
    TrailersTooLarge,
    /// Response bytes came without a request.
    UnexpectedResponse,
    /// A 101 answered a request that asked for no upgrade.
    UnexpectedSwitch,
    /// More 1xx responses than [`crate::Limits::interim_responses`].
    TooManyInterimResponses,
    /// The peer closed within a head.
    TruncatedHead,
    /// The peer closed before the body was complete.
    TruncatedBody,
}

impl DecodeError {
    /// Status of the answer to a bad request, before the close. For a bad response a gateway
    /// answers 502.
    pub fn status(self) -> u16 {
        match self {
            Self::RequestLineTooLong => 414,
            Self::HeadTooLarge | Self::TooManyHeaders | Self::TrailersTooLarge => 431,
            Self::UnsupportedTransferCoding => 501,
            Self::UnsupportedVersion => 505,
            _ => 400,
        }
    }

    /// Sentence for people.
    pub fn description(self) -> &'static str {
        match self {
            Self::HeadTooLarge => "the head is larger than allowed",
            Self::RequestLineTooLong => "the request line is longer than allowed",
            Self::TooManyHeaders => "there are more header lines than allowed",
            Self::BareLineFeed => "a line ends in LF alone; CRLF is required",
            Self::BareCarriageReturn => "a CR is not followed by LF",
            Self::NulByte => "there is a NUL byte in a header section",
            Self::ObsoleteFold => "a header line starts with a blank (obsolete line folding)",
            Self::InvalidRequestLine => "the request line is not `method target HTTP/1.1`",
            Self::OtherProtocol => "the first line is of another protocol than HTTP",
            Self::InvalidMethod => "the method is not a token",
            Self::InvalidTarget => "the request target is not one its method allows",
            Self::InvalidAuthority => "the authority in the target is not `host` or `host:port`",
            Self::InvalidStatusLine => "the status line is not `HTTP/1.1 status reason`",
            Self::UnsupportedVersion => "the version is neither HTTP/1.0 nor HTTP/1.1",
            Self::InvalidHeaderName => "a header name is not a token directly followed by a colon",
            Self::InvalidHeaderValue => "a header value has a control byte",
            Self::MissingHost => "an HTTP/1.1 request needs a Host header",
            Self::RepeatedHost => "there is more than one Host header",
            Self::InvalidHost => "Host is not `host` or `host:port`",
            Self::ConnectionField => {
                "a field that concerns a connection of HTTP/1.1 came over HTTP/2"
            }
            Self::HostDiffers => "Host is not what :authority says",
            Self::LengthAndTransferEncoding => {
                "both Content-Length and Transfer-Encoding are given"
            }
            Self::InvalidContentLength => "Content-Length is not a plain decimal number",
            Self::RepeatedContentLength => "Content-Length is given more than once",
            Self::TransferEncodingInHttp10 => "Transfer-Encoding is not allowed in HTTP/1.0",
            Self::RepeatedChunked => "Transfer-Encoding names chunked more than once",
            Self::ChunkedNotLast => "Transfer-Encoding does not end in chunked",
            Self::UnsupportedTransferCoding => "Transfer-Encoding names a coding besides chunked",
            Self::ConnectWithContent => "a CONNECT must have no content",
            Self::InvalidChunkSize => "a chunk size is not a 64-bit hexadecimal number",
            Self::InvalidChunkLine => "a chunk line has a forbidden byte or does not end in CRLF",
            Self::ChunkExtensionsTooLarge => "the chunk extensions are larger than allowed",
            Self::InvalidChunkEnd => "chunk data is not followed by CRLF",
            Self::TrailersTooLarge => "the trailer section is larger than allowed",
            Self::UnexpectedResponse => "response bytes came with no request waiting for them",
            Self::UnexpectedSwitch => "a 101 response answered a request without Upgrade",
            Self::TooManyInterimResponses => "there were more 1xx responses than allowed",
            Self::TruncatedHead => "the connection closed within a head",
            Self::TruncatedBody => "the connection closed before the body was complete",
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.description())
    }
}

impl std::error::Error for DecodeError {}
