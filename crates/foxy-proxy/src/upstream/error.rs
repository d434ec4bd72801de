//! Why an origin did not give a whole answer, each with the status a client gets for it.
//! `docs/errors.md` explains them to people.

pub use crate::upstream::connect_error::{ConnectError, ResolveError, TlsError};
use crate::upstream::http2::Http2Error;
use foxy_http::DecodeError;
use std::fmt;

/// Why an exchange with an origin has no, or no whole, response. None of them may be shown to a
/// client as a complete response: before the head is forwarded it is answered by
/// [`UpstreamError::status`], after it the client's connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamError {
    /// There is no connection.
    Connect(ConnectError),
    /// The origin closed or reset the connection before any byte of a response.
    NoResponse,
    /// The origin gave no final head within the time, or did not take the request.
    HeadTimeout,
    /// The origin sent no body byte within the time.
    BodyTimeout,
    /// What the origin sent is not a response we accept, or it ended early.
    BadResponse(DecodeError),
    /// The connection was reset within a response.
    Reset,
    /// The client's request body ended early, or did not match its length.
    RequestBodyBroken,
    /// It went wrong in a way particular to HTTP/2.
    Http2(Http2Error),
}

impl UpstreamError {
    /// Whether the origin, or the way to it, failed, so that a stored response may stand in for it.
    pub const fn is_the_origins(self) -> bool {
        !matches!(self, Self::Connect(ConnectError::Forbidden(_)) | Self::RequestBodyBroken)
    }

    /// The reason as one word, for logs and `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connect(error) => error.name(),
            Self::NoResponse => "no-response",
            Self::HeadTimeout => "response-timeout",
            Self::BodyTimeout => "body-timeout",
            Self::BadResponse(DecodeError::TruncatedHead | DecodeError::TruncatedBody) => {
                "response-incomplete"
            }
            Self::BadResponse(_) => "bad-response",
            Self::Reset => "connection-reset",
            Self::RequestBodyBroken => "request-incomplete",
            Self::Http2(error) => error.name(),
        }
    }

    /// The status a client gets, if no head was forwarded to it yet.
    pub fn status(self) -> u16 {
        match self {
            Self::Connect(error) => error.status(),
            Self::NoResponse | Self::BadResponse(_) | Self::Reset => 502,
            Self::HeadTimeout | Self::BodyTimeout => 504,
            Self::RequestBodyBroken => 400,
            Self::Http2(error) => error.status(),
        }
    }

    /// One line for people.
    pub fn description(self) -> &'static str {
        match self {
            Self::Connect(error) => error.description(),
            Self::NoResponse => "the origin closed the connection without an answer",
            Self::HeadTimeout => "the origin gave no answer in time",
            Self::BodyTimeout => "the origin stopped sending within its answer",
            Self::BadResponse(error) => error.description(),
            Self::Reset => "the origin reset the connection within its answer",
            Self::RequestBodyBroken => "the request body ended early",
            Self::Http2(error) => error.description(),
        }
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.description())
    }
}

impl std::error::Error for UpstreamError {}

impl From<ConnectError> for UpstreamError {
    fn from(error: ConnectError) -> Self {
        Self::Connect(error)
    }
}

impl From<DecodeError> for UpstreamError {
    fn from(error: DecodeError) -> Self {
        Self::BadResponse(error)
    }
}

impl From<Http2Error> for UpstreamError {
    fn from(error: Http2Error) -> Self {
        Self::Http2(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::address::destination::DestinationRefusal;

    #[test]
    fn every_reason_is_in_the_documentation_with_its_status() {
        let documentation = include_str!("../../../../docs/errors.md");
        let resolve = [
            ResolveError::NoSuchHost,
            ResolveError::TimedOut,
            ResolveError::ServerFailed,
            ResolveError::BadAnswer,
            ResolveError::TooManyLookups,
            ResolveError::TooManyOfClient,
        ];
        let connect = [
            ConnectError::Forbidden(DestinationRefusal::Loopback),
            ConnectError::TimedOut,
            ConnectError::ConnectionRefused,
            ConnectError::Unreachable,
            ConnectError::OutOfResources,
            ConnectError::Failed,
        ];
        let tls = [
            TlsError::Untrusted,
            TlsError::WrongName,
            TlsError::Expired,
            TlsError::BadCertificate,
            TlsError::Refused,
            TlsError::Closed,
            TlsError::TimedOut,
            TlsError::Failed,
        ];
        let upstream = [
            UpstreamError::NoResponse,
            UpstreamError::HeadTimeout,
            UpstreamError::BodyTimeout,
            UpstreamError::BadResponse(DecodeError::InvalidStatusLine),
            UpstreamError::BadResponse(DecodeError::TruncatedHead),
            UpstreamError::Reset,
            UpstreamError::RequestBodyBroken,
        ];
        let http2 = [
            Http2Error::Protocol,
            Http2Error::Flood,
            Http2Error::StreamReset,
            Http2Error::Refused,
            Http2Error::Crowded,
        ];
        let connect = connect.into_iter().chain(tls.map(ConnectError::from));
        let connect =
            resolve.map(ConnectError::from).into_iter().chain(connect).map(UpstreamError::from);
        for error in connect.chain(upstream).chain(http2.map(UpstreamError::from)) {
            let row = format!("| {} | `{}` |", error.status(), error.name());
            assert!(documentation.contains(&row), "docs/errors.md has no row {row}");
        }
    }
}
