//! Limits and timeouts of the proxy. The `foxy` program sets them from its configuration.

use crate::core::live::Live;
use crate::core::rules::{Policies, RulesInForce};
use crate::core::tls::ClientTls;
use crate::core::token::Token;
use crate::core::users::UserBook;
use crate::intercept::Interception;
use crate::request::auto_config::AutoConfig;
use crate::request::mode::Mode;
use crate::upstream::{DestinationPolicy, UpstreamSettings};
use foxy_base::Cidr;
use foxy_rules::coding::Compression;
use std::net::SocketAddr;
use std::time::Duration;

/// All settings that the proxy needs to start.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// Addresses for connections without TLS. Port 0 means any free port.
    pub listen: Vec<SocketAddr>,
    /// Addresses for connections with TLS.
    pub listen_tls: Vec<SocketAddr>,
    /// Addresses for connections that rules of the kernel direct to the proxy.
    pub listen_transparent: Vec<SocketAddr>,
    /// Addresses for connections of other nodes of the fleet.
    pub listen_nodes: Vec<SocketAddr>,
    /// Certificate for `listen_nodes`, and the authorities of other nodes.
    pub node_tls: Option<ClientTls>,
    /// The name of this cache in `Cache-Status`.
    pub cache_name: &'static str,
    /// How the kernel's rules direct connections of `listen_transparent`. True: they replace the
    /// connection's destination by the proxy's address (REDIRECT). False: they leave the
    /// destination as it is (TPROXY), and the process needs the capability CAP_NET_ADMIN.
    pub is_redirected: bool,
    /// Certificates for `listen_tls`. Without certificates, the proxy does not listen on these
    /// addresses.
    pub client_tls: Option<ClientTls>,
    /// Hosts whose TLS inside a CONNECT the proxy decrypts. Only a forward proxy uses this setting.
    pub interception: Option<Interception>,
    /// Time limit for a client's TLS handshake.
    pub client_handshake: Duration,
    /// Load balancers whose connections begin with a PROXY protocol header.
    pub proxy_protocol_from: Vec<Cidr>,
    /// Peers that a reverse proxy trusts to send X-Forwarded-For, Forwarded and X-Forwarded-Proto.
    pub forwarded_from: Vec<Cidr>,
    /// Whether origins receive the id of a request in `X-Request-Id`.
    pub sends_request_id: bool,
    /// Which answers have a `Server-Timing` field.
    pub server_timing: ServerTiming,
    /// Forward proxy or reverse proxy.
    pub mode: Mode,
    /// The PAC file that a forward proxy serves.
    pub auto_config: Option<AutoConfig>,
    /// Number of threads that serve clients, at least one.
    pub workers: usize,
    /// Memory in bytes for responses and for parts of large responses.
    pub memory: u64,
    /// Size in bytes of the largest body that memory stores whole.
    pub memory_object_limit: u64,
    /// Size in bytes of the largest body that the store accepts. The limit keeps one large body
    /// from displacing many small bodies.
    pub object_limit: u64,
    /// Time in seconds for which a negative answer, such as a 404, is fresh if the answer itself
    /// gives no lifetime. 0 disables the caching of such answers.
    pub negative_lifetime: Live<u64>,
    /// Responses that the proxy compresses.
    pub compression: Compression,
    /// Addresses of the clients that may use the proxy. Every client may use it if the list is
    /// empty.
    pub allow_client: Live<Vec<Cidr>>,
    /// The operator's rules.
    pub rules: RulesInForce,
    /// The users of a forward proxy. With users, it serves only requests of users.
    pub users: Live<Option<UserBook>>,
    /// Addresses of clients that may purge without a token.
    pub purge_from: Live<Vec<Cidr>>,
    /// The token with which any client may purge.
    pub purge_token: Option<Token>,
    /// Addresses and ports to which the proxy may connect.
    pub destinations: DestinationPolicy,
    /// Timeouts and limits for connections to origins.
    pub upstream: UpstreamSettings,
    /// Time limit for a client to send a request head, counted from its first byte.
    pub client_head: Duration,
    /// Longest time for which a client's connection may stay open without a request.
    pub client_idle: Duration,
    /// Longest time between two reads of a request body.
    pub client_read: Duration,
    /// Longest time during which a client accepts no bytes of its answer.
    pub client_write: Duration,
    /// Longest time for which a tunnel may transfer nothing.
    pub tunnel_idle: Duration,
    /// Time limit for a read from the store. After this time, the read counts as a miss. If the
    /// proxy has already begun to send the answer, it waits ten times as long for the rest of the
    /// body.
    pub store_patience: Duration,
    /// Largest number of client connections over all workers. At the limit, a new connection
    /// replaces the connection that has been idle longest. If no connection is idle, the new
    /// connection is closed. Without TLS, it first receives a 503.
    pub connections: usize,
    /// Largest number of connections of one client over all workers. At the limit, the client's new
    /// connection replaces the client's connection that has been idle longest. If none of the
    /// client's connections is idle, the new connection is refused.
    pub connections_per_client: usize,
    /// Number of client connections for which the process has file descriptors. If this limit is
    /// lower than `connections`, new clients wait in the listen queue instead of receiving a 503.
    pub descriptors_for_connections: usize,
    /// Limits for the head, trailers and chunks of a request.
    pub limits: foxy_http::Limits,
    /// The answers to some requests, such as refused requests, do not need the request body. The
    /// proxy then reads and drops up to this many bytes of the body, so that the connection can
    /// stay open. If the body is longer, the proxy closes the connection.
    pub drain_limit: u64,
    /// The proxy's name in the Via header. Each proxy process needs a unique name: a request whose
    /// Via contains the own name has run in a loop.
    pub via_name: String,
    /// Longest time for which a graceful stop waits for requests in progress.
    pub stop_after: Duration,
    /// The seed of the cache's random numbers.
    pub seed: u64,
    /// Function that returns freed memory of a worker's thread to the operating system. The
    /// function returns the time until its next call.
    pub give_back: Option<fn() -> Duration>,
}

/// The answers that have a `Server-Timing` field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerTiming {
    /// Answers to clients that may purge and send `Foxy-Explain: timing`.
    #[default]
    Asked,
    /// All answers.
    Always,
}

impl ProxySettings {
    /// Returns the caching policies that the operator has set.
    pub fn policies(&self) -> Policies {
        Policies { negative_lifetime: self.negative_lifetime.clone(), rules: self.rules.clone() }
    }
}

impl Default for ProxySettings {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from(([127, 0, 0, 1], 3128))],
            listen_tls: Vec::new(),
            listen_transparent: Vec::new(),
            listen_nodes: Vec::new(),
            node_tls: None,
            cache_name: "foxy",
            is_redirected: false,
            client_tls: None,
            interception: None,
            client_handshake: Duration::from_secs(10),
            proxy_protocol_from: Vec::new(),
            forwarded_from: Vec::new(),
            sends_request_id: false,
            server_timing: ServerTiming::default(),
            mode: Mode::Forward,
            auto_config: None,
            workers: 1,
            memory: 64 << 20,
            memory_object_limit: 1 << 20,
            object_limit: 64 << 20,
            negative_lifetime: Live::default(),
            compression: Compression::default(),
            allow_client: Live::default(),
            rules: RulesInForce::default(),
            users: Live::default(),
            purge_from: Live::default(),
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
