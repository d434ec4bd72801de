//! Timeouts and limits for connections to origins. The `foxy` program sets them from its
//! configuration.

use crate::upstream::fleet::link::FleetLink;
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
    /// Tells with which origins the proxy uses HTTP/2.
    pub http2: OriginHttp2,
    /// Parent proxies through which the proxy reaches origins.
    pub parents: Option<Arc<Parents>>,
    /// The other nodes of the fleet, if the proxy is a node of a fleet.
    pub fleet: Option<FleetLink>,
    /// Time limit for connecting, including TLS, for all addresses of the origin together. Through
    /// a parent proxy, the limit applies to the parent's answer to a CONNECT, and again to TLS.
    pub connect_timeout: Duration,
    /// Time limit for the final head of a response, counted from the last byte of the request. The
    /// limit also applies while the origin accepts no more bytes of the request.
    pub head_timeout: Duration,
    /// Longest time during which no byte of a response body arrives.
    pub body_timeout: Duration,
    /// Time limit for the origin's answer to `Expect: 100-continue`. After this time, the proxy
    /// sends the body anyway.
    pub continue_timeout: Duration,
    /// Time for which an idle connection is kept.
    pub idle_timeout: Duration,
    /// Largest number of idle HTTP/1.1 connections per origin.
    pub idle_per_origin: usize,
    /// Largest number of idle connections over all origins. HTTP/1.1 and HTTP/2 connections are
    /// counted separately.
    pub idle_total: usize,
    /// Largest number of name look-ups at the same time. At this limit, a new look-up cancels the
    /// oldest look-up, which then fails.
    pub lookups: usize,
    /// Largest number of name look-ups at the same time for one client. The proxy refuses further
    /// look-ups.
    pub lookups_per_client: usize,
    /// The source address of connections to origins.
    pub source: OriginSource,
    /// Limits for a response's head and trailers, and for its interim responses.
    pub limits: foxy_http::Limits,
}

/// The source address of connections to origins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OriginSource {
    /// An address of the proxy's machine.
    #[default]
    Proxy,
    /// The address of the client, if the origin has an address of the same family. The process
    /// needs the capability CAP_NET_ADMIN, and the network must route the answers to the proxy.
    /// Such connections serve a single client.
    Client,
}

impl Default for UpstreamSettings {
    fn default() -> Self {
        Self {
            tls: OriginTls::default(),
            http2: OriginHttp2::default(),
            parents: None,
            fleet: None,
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
            source: OriginSource::default(),
            limits: foxy_http::Limits::default(),
        }
    }
}

/// Tells with which origins the proxy uses HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OriginHttp2 {
    /// The proxy uses HTTP/2 with an `https` origin if the origin chooses it during the TLS
    /// handshake (ALPN, RFC 7301).
    #[default]
    Auto,
    /// The proxy never uses HTTP/2 with origins.
    Off,
    /// Like `Auto` for origins with TLS. With an origin without TLS, the proxy uses HTTP/2 from the
    /// first byte, and assumes that the origin knows HTTP/2 (RFC 9113 §3.3).
    PriorKnowledge,
}
