//! Why a path gave no whole answer: the reasons that tables, records and clients name.

use crate::wire::loss::Loss;

/// Why a path gave no whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFailure {
    /// No connection.
    NoConnection,
    /// The proxy opened no tunnel.
    NoTunnel,
    /// The certificate is untrusted or for another name.
    Certificate,
    /// No TLS, or not the requested protocol within.
    Handshake,
    /// The connection closed before the first byte.
    Unanswered,
    /// The connection closed within the answer.
    Closed,
    /// The connection was reset, before the answer or within it.
    ConnectionReset,
    /// The HTTP/2 stream was reset.
    Reset,
    /// The bytes are not HTTP.
    NotHttp,
    /// Surplus bytes after a whole answer, such as a second answer.
    Surplus,
    /// A body after the answer to HEAD (RFC 9110 §9.3.2).
    BodyToHead,
    /// Not whole within the time limit.
    Timeout,
}

impl PathFailure {
    /// All failures, in the order of the report's counts.
    pub const ALL: [Self; 12] = [
        Self::NoConnection,
        Self::NoTunnel,
        Self::Certificate,
        Self::Handshake,
        Self::Unanswered,
        Self::Closed,
        Self::ConnectionReset,
        Self::Reset,
        Self::NotHttp,
        Self::Surplus,
        Self::BodyToHead,
        Self::Timeout,
    ];

    /// Name in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoConnection => "no_connection",
            Self::NoTunnel => "no_tunnel",
            Self::Certificate => "tls_certificate",
            Self::Handshake => "tls_handshake",
            Self::Unanswered => "unanswered",
            Self::Closed => "closed_early",
            Self::ConnectionReset => "connection_reset",
            Self::Reset => "stream_reset",
            Self::NotHttp => "not_http",
            Self::Surplus => "surplus_bytes",
            Self::BodyToHead => "body_to_head",
            Self::Timeout => "timeout",
        }
    }

    /// Whether a proxy may fail in this way because the origin failed as `origin`. A missing proxy,
    /// bad bytes and a bad certificate are the proxy's own fault, unless the origin fails likewise.
    /// A proxy need not delay an immediate failure of the origin until a timeout.
    pub fn may_follow(self, origin: Self) -> bool {
        match self {
            Self::NoConnection => false,
            Self::Certificate
            | Self::NotHttp
            | Self::Surplus
            | Self::BodyToHead
            | Self::Timeout => self == origin,
            Self::NoTunnel
            | Self::Handshake
            | Self::Unanswered
            | Self::Closed
            | Self::ConnectionReset
            | Self::Reset => !matches!(origin, Self::Surplus | Self::BodyToHead),
        }
    }
}

impl From<Loss> for PathFailure {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Unanswered => Self::Unanswered,
            Loss::Within => Self::Closed,
            Loss::Reset => Self::ConnectionReset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_may_fail_where_its_origin_does_but_not_by_itself() {
        for (failure, origin, expected) in [
            (PathFailure::Closed, PathFailure::ConnectionReset, true),
            (PathFailure::Unanswered, PathFailure::Timeout, true),
            (PathFailure::Timeout, PathFailure::Timeout, true),
            (PathFailure::Timeout, PathFailure::Closed, false),
            (PathFailure::NoTunnel, PathFailure::NoConnection, true),
            (PathFailure::NoConnection, PathFailure::NoConnection, false),
            (PathFailure::NotHttp, PathFailure::NotHttp, true),
            (PathFailure::NotHttp, PathFailure::Closed, false),
            (PathFailure::Certificate, PathFailure::Closed, false),
            (PathFailure::Closed, PathFailure::Surplus, false),
        ] {
            assert_eq!(failure.may_follow(origin), expected, "{failure:?} beside {origin:?}");
        }
    }
}
