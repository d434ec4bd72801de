//! The reasons why an origin gave no answer or an incomplete answer, with the status that the
//! client receives. `docs/errors.md` explains the reasons to users.

use crate::core::transport::is_out_of_descriptors;
use crate::upstream::address::destination::DestinationRefusal;
use foxy_http::DecodeError;
use std::fmt;
use std::io;

/// The name, status and sentence of a reason, for logs, answers and messages.
struct Report {
    name: &'static str,
    status: u16,
    description: &'static str,
}

const fn report(name: &'static str, status: u16, description: &'static str) -> Report {
    Report { name, status, description }
}

/// Defines an enum of reasons. Each reason has a name, a status and a sentence. The sentence is
/// also the documentation of the reason.
macro_rules! reasons {
    ($(#[$about:meta])+ $error:ident {
        $($(#[$doc:meta])* $variant:ident = $name:literal, $status:literal, $text:literal;)+
    }) => {
        $(#[$about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $error {
            $(#[doc = concat!("`", $name, "`: ", $text, ".")] $(#[$doc])* $variant,)+
        }

        impl $error {
            const fn report(self) -> Report {
                match self {
                    $(Self::$variant => report($name, $status, $text),)+
                }
            }
        }
    };
}

macro_rules! report_methods {
    ($($error:ident)+) => {$(
        impl $error {
            /// Returns the reason as one word, for logs and `Cache-Status`.
            pub fn name(self) -> &'static str {
                self.report().name
            }

            /// Returns the status that the client receives, if no response head was forwarded yet.
            pub fn status(self) -> u16 {
                self.report().status
            }

            /// Returns a sentence that explains the reason to people.
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

report_methods!(ResolveError TlsError ParentFailure ConnectError Http2Error UpstreamError);

macro_rules! conversions {
    ($($from:ident => $into:ident::$variant:ident,)+) => {$(
        impl From<$from> for $into {
            fn from(error: $from) -> Self {
                Self::$variant(error)
            }
        }
    )+};
}

impl From<ParentFailure> for UpstreamError {
    fn from(failure: ParentFailure) -> Self {
        Self::Connect(failure.into())
    }
}

conversions! {
    ResolveError => ConnectError::Resolve,
    DestinationRefusal => ConnectError::Forbidden,
    TlsError => ConnectError::Tls,
    ParentFailure => ConnectError::Parent,
    ConnectError => UpstreamError::Connect,
    DecodeError => UpstreamError::BadResponse,
    Http2Error => UpstreamError::Http2,
}

reasons! {
    /// The reason why a name has no known address.
    ResolveError {
        /// The name does not exist or has no address. This reason also covers hosts that end in a
        /// number but are not addresses (`0x7f.1`, `2130706433`). No DNS name ends in a number, and
        /// libraries read such hosts as different addresses.
        NoSuchHost = "no-such-host", 502, "the host name does not exist or has no address";
        TimedOut = "dns-timeout", 504, "no name server answered in time";
        ServerFailed = "dns-failed", 502,
            "the name servers answered with a failure, or none is set up";
        BadAnswer = "dns-bad-answer", 502, "a name server's answer cannot be understood";
        TooManyLookups = "dns-busy", 503, "too many DNS look-ups are in progress; try again";
        TooManyOfClient = "dns-client-busy", 503,
            "your address has as many DNS look-ups in progress as one client may have; try again";
    }
}

impl ResolveError {
    /// Returns true if the DNS server failed, so that the name may still exist. Another DNS server
    /// may then know the name.
    pub(crate) const fn is_the_servers(self) -> bool {
        matches!(self, Self::TimedOut | Self::ServerFailed | Self::BadAnswer)
    }
}

reasons! {
    /// The reason why the TLS handshake with an origin failed.
    TlsError {
        Untrusted = "certificate-untrusted", 502,
            "no trusted authority signed the origin's certificate";
        /// The certificate is for other names, or no certificate can contain the origin's host.
        WrongName = "certificate-name-mismatch", 502,
            "the origin's certificate is for another name";
        Expired = "certificate-expired", 502, "the origin's certificate is not valid at this time";
        /// The certificate has another error: in its encoding, in its signature, or in the purpose
        /// that it permits.
        BadCertificate = "certificate-invalid", 502, "the origin's certificate cannot be used";
        Refused = "tls-refused", 502, "the origin refused the TLS handshake";
        Closed = "tls-closed", 502, "the origin closed the connection within the TLS handshake";
        TimedOut = "tls-timeout", 504, "the TLS handshake with the origin took too long";
        Failed = "tls-failed", 502, "the origin speaks no TLS, or no version that foxy speaks";
    }
}

reasons! {
    /// The reason why the proxy could not reach an origin through a parent proxy.
    ParentFailure {
        Unreachable = "parent-unreachable", 502, "no parent proxy can be reached";
        Tls = "parent-tls", 502,
            "the TLS handshake with the parent proxy failed; check its certificate and origin-ca";
        Credentials = "parent-credentials", 502,
            "the parent proxy refuses foxy's credentials; correct parent-credentials-file";
        Refused = "parent-refused", 403, "the parent proxy refuses a tunnel to this destination";
        Failed = "parent-failed", 502, "the parent proxy opened no tunnel to the origin";
        TimedOut = "parent-timeout", 504, "the parent proxy opened no tunnel in time";
        /// The parent proxy is this proxy itself, or leads back to this proxy.
        Loop = "parent-loop", 508,
            "the parent proxy leads back to this proxy; check the chain of proxies";
    }
}

impl ParentFailure {
    /// Returns true if the request may succeed through another parent proxy.
    pub(crate) const fn permits_another(self) -> bool {
        !matches!(self, Self::Refused | Self::Loop)
    }
}

/// The reason why the proxy could not connect to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectError {
    /// No addresses were found for the origin's name.
    Resolve(ResolveError),
    /// The destination policy forbids the port, or every address of the origin.
    Forbidden(DestinationRefusal),
    /// No address answered in time.
    TimedOut,
    /// The origin's machine refuses connections to the port.
    ConnectionRefused,
    /// The network has no route to the origin.
    Unreachable,
    /// This machine has no file descriptors, ports or memory left.
    OutOfResources,
    /// Connecting failed for another reason.
    Failed,
    /// TLS on the connection failed.
    Tls(TlsError),
    /// No parent proxy connected the proxy to the origin.
    Parent(ParentFailure),
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
                "the proxy's machine has no free descriptors, ports or memory",
            ),
            Self::Failed => report("connect-failed", 502, "connecting to the origin failed"),
            Self::Tls(error) => error.report(),
            Self::Parent(failure) => failure.report(),
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

reasons! {
    /// The reason why an exchange over HTTP/2 failed.
    Http2Error {
        /// The origin violated HTTP/2 (RFC 9113) or does not speak it. The error concerns frames,
        /// compression or windows, or a message is malformed or too large.
        Protocol = "http2-protocol", 502, "the origin broke the rules of HTTP/2";
        /// The origin sent more frames than its messages need, or sent interim responses faster
        /// than the proxy could read them.
        Flood = "http2-flood", 502, "the origin sent more HTTP/2 frames than messages need";
        StreamReset = "http2-stream-reset", 502,
            "the origin reset the HTTP/2 stream within its answer";
        /// The origin refused every attempt without processing the request (RFC 9113 §8.7).
        Refused = "http2-refused", 503, "the origin refuses the request over HTTP/2";
        Crowded = "http2-crowded", 503,
            "too many requests wait for the origin's HTTP/2 connections";
    }
}

/// The reason why an exchange has no complete response. A client must never take an incomplete
/// response for a complete response. If no head was forwarded yet, the client receives
/// [`UpstreamError::status`]. Otherwise the proxy cuts the client's connection off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamError {
    /// No connection could be opened.
    Connect(ConnectError),
    /// The origin closed or reset the connection before any byte of a response.
    NoResponse,
    /// The origin did not send a final response head in time, or accepted no more bytes of the
    /// request.
    HeadTimeout,
    /// The origin sent no more bytes of the body in time.
    BodyTimeout,
    /// The response violates HTTP, or ended too early.
    BadResponse(DecodeError),
    /// The connection was reset before the response was complete.
    Reset,
    /// The client's request body ended too early, or did not match its length.
    RequestBodyBroken,
    /// HTTP/2 with the origin failed.
    Http2(Http2Error),
}

impl UpstreamError {
    /// Returns true if the origin or the network caused the failure. A stored response may then be
    /// served instead.
    pub const fn is_the_origins(self) -> bool {
        !matches!(self, Self::Connect(ConnectError::Forbidden(_)) | Self::RequestBodyBroken)
    }

    /// Returns true if every node of the fleet would probably fail like this node: the origin or
    /// the name servers failed. Returns false if this node's own limits or destination policy
    /// forbid the request, or if this node has no route to the origin.
    pub(crate) const fn is_for_every_node(self) -> bool {
        use ResolveError::{TooManyLookups, TooManyOfClient};
        self.is_the_origins()
            && !matches!(
                self,
                Self::Connect(
                    ConnectError::OutOfResources
                        | ConnectError::Unreachable
                        | ConnectError::Resolve(TooManyLookups | TooManyOfClient)
                ) | Self::Http2(Http2Error::Crowded)
            )
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
        let parent = [
            ParentFailure::Unreachable,
            ParentFailure::Credentials,
            ParentFailure::Refused,
            ParentFailure::Failed,
            ParentFailure::TimedOut,
            ParentFailure::Loop,
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
        let connect = connect.chain(parent.map(ConnectError::from));
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
