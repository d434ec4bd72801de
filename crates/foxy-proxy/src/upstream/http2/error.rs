//! Why an exchange over HTTP/2 has no, or no whole, response, where that is particular to HTTP/2.

use std::fmt;

/// What an origin that speaks HTTP/2 did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Http2Error {
    /// It broke the rules of HTTP/2 (RFC 9113), or speaks none: frames, compression, windows, or a
    /// message that is malformed or larger than we said to accept.
    Protocol,
    /// It sent more frames than messages need, or more interim responses than are read.
    Flood,
    /// It reset the stream within the exchange.
    StreamReset,
    /// It refused the request each time it was sent, without doing anything of it (RFC 9113 §8.7).
    Refused,
    /// It allows no more requests at a time, and too many wait already.
    Crowded,
}

impl Http2Error {
    /// The reason as one word, for logs and `Cache-Status`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Protocol => "http2-protocol",
            Self::Flood => "http2-flood",
            Self::StreamReset => "http2-stream-reset",
            Self::Refused => "http2-refused",
            Self::Crowded => "http2-crowded",
        }
    }

    /// The status a client gets, if no head was forwarded to it yet.
    pub const fn status(self) -> u16 {
        match self {
            Self::Protocol | Self::Flood | Self::StreamReset => 502,
            Self::Refused | Self::Crowded => 503,
        }
    }

    /// One line for people.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Protocol => "the origin broke the rules of HTTP/2",
            Self::Flood => "the origin sent more HTTP/2 frames than messages need",
            Self::StreamReset => "the origin reset the HTTP/2 stream within its answer",
            Self::Refused => "the origin refuses the request over HTTP/2",
            Self::Crowded => "too many requests wait for the origin's HTTP/2 connections",
        }
    }
}

impl fmt::Display for Http2Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.description())
    }
}

impl std::error::Error for Http2Error {}
