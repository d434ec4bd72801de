//! Limits and waits of the proxy as values. The binary fills them in from its table of settings.

use crate::core::tls::ClientTls;
use crate::core::token::Token;
use crate::intercept::Interception;
use crate::request::mode::Mode;
use crate::upstream::{Cidr, DestinationPolicy, UpstreamSettings};
use foxy_rules::Policy;
use std::net::SocketAddr;
use std::time::Duration;

/// Everything the proxy needs to know before it starts.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// Addresses for plain connections. Port 0 takes a free port.
    pub listen: Vec<SocketAddr>,
    /// Addresses for TLS connections.
    pub listen_tls: Vec<SocketAddr>,
    /// Certificates for `listen_tls`. Without them nothing listens there.
    pub client_tls: Option<ClientTls>,
    /// Hosts whose TLS inside CONNECT ends at the proxy. Forward proxies only.
    pub interception: Option<Interception>,
    /// Time for a client's TLS handshake.
    pub client_handshake: Duration,
    /// Balancers whose connections begin with a PROXY protocol header.
    pub proxy_protocol_from: Vec<Cidr>,
    /// Peers whose X-Forwarded-For, Forwarded and X-Forwarded-Proto a reverse proxy believes.
    pub forwarded_from: Vec<Cidr>,
    /// Forward or reverse.
    pub mode: Mode,
    /// Threads that serve clients, at least one.
    pub workers: usize,
    /// Bytes of memory for responses and for parts of large responses.
    pub memory: u64,
    /// Largest body in bytes that memory keeps whole.
    pub memory_object_limit: u64,
    /// Largest body in bytes that the store keeps (LRU-TH, R49).
    pub object_limit: u64,
    /// Freshness in seconds of negative answers that name none. 0 disables it.
    pub negative_lifetime: u64,
    /// Clients that may purge without a token.
    pub purge_from: Vec<Cidr>,
    /// Token that lets any client purge.
    pub purge_token: Option<Token>,
    /// Policy on addresses and ports that the proxy may connect to.
    pub destinations: DestinationPolicy,
    /// Waits and limits of the upstream side.
    pub upstream: UpstreamSettings,
    /// Time for a client to send a head, from its first byte.
    pub client_head: Duration,
    /// Time that a client's connection may stay without a request.
    pub client_idle: Duration,
    /// Time between two reads of a request's body.
    pub client_read: Duration,
    /// Time for a client to take more of a response.
    pub client_write: Duration,
    /// Time that a tunnel may stay silent.
    pub tunnel_idle: Duration,
    /// Time for the store to answer a get, after which the get is a miss. A response that has begun
    /// waits ten times as long.
    pub store_patience: Duration,
    /// Client connections over all workers. At the limit a new connection replaces the connection
    /// that waits longest for a request. If none waits, the new connection gets a 503 and closes.
    pub connections: usize,
    /// Connections of one client, with the same rule.
    pub connections_per_client: usize,
    /// Client connections that the process has descriptors for. If this limit comes first, new
    /// clients wait in the listen queue instead of getting a 503.
    pub descriptors_for_connections: usize,
    /// Limits on a request's head, trailers and chunks.
    pub limits: foxy_http::Limits,
    /// Bytes of an unneeded request body that are read and dropped to keep the connection.
    pub drain_limit: u64,
    /// Name of the proxy in Via. It must be unique to the process, so that loops are seen.
    pub via_name: String,
    /// Time that a graceful stop waits for requests in progress.
    pub stop_after: Duration,
    /// Seed of every random choice.
    pub seed: u64,
    /// Returns freed memory of a worker to the system. The result is the time until the next call.
    pub give_back: Option<fn() -> Duration>,
}

impl ProxySettings {
    /// Caching policy of the operator.
    pub const fn policy(&self) -> Policy {
        Policy { role: self.mode.role(), negative_lifetime: self.negative_lifetime }
    }
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 3128))],
            listen_tls: Vec::new(),
            client_tls: None,
            interception: None,
            client_handshake: Duration::from_secs(10),
            proxy_protocol_from: Vec::new(),
            forwarded_from: Vec::new(),
            mode: Mode::Forward,
            workers: 1,
            memory: 64 << 20,
            memory_object_limit: 1 << 20,
            object_limit: 64 << 20,
            negative_lifetime: 0,
            purge_from: Vec::new(),
            purge_token: None,
            destinations: DestinationPolicy::default(),
            upstream: UpstreamSettings::default(),
            client_head: Duration::from_secs(30),
            client_idle: Duration::from_secs(60),
            client_read: Duration::from_secs(60),
            client_write: Duration::from_secs(60),
            tunnel_idle: Duration::from_secs(600),
            store_patience: Duration::from_secs(1),
            connections: 8192,
            connections_per_client: 6144,
            descriptors_for_connections: usize::MAX,
            limits: foxy_http::Limits::default(),
            drain_limit: 256 << 10,
            via_name: "foxy".into(),
            stop_after: Duration::from_secs(10),
            seed: 0,
            give_back: None,
        }
    }
}
