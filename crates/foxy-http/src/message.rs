//! Heads of requests and responses. They contain the bytes from the wire without interpretation.

use crate::error::DecodeError;
use crate::headers::Headers;
use crate::syntax::is_token;
use crate::target::{Target, TargetForm};
use bytes::Bytes;
use std::borrow::Cow;
use std::fmt;

/// Protocol version of a received message. [`crate::encode`] always writes HTTP/1.1 (RFC 9110 §2.5,
/// §6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2. [`crate::http2`] converts its fields to heads.
    Http2,
}

impl Version {
    /// Returns the version as `HTTP/x.y`. HTTP/2 messages contain no version, so `HTTP/2.0` follows
    /// the form of the other versions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
        }
    }
}

/// A request method (RFC 9110 §9). Methods are case-sensitive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the known methods are their own documentation")]
pub enum Method {
    Get,
    Head,
    Post,
    Put,
    Delete,
    Connect,
    Options,
    Trace,
    Patch,
    /// Any other method, as written.
    Other(Box<str>),
}

impl Method {
    /// Parses a method.
    ///
    /// # Errors
    /// [`DecodeError::InvalidMethod`] if the text is not a token.
    pub fn parse(text: &str) -> Result<Self, DecodeError> {
        Ok(match text {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "CONNECT" => Self::Connect,
            "OPTIONS" => Self::Options,
            "TRACE" => Self::Trace,
            "PATCH" => Self::Patch,
            other if is_token(other.as_bytes()) => Self::Other(other.into()),
            _ => return Err(DecodeError::InvalidMethod),
        })
    }

    /// Returns the method as written on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Delete => "DELETE",
            Self::Connect => "CONNECT",
            Self::Options => "OPTIONS",
            Self::Trace => "TRACE",
            Self::Patch => "PATCH",
            Self::Other(name) => name,
        }
    }

    /// Whether the method requests no change at the origin (RFC 9110 §9.2.1). An unknown method is
    /// not safe.
    pub fn is_safe(&self) -> bool {
        matches!(self, Self::Get | Self::Head | Self::Options | Self::Trace)
    }

    /// Whether repeating the request has the same effect as sending it once (RFC 9110 §9.2.2). Only
    /// such a request may be retried.
    pub fn is_idempotent(&self) -> bool {
        self.is_safe() || matches!(self, Self::Put | Self::Delete)
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// The request method.
    pub method: Method,
    /// The request target, as received.
    pub target: Target,
    /// The version that the client speaks.
    pub version: Version,
    /// The header lines. If the target has an authority (absolute form), Host already equals it.
    pub headers: Headers,
}

impl RequestHead {
    /// Returns the authority of the target, or else the value of Host. Returns `None` only for
    /// HTTP/1.0 without Host.
    pub fn authority(&self) -> Option<&[u8]> {
        match self.target.form() {
            TargetForm::Absolute { authority, .. } | TargetForm::Authority(authority) => {
                Some(authority)
            }
            TargetForm::Origin(_) | TargetForm::Asterisk => self.headers.get("host"),
        }
    }

    /// Returns the number of hops in Max-Forwards, at most `u64::MAX` (RFC 9110 §7.6.2). Returns
    /// `None` for methods other than OPTIONS and TRACE, and without a valid Max-Forwards.
    pub fn hops_left(&self) -> Option<u64> {
        if !matches!(self.method, Method::Options | Method::Trace) {
            return None;
        }
        let digits = self.headers.get_str("max-forwards")?.trim();
        let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        number.then(|| digits.parse().unwrap_or(u64::MAX))
    }

    /// Returns the target to send to an origin server (RFC 9112 §3.2.1, §3.2.4): path and query,
    /// with `/` for an empty path. Returns `*` for OPTIONS without path and query, and `None` for
    /// CONNECT.
    pub fn origin_form(&self) -> Option<Cow<'_, [u8]>> {
        match self.target.form() {
            TargetForm::Origin(path) => Some(Cow::Borrowed(path)),
            TargetForm::Asterisk => Some(Cow::Borrowed(b"*")),
            TargetForm::Authority(_) => None,
            TargetForm::Absolute { path: b"", .. } if self.method == Method::Options => {
                Some(Cow::Borrowed(b"*"))
            }
            TargetForm::Absolute { path: b"", .. } => Some(Cow::Borrowed(b"/")),
            TargetForm::Absolute { path, .. } if path[0] == b'/' => Some(Cow::Borrowed(path)),
            TargetForm::Absolute { path, .. } => Some(Cow::Owned([b"/", path].concat())),
        }
    }
}

/// The head of a response, interim or final.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The version that the server speaks.
    pub version: Version,
    /// Status code, 100 to 599.
    pub status: u16,
    /// Reason phrase as received, possibly empty.
    pub reason: Bytes,
    /// The header lines.
    pub headers: Headers,
}

impl ResponseHead {
    /// Creates a head for the proxy's own response, with the usual reason phrase and no headers.
    pub fn new(status: u16) -> Self {
        let reason = Bytes::from_static(reason_phrase(status).as_bytes());
        Self { version: Version::Http11, status, reason, headers: Headers::new() }
    }
}

/// Returns the reason phrase of a registered status, or an empty text for another status.
pub fn reason_phrase(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        508 => "Loop Detected",
        511 => "Network Authentication Required",
        _ => "",
    }
}
