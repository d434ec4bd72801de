//! Why an origin gave no answer, or no whole answer, with the status for the client.
//! `docs/errors.md` explains the reasons to people.

use crate::core::transport::is_out_of_descriptors;
use crate::upstream::address::destination::DestinationRefusal;
use foxy_http::DecodeError;
use std::fmt;
use std::io;

/// What logs, clients and people are told of a reason.
struct Report {
    name: &'static str,
    status: u16,
    description: &'static str,
}

const fn report(name: &'static str, status: u16, description: &'static str) -> Report {
    Report { name, status, description }
}

macro_rules! reasons {
    ($($error:ident)+) => {$(
        impl $error {
            /// Reason as one word, for logs and `Cache-Status`.
            pub fn name(self) -> &'static str {
                self.report().name
            }

            /// Status for the client, if no head was forwarded yet.
            pub fn status(self) -> u16 {
                self.report().status
            }

            /// Sentence for people.
            pub fn description(self) -> &'static str {
                self.report().description
            }
        }

        impl fmt::Display for $error {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.description())
            }
        }

        impl std::error::Error for $error {}
    )+};
}

reasons!(ResolveError TlsError ConnectError Http2Error UpstreamError);

macro_rules! conversions {
    ($($from:ident => $into:ident::$variant:ident,)+) => {$(
        impl From<$from> for $into {
            fn from(error: $from) -> Self {
                Self::$variant(error)
            }
        }
    )+};
}

conversions! {
    ResolveError => ConnectError::Resolve,
    DestinationRefusal => ConnectError::Forbidden,
    TlsError => ConnectError::Tls,
    ConnectError => UpstreamError::Connect,
    DecodeError => UpstreamError::BadResponse,
    Http2Error => UpstreamError::Http2,
}

/// Why a name gave no addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResolveError {
    /// The name does not exist or has no address. Also a host that ends in a number without being
    /// an address (`0x7f.1`, `2130706433`): no DNS name ends so, and libraries disagree about the
    /// address.
    NoSuchHost,
    /// No name server answered in time.
    TimedOut,
    /// The name servers failed, or there are none.
    ServerFailed,
    /// The answer cannot be understood.
    BadAnswer,
    /// Too many lookups are in flight.
    TooManyLookups,
    /// Too many lookups of the same client are in flight.
    TooManyOfClient,
}

impl ResolveError {
    /// Whether the error concerns the server that was asked and not the name.
    pub(crate) const fn is_the_servers(self) -> bool {
        matches!(self, Self::TimedOut | Self::ServerFailed | Self::BadAnswer)
    }

    const fn report(self) -> Report {
        match self {
            Self::NoSuchHost => {
                report("no-such-host", 502, "the host name does not exist or has no address")
            }
            Self::TimedOut => report("dns-timeout", 504, "no name server answered in time"),
            Self::ServerFailed => report(
                "dns-failed",
                502,
                "the name servers answered with a failure, or none is set up",
            ),
            Self::BadAnswer => {
                report("dns-bad-answer", 502, "a name server's answer cannot be understood")
            }
            Self::TooManyLookups => report("dns-busy", 503, "too many names are being looked up"),
            Self::TooManyOfClient => report(
                "dns-client-busy",
                503,
                "as many names are being looked up for your address as one client may have; try again",
            ),
        }
    }
}

/// Why TLS with an origin failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsError {
    /// No trusted authority signed the certificate.
    Untrusted,
    /// The certificate is for other names, or no certificate can be for the origin's host.
    WrongName,
    /// The certificate is no longer or not yet valid.
    Expired,
    /// The certificate has another flaw: its encoding, its signature, its purpose.
    BadCertificate,
    /// The origin refused the handshake with an alert.
    Refused,
    /// The origin closed or reset the connection within the handshake.
    Closed,
    /// The handshake took too long.
    TimedOut,
    /// The origin speaks no TLS, or no common TLS.
    Failed,
}

impl TlsError {
    const fn report(self) -> Report {
        match self {
            Self::Untrusted => report(
                "certificate-untrusted",
                502,
                "no trusted authority signed the origin's certificate",
            ),
            Self::WrongName => report(
                "certificate-name-mismatch",
                502,
                "the origin's certificate is for another name",
            ),
            Self::Expired => report(
                "certificate-expired",
                502,
                "the origin's certificate is not valid at this time",
            ),
            Self::BadCertificate => {
                report("certificate-invalid", 502, "the origin's certificate cannot be used")
            }
            Self::Refused => report("tls-refused", 502, "the origin refused the TLS handshake"),
            Self::Closed => report(
                "tls-closed",
                502,
                "the origin closed the connection within the TLS handshake",
            ),
            Self::TimedOut => {
                report("tls-timeout", 504, "the TLS handshake with the origin took too long")
            }
            Self::Failed => {
                report("tls-failed", 502, "the origin speaks no TLS, or none that can be agreed on")
            }
        }
    }
}

