//! Why an origin has no whole answer: named, counted, and said to whoever asked.

use crate::wire::tls::outbound::Obstacle;

/// Why an origin gave no whole answer. The failure is stored and passed on once to each proxy
/// (R121).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The name has no address.
    NoSuchHost,
    /// The name or address is not one that an offline Collector asks.
    NotAllowed,
    /// No connection.
    NoConnection,
    /// No connection within the time limit.
    ConnectTimeout,
    /// The certificate shown is of nobody trusted, or for another name.
    Certificate,
    /// No TLS with what answers.
    Handshake,
    /// A handshake that was not over within the time limit.
    HandshakeTimeout,
    /// Nothing came within the time limit.
    AnswerTimeout,
    /// The connection ended before the head was there.
    Unanswered,
    /// What came is not HTTP.
    NotHttp,
    /// The connection ended within the body.
    ClosedEarly,
    /// Nothing more came of the body within the time limit.
    Hung,
    /// What came within the body is not HTTP.
    BrokenBody,
    /// The body does not fit what bodies are held in.
    NoRoom,
    /// The file that holds bodies cannot be written or read.
    SpoolFailed,
}

impl Failure {
    /// All failures, in the order of the report's counts.
    pub const ALL: [Self; 15] = [
        Self::NoSuchHost,
        Self::NotAllowed,
        Self::NoConnection,
        Self::ConnectTimeout,
        Self::Certificate,
        Self::Handshake,
        Self::HandshakeTimeout,
        Self::AnswerTimeout,
        Self::Unanswered,
        Self::NotHttp,
        Self::ClosedEarly,
        Self::Hung,
        Self::BrokenBody,
        Self::NoRoom,
        Self::SpoolFailed,
    ];

    /// Name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSuchHost => "no_such_host",
            Self::NotAllowed => "not_allowed",
            Self::NoConnection => "no_connection",
            Self::ConnectTimeout => "connect_timeout",
            Self::Certificate => "tls_certificate",
            Self::Handshake => "tls_handshake",
            Self::HandshakeTimeout => "tls_timeout",
            Self::AnswerTimeout => "answer_timeout",
            Self::Unanswered => "unanswered",
            Self::NotHttp => "not_http",
            Self::ClosedEarly => "closed_early",
            Self::Hung => "hung",
            Self::BrokenBody => "broken_body",
            Self::NoRoom => "no_room",
            Self::SpoolFailed => "spool_failed",
        }
    }

    /// Status of the error answer, if no head has been sent.
    pub const fn status(self) -> u16 {
        match self {
            Self::NotAllowed => 403,
            Self::ConnectTimeout | Self::HandshakeTimeout | Self::AnswerTimeout | Self::Hung => 504,
            Self::NoRoom | Self::SpoolFailed => 500,
            Self::NoSuchHost | Self::NoConnection | Self::Unanswered => 502,
            Self::NotHttp | Self::ClosedEarly | Self::BrokenBody => 502,
            Self::Certificate | Self::Handshake => 502,
        }
    }

    /// Error type in `Proxy-Status` (RFC 9209 §2.3).
    pub const fn proxy_status(self) -> &'static str {
        match self {
            Self::NoSuchHost => "dns_error",
            Self::NotAllowed => "destination_ip_prohibited",
            Self::NoConnection => "connection_refused",
            Self::ConnectTimeout | Self::HandshakeTimeout => "connection_timeout",
            Self::Certificate => "tls_certificate_error",
            Self::Handshake => "tls_protocol_error",
            Self::AnswerTimeout | Self::Hung => "http_response_timeout",
            Self::Unanswered => "connection_terminated",
            Self::NotHttp | Self::BrokenBody => "http_protocol_error",
            Self::ClosedEarly => "http_response_incomplete",
            Self::NoRoom => "http_response_body_size",
            Self::SpoolFailed => "proxy_internal_error",
        }
    }

    /// One line for people.
    pub const fn description(self) -> &'static str {
        match self {
            Self::NoSuchHost => "the origin's name has no address",
            Self::NotAllowed => {
                "offline, only loopback and private addresses and localhost are asked; name the synthetic origin with \
                 --origin, or start with --live"
            }
            Self::NoConnection => "the origin takes no connection",
            Self::ConnectTimeout => "the origin took no connection in time",
            Self::Certificate => {
                "the certificate of the origin is of nobody trusted, or for another name; name its authority with --ca"
            }
            Self::Handshake => "the origin speaks no TLS 1.2 or 1.3, or no HTTP/1.1 within",
            Self::HandshakeTimeout => "the origin did not end the TLS handshake in time",
            Self::AnswerTimeout => "the origin answered nothing in time",
            Self::Unanswered => "the origin closed the connection without an answer",
            Self::NotHttp => "what the origin answered is not HTTP",
            Self::ClosedEarly => "the origin closed the connection within the body",
            Self::Hung => "the origin stopped within the body",
            Self::BrokenBody => "the origin broke the framing of its body",
            Self::NoRoom => {
                "the body is larger than what bodies are held in; start with a higher --spool"
            }
            Self::SpoolFailed => {
                "the file that bodies are held in cannot be used; start with --spool-dir elsewhere"
            }
        }
    }
}

impl From<Obstacle> for Failure {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::Certificate => Self::Certificate,
            Obstacle::NoTunnel | Obstacle::NotHttp | Obstacle::Handshake => Self::Handshake,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_place_a_name_of_its_own_and_a_status() {
        assert!(Failure::ALL.iter().enumerate().all(|(at, &reason)| reason as usize == at));
        let names: std::collections::BTreeSet<_> =
            Failure::ALL.iter().map(|reason| reason.name()).collect();
        assert_eq!(names.len(), Failure::ALL.len());
        for failure in Failure::ALL {
            assert!(failure.status() >= 400 && !failure.proxy_status().is_empty(), "{failure:?}");
        }
    }
}
