//! Waits and limits of the upstream side as values. The binary fills them in from its settings.

use crate::upstream::tls::OriginTls;
use std::time::Duration;

/// Limits and waits of one worker's upstream side.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// Wait for DNS with all retries.
    pub resolve_timeout: Duration,
    /// TLS settings and trusted authorities.
    pub tls: OriginTls,
    /// Use of HTTP/2.
    pub http2: OriginHttp2,
    /// Wait for a connection, over all addresses of the origin, with TLS.
    pub connect_timeout: Duration,
    /// Wait for a final response head after the last byte of the request, and for the origin to
    /// take more of the request.
    pub head_timeout: Duration,
    /// Silence within a response body.
    pub body_timeout: Duration,
    /// Wait for the answer to `Expect: 100-continue`, after which the body is sent anyway.
    pub continue_timeout: Duration,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// Idle HTTP/1.1 connections per origin.
    pub idle_per_origin: usize,
    /// Idle connections over all origins. HTTP/2 connections count apart.
    pub idle_total: usize,
    /// Lookups at a time. For one more, the oldest lookup is given up.
    pub lookups: usize,
    /// Lookups at a time for one client. More are refused.
    pub lookups_per_client: usize,
    /// Limits on a response's head, trailers and interim responses.
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

/// Use of HTTP/2 with origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OriginHttp2 {
    /// With origins behind TLS that choose it (ALPN, RFC 7301).
    #[default]
    Auto,
    /// Never.
    Off,
    /// Like `Auto`, and with origins without TLS at once (RFC 9113 §3.3).
    PriorKnowledge,
}
