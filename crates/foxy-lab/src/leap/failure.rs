//! Why a path gave no whole answer: the reasons that tables, records and clients name.

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
    /// The stream of HTTP/2 was reset.
    Reset,
    /// What came is not HTTP.
    NotHttp,
    /// The answer was whole, and more came behind it: a second answer, or bytes of none.
    Surplus,
    /// Not whole within the time limit.
    Timeout,
}

impl Failure {
    /// Every failure, in the order of a report's counts.
    pub const ALL: [Self; 10] = [
        Self::NoConnection,
        Self::NoTunnel,
        Self::Certificate,
        Self::Handshake,
        Self::Unanswered,
        Self::Closed,
        Self::Reset,
        Self::NotHttp,
        Self::Surplus,
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
            Self::Reset => "stream_reset",
            Self::NotHttp => "not_http",
            Self::Surplus => "surplus_bytes",
            Self::Timeout => "timeout",
        }
    }
}
