//! Timeouts and limits for connections to origins. The `foxy` program sets them from its
//! configuration.

use crate::upstream::parents::Parents;
use crate::upstream::tls::OriginTls;
use std::sync::Arc;
use std::time::Duration;

/// Timeouts and limits of one worker's connections to origins.
#[derive(Clone, Debug)]
pub struct UpstreamSettings {
    /// Time limit for resolving a name, including all retries.
    pub resolve_timeout: Duration,
    /// TLS settings and trusted certificate authorities.
    pub tls: OriginTls,
    /// Tells when the proxy uses HTTP/2 with origins.
    pub http2: OriginHttp2,
    /// Parent proxies through which the proxy reaches origins.
    pub parents: Option<Arc<Parents>>,
    /// Time limit for connecting, over all addresses of the origin, including TLS. For a tunnel
    /// through a parent proxy, the limit applies to the parent's answer and to TLS separately.
    pub connect_timeout: Duration,
    /// Time limit for a final response head, counted from the last byte of the request. The same
    /// limit applies while the origin reads no more of the request.
    pub head_timeout: Duration,
    /// Longest time during which no byte of a response body arrives.
    pub body_timeout: Duration,
    /// Time limit for the answer to `Expect: 100-continue`. After this time, the body is sent
    /// anyway.
    pub continue_timeout: Duration,
    /// Time for which an idle connection is kept.
    pub idle_timeout: Duration,
    /// Largest number of idle HTTP/1.1 connections per origin.
    pub idle_per_origin: usize,
    /// Largest number of idle connections over all origins. HTTP/1.1 and HTTP/2 connections are
    /// counted separately.
    pub idle_total: usize,
    /// Largest number of name look-ups at a time. If another look-up starts, the oldest look-up is
    /// abandoned.
    pub lookups: usize,
    /// Largest number of name look-ups at a time for one client. More look-ups are refused.
    pub lookups_per_client: usize,
    /// Limits for a response's head, trailers and interim responses.
    pub limits: foxy_http::Limits,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            tls: OriginTls::default(),
            http2: OriginHttp2::default(),
            parents: None,
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

/// Tells when the proxy uses HTTP/2 with origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OriginHttp2 {
    /// The proxy uses HTTP/2 with origins behind TLS that choose it (ALPN, RFC 7301).
    #[default]
    Auto,
    /// The proxy never uses HTTP/2 with origins.
    Off,
    /// The proxy uses HTTP/2 as with `Auto`, and also with origins without TLS. Without TLS, the
    /// proxy starts with HTTP/2 immediately (RFC 9113 §3.3).
    PriorKnowledge,
}
