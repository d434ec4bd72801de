//! How long the upstream side waits and how much it keeps. Values only: the binary reads them from
//! its settings.

use crate::upstream::http2::OriginHttp2;
use crate::upstream::tls::OriginTls;
use std::time::Duration;

/// Limits and waits of the upstream side of one worker.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// The longest wait for DNS, all retries of the lookup included.
    pub resolve_timeout: Duration,
    /// How TLS is spoken, and whose certificates are trusted.
    pub tls: OriginTls,
    /// With whom HTTP/2 is spoken.
    pub http2: OriginHttp2,
    /// The longest wait for a connection, all addresses of the origin and TLS included.
    pub connect_timeout: Duration,
    /// The longest wait for a final response head after the last byte of the request went out, and
    /// for the origin to take more of the request.
    pub head_timeout: Duration,
    /// The longest silence within a response body.
    pub body_timeout: Duration,
    /// How long an origin may take to answer `Expect: 100-continue` before the body is sent anyway.
    pub continue_timeout: Duration,
    /// How long a connection is kept for the next request.
    pub idle_timeout: Duration,
    /// Connections of HTTP/1.1 kept to one origin.
    pub idle_per_origin: usize,
    /// Connections kept to all origins together; those of HTTP/2 are counted apart.
    pub idle_total: usize,
    /// Names that are looked up at the same time. For one more, the look-up that began first is
    /// given up.
    pub lookups: usize,
    /// Names that are looked up at the same time for one client; more are refused.
    pub lookups_per_client: usize,
    /// What of a response's head, trailers and interim responses is accepted.
    pub limits: foxy_http::Limits,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            tls: OriginTls::default(),
            http2: OriginHttp2::default(),
            resolve_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            head_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(60),
            continue_timeout: Duration::from_secs(1),
            idle_timeout: Duration::from_secs(60),
            idle_per_origin: 64,
            idle_total: 1024,
            lookups: 512,
            lookups_per_client: 128,
            limits: foxy_http::Limits::default(),
        }
    }
}
