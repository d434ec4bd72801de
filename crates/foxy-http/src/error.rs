//! The reasons for refusing a message. Each reason has a name, a description, and a status for the
//! client.

use std::fmt;

macro_rules! decode_errors {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)+) => {
        /// The reason why the decoder refused the bytes. After any of these errors the caller must
        /// close the connection, because the start of the next message is unknown.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DecodeError {
            $(#[doc = concat!($text, ".")] $(#[$doc])* $variant,)+
        }

        impl DecodeError {
            /// Returns a sentence that explains the error to people.
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

decode_errors! {
    /// [`crate::Limits::head`] sets the largest size of a head.
    HeadTooLarge = "the head is larger than allowed",
    /// [`crate::Limits::request_line`] sets the largest length of a request line.
    RequestLineTooLong = "the request line is longer than allowed",
    /// [`crate::Limits::headers`] sets the largest number of header lines.
    TooManyHeaders = "the head has more header lines than allowed",
    /// RFC 9112 §2.2 permits parsers to accept LF alone as the end of a line. But two parsers may
    /// then split the lines differently.
    BareLineFeed = "a line ends in LF alone; CRLF is required",
    /// RFC 9112 §2.2 requires LF after CR.
    BareCarriageReturn = "a CR is not followed by LF",
    NulByte = "the header section has a NUL byte",
    /// Folds (RFC 9112 §5.2) are refused in requests, in trailers and before the first header.
    ObsoleteFold = "a header line starts with a blank (obsolete line folding)",
    InvalidRequestLine = "the request line is not `method target HTTP/1.1`",
    OtherProtocol = "the first line belongs to another protocol than HTTP",
    InvalidMethod = "the method is not a token",
    InvalidTarget = "the method does not allow this form of request target",
    /// An authority with user information (`user@host`) is refused too.
    InvalidAuthority = "the authority in the target is not `host` or `host:port`",
    /// A status outside 100 to 599 is refused too.
    InvalidStatusLine = "the status line is not `HTTP/1.1 status reason`",
    UnsupportedVersion = "the version is neither HTTP/1.0 nor HTTP/1.1",
    InvalidHeaderName = "a header name is not a token directly followed by a colon",
    InvalidHeaderValue = "a header value has a control byte",
    /// RFC 9112 §3.2 requires Host in every HTTP/1.1 request.
    MissingHost = "an HTTP/1.1 request needs a Host header",
    /// RFC 9112 §3.2 forbids a second Host in a request.
    RepeatedHost = "the request has more than one Host header",
    /// RFC 9112 §3.2 defines the value of Host.
    InvalidHost = "Host is not `host` or `host:port`",
    /// RFC 9113 §8.2.2 forbids the fields of HTTP/1.1 connections in HTTP/2.
    ConnectionField = "a field for HTTP/1.1 connections came over HTTP/2",
    /// RFC 9113 §8.3.1 requires that Host equals `:authority`.
    HostDiffers = "Host differs from :authority",
    /// RFC 9112 §6.1 warns that a message with Content-Length and Transfer-Encoding may be request
    /// smuggling.
    LengthAndTransferEncoding = "both Content-Length and Transfer-Encoding are given",
    /// A Content-Length of 2^64 or more is refused too.
    InvalidContentLength = "Content-Length is not a plain decimal number",
    /// In a response, repeated Content-Length lines are an error only if they differ.
    RepeatedContentLength = "Content-Length is given more than once",
    /// RFC 9112 §6.1 treats the framing of an HTTP/1.0 message with Transfer-Encoding as faulty.
    TransferEncodingInHttp10 = "Transfer-Encoding is not allowed in HTTP/1.0",
    /// RFC 9112 §7 forbids a second chunked coding.
    RepeatedChunked = "Transfer-Encoding names chunked more than once",
    /// RFC 9112 §6.1 requires chunked as the last coding of a request.
    ChunkedNotLast = "Transfer-Encoding does not end in chunked",
    UnsupportedTransferCoding = "Transfer-Encoding names a coding besides chunked",
    /// RFC 9110 §9.3.6 gives the content of a CONNECT no meaning. One parser would read a body,
    /// another would read tunnel bytes.
    ConnectWithContent = "a CONNECT must have no content",
    InvalidChunkSize = "a chunk size is not a 64-bit hexadecimal number",
    InvalidChunkLine = "a chunk line has a forbidden byte or does not end in CRLF",
    /// [`crate::Limits::chunk_extensions`] sets the largest size of the chunk extensions.
    ChunkExtensionsTooLarge = "the chunk extensions are larger than allowed",
    InvalidChunkEnd = "chunk data is not followed by CRLF",
    /// [`crate::Limits::trailers`] sets the largest size of a trailer section.
    TrailersTooLarge = "the trailer section is larger than allowed",
    UnexpectedResponse = "response bytes came with no request waiting for them",
    UnexpectedSwitch = "a 101 response answered a request without Upgrade",
    /// [`crate::Limits::interim_responses`] sets the largest number of 1xx responses.
    TooManyInterimResponses = "the server sent more 1xx responses than allowed",
    TruncatedHead = "the connection closed within a head",
    TruncatedBody = "the connection closed before the body was complete",
}

impl DecodeError {
    /// Returns the status to send to the client that sent a bad request. After a bad response, a
    /// gateway sends 502 instead.
    pub fn status(self) -> u16 {
        match self {
            Self::RequestLineTooLong => 414,
            Self::HeadTooLarge | Self::TooManyHeaders | Self::TrailersTooLarge => 431,
            Self::UnsupportedTransferCoding => 501,
            Self::UnsupportedVersion => 505,
            _ => 400,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.description())
    }
}

impl std::error::Error for DecodeError {}
