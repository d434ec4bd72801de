//! The reasons why a path (a proxy or the origin) gave no complete answer. Each reason has a name
//! for tables, records and error answers.

use crate::named::named;
use crate::wire::patience::Loss;

named! {
    /// The reason why a path (a proxy or the origin) gave no complete answer.
    pub enum PathFailure {
        /// No connection could be opened.
        NoConnection = "no_connection",
        /// The proxy refused to open a tunnel (CONNECT).
        NoTunnel = "no_tunnel",
        /// The certificate is not trusted, or it is for another name.
        Certificate = "tls_certificate",
        /// The TLS handshake failed, or the two sides did not agree on the required protocol.
        Handshake = "tls_handshake",
        /// The connection closed before the first byte of the answer.
        Unanswered = "unanswered",
        /// The connection closed before the end of the answer.
        Closed = "closed_early",
        /// The connection was reset before or during the answer.
        ConnectionReset = "connection_reset",
        /// The HTTP/2 stream was reset.
        Reset = "stream_reset",
        /// The received bytes are not HTTP.
        NotHttp = "not_http",
        /// The proxy sent more bytes after a complete answer, for example a second answer.
        Surplus = "surplus_bytes",
        /// The proxy sent a body in the answer to HEAD (RFC 9110 §9.3.2).
        BodyToHead = "body_to_head",
        /// The answer was not complete within the time limit.
        Timeout = "timeout",
    }
}

impl PathFailure {
    /// Whether a failure of the origin may explain this failure of a proxy. Then the proxy is not
    /// at fault. A proxy that accepts no connection is always at fault. Bad bytes, a bad
    /// certificate or a timeout are the proxy's fault unless the origin failed in the same way. For
    /// example, a proxy must not time out if the origin fails at once.
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
