//! The reasons why the proxy answers a request with its own error.

use crate::cache::purge::NotPurged;
use crate::core::places::NoPlace;
use crate::upstream::fleet::ErrorCause;
use crate::upstream::{ConnectError, DestinationRefusal, NoOrigin, UpstreamError};
use foxy_http::DecodeError;
use std::time::Duration;

/// The reason why the proxy answers a request with its own error. `docs/errors.md` explains each
/// reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorReason {
    /// The request is malformed.
    Malformed(DecodeError),
    /// The client did not send a whole head in time.
    RequestTimeout,
    /// The client sent plain HTTP to a TLS port.
    PlainOnTls,
    /// The client sent a request without an origin (origin form) to a forward proxy.
    NotAProxyRequest,
    /// The URL has a scheme other than `http` and `https`.
    UnsupportedScheme,
    /// The client sent CONNECT to a reverse proxy.
    ConnectToReverse,
    /// The client sent CONNECT inside an intercepted CONNECT.
    ConnectInside,
    /// A request inside an intercepted CONNECT names another authority than the CONNECT (RFC 9110
    /// §15.5.20).
    Misdirected,
    /// A reload has changed the authorities of clients, and the certificate of this connection
    /// belongs to none of them.
    CertificateUntrusted,
    /// No origin of this reverse proxy serves the host (RFC 9110 §15.5.20).
    UnknownHost,
    /// Origins of this reverse proxy serve the host, but not the path.
    UnknownPath,
    /// The authority has no host, or an invalid port.
    BadAuthority,
    /// Via contains this proxy's name, so the request is in a loop.
    Loop,
    /// The request accepts only a stored response, and no stored response may answer it (RFC 9111
    /// §5.2.1.7).
    OnlyIfCached,
    /// A TRACE has no hops left, so it ends at this proxy.
    TraceHere,
    /// The operator's setting `allow-client` does not contain the client's address.
    ClientNotAllowed,
    /// The request has no valid credentials of a user (RFC 9110 §15.5.8).
    CredentialsNeeded,
    /// Too many requests of the client wait for a password check.
    CredentialsBusy,
    /// A rule of the operator refuses the request.
    DeniedByRule,
    /// The operator's rules allow only certain requests, and this request is not one of them.
    NotAllowedByRule,
    /// The client sends more requests than a rule of the operator permits.
    RateLimited {
        /// Seconds until the rule permits the client's next request.
        retry_after: u32,
    },
    /// The client's address may not purge, and the request has no valid token.
    PurgeNotAllowed,
    /// A purge failed.
    NotPurged(NotPurged),
    /// Too many client connections are open in total.
    TooManyConnections,
    /// Too many connections of this client are open.
    TooManyOfClient,
    /// The memory budget for requests has no room for a large request head.
    NoRoomForHead,
    /// The origin is unreachable or did not answer.
    Upstream(UpstreamError),
}

impl ErrorReason {
    /// Refuses a client until `wait` has passed.
    pub(crate) fn rate_limited(wait: Duration) -> Self {
        let seconds = wait.as_nanos().div_ceil(1_000_000_000);
        Self::RateLimited { retry_after: u32::try_from(seconds).unwrap_or(u32::MAX) }
    }

    /// Returns the seconds after which the client may try again, for `Retry-After` (RFC 9110
    /// §10.2.3).
    pub(crate) fn retry_after(self) -> Option<u32> {
        match self {
            Self::RateLimited { retry_after } => Some(retry_after),
            _ => None,
        }
    }

    /// Returns the status of the error answer.
    pub fn status(self) -> u16 {
        match self {
            Self::Malformed(error) => error.status(),
            Self::RequestTimeout => 408,
            Self::PlainOnTls
            | Self::NotAProxyRequest
            | Self::UnsupportedScheme
            | Self::BadAuthority => 400,
            Self::ClientNotAllowed
            | Self::DeniedByRule
            | Self::NotAllowedByRule
            | Self::PurgeNotAllowed => 403,
            Self::CredentialsNeeded => 407,
            Self::CredentialsBusy | Self::RateLimited { .. } => 429,
            Self::ConnectToReverse | Self::ConnectInside | Self::TraceHere => 405,
            Self::Misdirected | Self::CertificateUntrusted | Self::UnknownHost => 421,
            Self::UnknownPath => 404,
            Self::Loop => 508,
            Self::OnlyIfCached => 504,
            Self::TooManyConnections
            | Self::TooManyOfClient
            | Self::NoRoomForHead
            | Self::NotPurged(_) => 503,
            Self::Upstream(error) => error.status(),
        }
    }

