//! Why a path gave no whole answer: the reasons that tables, records and clients name.

use crate::loss::Loss;

/// Why there is no whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection.
    NoConnection,
    /// The proxy opened no tunnel.
    NoTunnel,
    /// The certificate shown is of nobody trusted, or for another name.
    Certificate,
    /// What answers speaks no TLS, or not what is to be spoken within.
    Handshake,
    /// The connection was closed before anything came.
    Unanswered,
    /// It ended within the answer.
    Closed,
    /// The connection was reset, before the answer or within it.
    ConnectionReset,
    /// The stream of HTTP/2 was reset.
    Reset,
    /// What came is not HTTP.
    NotHttp,
    /// The answer was whole, and more came behind it: a second answer, or bytes of none.
    Surplus,
    /// Behind the answer to HEAD there was a body, which such an answer never has (RFC 9110 §9.3.2).
    BodyToHead,
    /// Not whole within the time limit.
    Timeout,
}

impl Failure {
    /// Every failure, in the order of a report's counts.
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

    /// Its name in tables and records.
    #[must_use]
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
}

impl From<Loss> for Failure {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Unanswered => Self::Unanswered,
            Loss::Within => Self::Closed,
            Loss::Reset => Self::ConnectionReset,
        }
    }
}