/// Why there is no connection to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectError {
    /// The origin's name gave no addresses.
    Resolve(ResolveError),
    /// The policy forbids every address of the origin, or the port.
    Forbidden(DestinationRefusal),
    /// No address answered in time.
    TimedOut,
    /// The origin's machine refuses connections to the port.
    ConnectionRefused,
    /// No route leads to the origin.
    Unreachable,
    /// This machine is out of descriptors, ports or memory.
    OutOfResources,
    /// Connecting failed in another way.
    Failed,
    /// TLS on the connection failed.
    Tls(TlsError),
}

impl ConnectError {
    fn report(self) -> Report {
        match self {
            Self::Resolve(error) => error.report(),
            Self::Forbidden(refusal) => report("destination-forbidden", 403, refusal.description()),
            Self::TimedOut => {
                report("connect-timeout", 504, "the origin did not accept a connection in time")
            }
            Self::ConnectionRefused => {
                report("connection-refused", 502, "the origin refuses connections to this port")
            }
            Self::Unreachable => report("unreachable", 502, "no route leads to the origin"),
            Self::OutOfResources => report(
                "out-of-resources",
                503,
                "the proxy's machine is out of descriptors, ports or memory",
            ),
            Self::Failed => report("connect-failed", 502, "connecting to the origin failed"),
            Self::Tls(error) => error.report(),
        }
    }
}

impl From<&io::Error> for ConnectError {
    fn from(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::ConnectionRefused,
            io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown => Self::Unreachable,
            io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::OutOfMemory
            | io::ErrorKind::ResourceBusy => Self::OutOfResources,
            _ if is_out_of_descriptors(error) => Self::OutOfResources,
            _ => Self::Failed,
        }
    }
}

/// Failure of an origin that speaks HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Http2Error {
    /// The origin broke the rules of HTTP/2 (RFC 9113) or does not speak it: frames, compression,
    /// windows, or a malformed or too large message.
    Protocol,
    /// The origin sent more frames than messages need, or more interim responses than are read.
    Flood,
    /// The origin reset the stream within the exchange.
    StreamReset,
    /// The origin refused the request each time without processing it (RFC 9113 §8.7).
    Refused,
    /// The origin allows no more requests at a time, and too many wait already.
    Crowded,
}

impl Http2Error {
    const fn report(self) -> Report {
        match self {
            Self::Protocol => report("http2-protocol", 502, "the origin broke the rules of HTTP/2"),
            Self::Flood => {
                report("http2-flood", 502, "the origin sent more HTTP/2 frames than messages need")
            }
            Self::StreamReset => report(
                "http2-stream-reset",
                502,
                "the origin reset the HTTP/2 stream within its answer",
            ),
            Self::Refused => {
                report("http2-refused", 503, "the origin refuses the request over HTTP/2")
            }
            Self::Crowded => report(
                "http2-crowded",
                503,
                "too many requests wait for the origin's HTTP/2 connections",
            ),
        }
    }
}

/// Why an exchange has no, or no whole, response. A client must never take such a response for
/// complete: before the head is forwarded it gets [`UpstreamError::status`], later its connection
/// is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamError {
    /// There is no connection.
    Connect(ConnectError),
    /// The origin closed or reset the connection before any byte of a response.
    NoResponse,
    /// The origin sent no final head in time, or did not take the request.
    HeadTimeout,
    /// The origin sent no body byte in time.
    BodyTimeout,
    /// The response is not acceptable, or ended early.
    BadResponse(DecodeError),
    /// The connection was reset within a response.
    Reset,
    /// The client's request body ended early, or did not match its length.
    RequestBodyBroken,
    /// A failure particular to HTTP/2.
    Http2(Http2Error),
}

impl UpstreamError {
    /// Whether the origin, or the way to it, failed. A stored response may then stand in.
    pub const fn is_the_origins(self) -> bool {
        !matches!(self, Self::Connect(ConnectError::Forbidden(_)) | Self::RequestBodyBroken)
    }

    fn report(self) -> Report {
        match self {
            Self::Connect(error) => error.report(),
            Self::NoResponse => {
                report("no-response", 502, "the origin closed the connection without an answer")
            }
            Self::HeadTimeout => {
                report("response-timeout", 504, "the origin gave no answer in time")
            }
            Self::BodyTimeout => {
                report("body-timeout", 504, "the origin stopped sending within its answer")
            }
            Self::BadResponse(
                error @ (DecodeError::TruncatedHead | DecodeError::TruncatedBody),
            ) => report("response-incomplete", 502, error.description()),
            Self::BadResponse(error) => report("bad-response", 502, error.description()),
            Self::Reset => {
                report("connection-reset", 502, "the origin reset the connection within its answer")
            }
            Self::RequestBodyBroken => {
                report("request-incomplete", 400, "the request body ended early")
            }
            Self::Http2(error) => error.report(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn running_out_of_descriptors_is_named_so() {
        for code in [23, 24] {
            assert_eq!(
                ConnectError::from(&io::Error::from_raw_os_error(code)),
                ConnectError::OutOfResources
            );
        }
    }
}
