//! The reasons for which a request of the Collector (common parent proxy) to an origin fails. Each
//! reason has a name for reports, an HTTP status and a text for people.

use crate::named::named;
use crate::wire::tls::outbound::Obstacle;

named! {
    /// The reason why an origin sent no complete answer. The Collector (common parent proxy) stores
    /// the failure like an answer and passes it to each proxy once, without a retry.
    pub enum Failure {
        NoSuchHost = "no_such_host": "the origin's name has no address",
        NotAllowed = "not_allowed":
            "the origin is not on this machine or in a private network, and the Collector is \
             offline; name a synthetic origin with --origin, or start with --live",
        NoConnection = "no_connection": "the origin accepts no connection",
        ConnectTimeout = "connect_timeout": "the origin accepted no connection in time",
        Certificate = "tls_certificate":
            "no trusted authority signed the origin's certificate, or it is for another name; name \
             its authority with --ca",
        Handshake = "tls_handshake": "the origin speaks neither TLS 1.2 nor 1.3, or no HTTP/1.1 \
                                      over TLS",
        HandshakeTimeout = "tls_timeout": "the origin did not end the TLS handshake in time",
        AnswerTimeout = "answer_timeout": "the origin did not answer in time",
        Unanswered = "unanswered": "the origin closed the connection without an answer",
        NotHttp = "not_http": "the origin's answer is not HTTP",
        ClosedEarly = "closed_early": "the origin closed the connection within the body",
        Hung = "hung": "the origin stopped sending within the body",
        BrokenBody = "broken_body": "the origin broke the framing of its body",
        NoRoom = "no_room":
            "the body is larger than the space for bodies; raise --spool",
        SpoolFailed = "spool_failed":
            "the file for bodies cannot be used; name another folder with --spool-dir",
    }
}

impl Failure {
    /// Returns the HTTP status of the error answer. A proxy receives this error answer if the
    /// origin sent no response head.
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

    /// Returns the error type for the `Proxy-Status` field (RFC 9209 §2.3).
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
    fn every_failure_has_an_error_status_and_a_proxy_status() {
        for failure in Failure::ALL {
            assert!(failure.status() >= 400 && !failure.proxy_status().is_empty(), "{failure:?}");
        }
    }
}