    /// Returns the reason as one word, for logs and `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed(_) => "bad-request",
            Self::RequestTimeout => "request-timeout",
            Self::PlainOnTls => "plain-http-on-tls",
            Self::NotAProxyRequest => "not-a-proxy-request",
            Self::UnsupportedScheme => "unsupported-scheme",
            Self::ConnectToReverse => "connect-to-reverse",
            Self::ConnectInside => "connect-inside-tls",
            Self::Misdirected => "misdirected",
            Self::CertificateUntrusted => "certificate-untrusted",
            Self::UnknownHost => "unknown-host",
            Self::UnknownPath => "unknown-path",
            Self::BadAuthority => "bad-authority",
            Self::Loop => "loop",
            Self::OnlyIfCached => "only-if-cached",
            Self::TraceHere => "trace",
            Self::ClientNotAllowed => "client-not-allowed",
            Self::CredentialsNeeded => "credentials-needed",
            Self::CredentialsBusy => "credentials-busy",
            Self::DeniedByRule => "denied-by-rule",
            Self::NotAllowedByRule => "not-allowed-by-rule",
            Self::RateLimited { .. } => "rate-limited",
            Self::PurgeNotAllowed => "purge-not-allowed",
            Self::NotPurged(reason) => reason.name(),
            Self::TooManyConnections => "too-many-connections",
            Self::TooManyOfClient => "too-many-connections-of-client",
            Self::NoRoomForHead => "no-room-for-head",
            Self::Upstream(error) => error.name(),
        }
    }

    /// Returns a message of one line that tells how to solve the problem.
    pub fn description(self) -> &'static str {
        match self {
            Self::Malformed(error) => error.description(),
            Self::RequestTimeout => "the request's head did not arrive in time",
            Self::PlainOnTls => "the client sent plain HTTP to a port for HTTPS; use https://",
            Self::NotAProxyRequest => {
                "this is a forward proxy and the request names no origin; send `GET \
                 http://host/path`, as `curl -x` does"
            }
            Self::UnsupportedScheme => "foxy forwards only http:// and https:// URLs",
            Self::ConnectToReverse => {
                "this is a reverse proxy, which accepts no CONNECT; use a forward proxy"
            }
            Self::ConnectInside => {
                "foxy accepts no CONNECT inside an intercepted CONNECT; send it to the proxy \
                 itself"
            }
            Self::Misdirected => {
                "the request names another host than its CONNECT; open a CONNECT to that host"
            }
            Self::CertificateUntrusted => {
                "client-ca or client-crl no longer permits the certificate of this connection; \
                 open another connection"
            }
            Self::UnknownHost => {
                "this reverse proxy serves no such host; its operator can list the host in `hosts` \
                 of an origin"
            }
            Self::UnknownPath => {
                "no origin of this reverse proxy serves the path; its operator can add an origin \
                 with this path"
            }
            Self::BadAuthority => "the URL's host or port cannot be read",
            Self::Loop => "the request has come back to this proxy; check the chain of proxies",
            Self::OnlyIfCached => {
                "the request accepts only a stored response (only-if-cached), and foxy stores none \
                 that fits"
            }
            Self::TraceHere => "foxy does not answer a TRACE with Max-Forwards: 0",
            Self::ClientNotAllowed => {
                "this proxy does not serve your address; its operator can list the address in \
                 allow-client"
            }
            Self::CredentialsNeeded => {
                "this proxy serves only known users; send a name and password, as `curl -U NAME` \
                 does"
            }
            Self::CredentialsBusy => {
                "too many requests of your address wait for a password check, or this request \
                 waited too long; send fewer at a time"
            }
            Self::DeniedByRule => "a rule of this proxy refuses the request",
            Self::NotAllowedByRule => "no rule of this proxy allows the request",
            Self::RateLimited { .. } => {
                "this client sends requests too fast; try again after the time in Retry-After"
            }
            Self::PurgeNotAllowed => {
                "PURGE is not allowed from this address; list it in purge-from, or send the token \
                 as `Proxy-Authorization: Bearer TOKEN`"
            }
            Self::NotPurged(reason) => reason.description(),
            Self::TooManyConnections => "too many clients are connected; try again later",
            Self::TooManyOfClient => {
                "your address has as many connections as one client may have; close some, or raise \
                 limits.connections-per-client"
            }
            Self::NoRoomForHead => {
                "too many requests with large heads wait; send a smaller head, or try again later"
            }
            Self::Upstream(error) => error.description(),
        }
    }
}

impl ErrorReason {
    /// Returns true if a setting or rule of the operator denies the request to this client. Other
    /// reasons are faults of the request, of the origin or of the proxy's machine.
    pub const fn is_denial(self) -> bool {
        matches!(
            self,
            Self::ClientNotAllowed
                | Self::CredentialsNeeded
                | Self::CredentialsBusy
                | Self::DeniedByRule
                | Self::NotAllowedByRule
                | Self::RateLimited { .. }
                | Self::PurgeNotAllowed
                | Self::Upstream(UpstreamError::Connect(ConnectError::Forbidden(_)))
        )
    }

