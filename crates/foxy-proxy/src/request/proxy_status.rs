//! Writes the `Proxy-Status` field (RFC 9209), which explains the proxy's own error answers.

use crate::request::reason::ErrorReason;
use crate::upstream::{
    ConnectError, DestinationRefusal, Http2Error, ParentFailure, ResolveError, TlsError,
    UpstreamError,
};
use foxy_http::DecodeError;

pub(crate) fn value(reason: ErrorReason) -> String {
    format!("foxy; error={}", error_type(reason))
}

/// Returns the error type that RFC 9209 §2.3 registers for the reason.
const fn error_type(reason: ErrorReason) -> &'static str {
    match reason {
        ErrorReason::Malformed(_)
        | ErrorReason::RequestTimeout
        | ErrorReason::PlainOnTls
        | ErrorReason::NotAProxyRequest
        | ErrorReason::UnsupportedScheme
        | ErrorReason::ConnectToReverse
        | ErrorReason::ConnectInside
        | ErrorReason::Misdirected
        | ErrorReason::BadAuthority
        | ErrorReason::TraceHere => "http_request_error",
        ErrorReason::UnknownHost | ErrorReason::UnknownPath => "destination_not_found",
        ErrorReason::Loop => "proxy_loop_detected",
        ErrorReason::OnlyIfCached
        | ErrorReason::TooManyConnections
        | ErrorReason::TooManyOfClient
        | ErrorReason::NoRoomForHead => "proxy_internal_response",
        ErrorReason::CertificateUntrusted
        | ErrorReason::ClientNotAllowed
        | ErrorReason::CredentialsBusy
        | ErrorReason::CredentialsNeeded
        | ErrorReason::DeniedByRule
        | ErrorReason::NotAllowedByRule
        | ErrorReason::RateLimited { .. }
        | ErrorReason::PurgeNotAllowed => "http_request_denied",
        ErrorReason::NotPurged(_) => "proxy_internal_error",
        ErrorReason::Upstream(error) => upstream(error),
    }
}

const fn upstream(error: UpstreamError) -> &'static str {
    match error {
        UpstreamError::Connect(error) => connect(error),
        UpstreamError::NoResponse | UpstreamError::Reset => "connection_terminated",
        UpstreamError::HeadTimeout => "http_response_timeout",
        UpstreamError::BodyTimeout => "connection_read_timeout",
        UpstreamError::BadResponse(DecodeError::TruncatedHead | DecodeError::TruncatedBody) => {
            "http_response_incomplete"
        }
        UpstreamError::BadResponse(_) => "http_protocol_error",
        UpstreamError::RequestBodyBroken => "http_request_error",
        UpstreamError::Http2(error) => http2(error),
    }
}

const fn http2(error: Http2Error) -> &'static str {
    match error {
        Http2Error::Protocol | Http2Error::Flood => "http_protocol_error",
        Http2Error::StreamReset => "http_response_incomplete",
        Http2Error::Refused => "destination_unavailable",
        Http2Error::Crowded => "connection_limit_reached",
    }
}

const fn connect(error: ConnectError) -> &'static str {
    match error {
        ConnectError::Resolve(ResolveError::TimedOut) => "dns_timeout",
        ConnectError::Resolve(
            ResolveError::NoSuchHost
            | ResolveError::ServerFailed
            | ResolveError::BadAnswer
            | ResolveError::TooManyLookups
            | ResolveError::TooManyOfClient,
        ) => "dns_error",
        ConnectError::Forbidden(DestinationRefusal::ConnectPort | DestinationRefusal::PortZero) => {
            "http_request_denied"
        }
        ConnectError::Forbidden(_) => "destination_ip_prohibited",
        ConnectError::TimedOut => "connection_timeout",
        ConnectError::ConnectionRefused => "connection_refused",
        ConnectError::Unreachable => "destination_ip_unroutable",
        ConnectError::Failed => "destination_unavailable",
        ConnectError::OutOfResources => "proxy_internal_error",
        ConnectError::Tls(error) => tls(error),
        ConnectError::Parent(failure) => parent(failure),
    }
}

const fn parent(failure: ParentFailure) -> &'static str {
    match failure {
        ParentFailure::Unreachable | ParentFailure::Refused | ParentFailure::Failed => {
            "destination_unavailable"
        }
        ParentFailure::Tls => "tls_protocol_error",
        ParentFailure::Credentials => "proxy_configuration_error",
        ParentFailure::TimedOut => "http_response_timeout",
        ParentFailure::Loop => "proxy_loop_detected",
    }
}

const fn tls(error: TlsError) -> &'static str {
    match error {
        TlsError::Untrusted
        | TlsError::WrongName
        | TlsError::Expired
        | TlsError::BadCertificate => "tls_certificate_error",
        TlsError::Refused => "tls_alert_received",
        TlsError::TimedOut => "connection_timeout",
        TlsError::Closed | TlsError::Failed => "tls_protocol_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_registered_types() {
        let upstream = |error: UpstreamError| value(ErrorReason::Upstream(error));
        let cases = [
            (value(ErrorReason::Loop), "foxy; error=proxy_loop_detected"),
            (value(ErrorReason::BadAuthority), "foxy; error=http_request_error"),
            (upstream(ConnectError::ConnectionRefused.into()), "foxy; error=connection_refused"),
            (
                upstream(ConnectError::from(ResolveError::NoSuchHost).into()),
                "foxy; error=dns_error",
            ),
            (upstream(ConnectError::from(ResolveError::BadAnswer).into()), "foxy; error=dns_error"),
            (
                upstream(ConnectError::from(ResolveError::TooManyOfClient).into()),
                "foxy; error=dns_error",
            ),
            (
                upstream(ConnectError::from(TlsError::Expired).into()),
                "foxy; error=tls_certificate_error",
            ),
            (upstream(UpstreamError::HeadTimeout), "foxy; error=http_response_timeout"),
            (upstream(DecodeError::TruncatedHead.into()), "foxy; error=http_response_incomplete"),
            (upstream(Http2Error::StreamReset.into()), "foxy; error=http_response_incomplete"),
            (upstream(Http2Error::Crowded.into()), "foxy; error=connection_limit_reached"),
            (upstream(DecodeError::InvalidStatusLine.into()), "foxy; error=http_protocol_error"),
        ];
        for (found, expected) in cases {
            assert_eq!(found, expected);
        }
    }
}