    /// Returns the cause of the error, if a node of the fleet answers another node with it. Returns
    /// `None` if the node has only looked in its cache, as the other node asked.
    pub(crate) const fn cause_at_node(self) -> Option<ErrorCause> {
        match self {
            Self::OnlyIfCached => None,
            Self::Upstream(error) if error.is_for_every_node() => Some(ErrorCause::Origin),
            _ => Some(ErrorCause::Node),
        }
    }

    /// Returns why the destination policy forbids a connection to the origin, if this is the
    /// reason.
    pub const fn refused_destination(self) -> Option<DestinationRefusal> {
        match self {
            Self::Upstream(UpstreamError::Connect(ConnectError::Forbidden(refusal))) => {
                Some(refusal)
            }
            _ => None,
        }
    }
}

impl From<NoOrigin> for ErrorReason {
    fn from(missed: NoOrigin) -> Self {
        match missed {
            NoOrigin::Host => Self::UnknownHost,
            NoOrigin::Path => Self::UnknownPath,
        }
    }
}

impl From<NoPlace> for ErrorReason {
    fn from(full: NoPlace) -> Self {
        match full {
            NoPlace::All | NoPlace::Soon | NoPlace::Descriptors => Self::TooManyConnections,
            NoPlace::Client => Self::TooManyOfClient,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::{Http2Error, ResolveError};

    #[test]
    fn another_node_may_answer_only_if_this_node_is_the_cause() {
        use ErrorReason::Upstream;
        use UpstreamError::Connect;
        for (reason, cause) in [
            (Upstream(Connect(ConnectError::ConnectionRefused)), Some(ErrorCause::Origin)),
            (Upstream(Connect(ResolveError::NoSuchHost.into())), Some(ErrorCause::Origin)),
            (Upstream(UpstreamError::HeadTimeout), Some(ErrorCause::Origin)),
            (Upstream(Connect(ConnectError::OutOfResources)), Some(ErrorCause::Node)),
            (Upstream(Connect(ConnectError::Unreachable)), Some(ErrorCause::Node)),
            (Upstream(Connect(ResolveError::TooManyLookups.into())), Some(ErrorCause::Node)),
            (Upstream(Connect(DestinationRefusal::Loopback.into())), Some(ErrorCause::Node)),
            (Upstream(Http2Error::Crowded.into()), Some(ErrorCause::Node)),
            (ErrorReason::CertificateUntrusted, Some(ErrorCause::Node)),
            (ErrorReason::OnlyIfCached, None),
        ] {
            assert_eq!(reason.cause_at_node(), cause, "{reason:?}");
        }
    }

    #[test]
    fn every_reason_of_our_own_is_in_the_documentation_with_its_status() {
        let documentation = include_str!("../../../../docs/errors.md");
        let reasons = [
            ErrorReason::Malformed(DecodeError::TruncatedHead),
            ErrorReason::RequestTimeout,
            ErrorReason::PlainOnTls,
            ErrorReason::NotAProxyRequest,
            ErrorReason::UnsupportedScheme,
            ErrorReason::ConnectToReverse,
            ErrorReason::ConnectInside,
            ErrorReason::Misdirected,
            ErrorReason::CertificateUntrusted,
            ErrorReason::UnknownHost,
            ErrorReason::UnknownPath,
            ErrorReason::BadAuthority,
            ErrorReason::Loop,
            ErrorReason::OnlyIfCached,
            ErrorReason::TraceHere,
            ErrorReason::ClientNotAllowed,
            ErrorReason::CredentialsNeeded,
            ErrorReason::CredentialsBusy,
            ErrorReason::DeniedByRule,
            ErrorReason::NotAllowedByRule,
            ErrorReason::RateLimited { retry_after: 1 },
            ErrorReason::PurgeNotAllowed,
            ErrorReason::NotPurged(NotPurged::NotDurable),
            ErrorReason::NotPurged(NotPurged::Busy),
            ErrorReason::NotPurged(NotPurged::Stopping),
            ErrorReason::NotPurged(NotPurged::Late),
            ErrorReason::NotPurged(NotPurged::EngineAway),
            ErrorReason::TooManyConnections,
            ErrorReason::TooManyOfClient,
            ErrorReason::NoRoomForHead,
        ];
        for reason in reasons {
            let row = format!("| {} | `{}` |", reason.status(), reason.name());
            assert!(documentation.contains(&row), "docs/errors.md has no row {row}");
        }
    }
}
