//! How the proxy behaves: limits and waits as values. The binary fills them in from its table of
//! settings.

use crate::core::client_tls::ClientTls;
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
    /// Where clients connect. Port 0 takes a free one.
    pub listen: Vec<SocketAddr>,
    /// Where clients connect over TLS.
    pub listen_tls: Vec<SocketAddr>,
    /// How TLS is spoken there; without it nobody listens there.
    pub client_tls: Option<ClientTls>,
    /// For whom TLS inside CONNECT is ended here. A forward proxy only.
    pub interception: Option<Interception>,
    /// For a client to go through the TLS handshake.
    pub client_handshake: Duration,
    /// Whose connections begin with a PROXY protocol header that says who the client is.
    pub proxy_protocol_from: Vec<Cidr>,
    /// Whose X-Forwarded-For, Forwarded and X-Forwarded-Proto a reverse proxy believes.
    pub forwarded_from: Vec<Cidr>,
    /// Forward or reverse.
    pub mode: Mode,
    /// Threads that serve clients; at least one.
    pub workers: usize,
    /// Bytes of responses, and of parts of large ones, kept in memory.
    pub memory: u64,
    /// Bodies larger than this many bytes are not kept in memory, but for parts of them.
    pub memory_object_limit: u64,
    /// Bodies larger than this many bytes are not stored on disk (LRU-TH, R49).
    pub object_limit: u64,
    /// Seconds for which an answer that says there is nothing is fresh when it says nothing of
    /// that; 0 for none.
    pub negative_lifetime: u64,
    /// From where the cache may be purged without a token.
    pub purge_from: Vec<Cidr>,
    /// What lets anybody purge it, if anything does.
    pub purge_token: Option<Token>,
    /// Where connections may go.
    pub destinations: DestinationPolicy,
    /// Waits and limits of the upstream side.
    pub upstream: UpstreamSettings,
    /// For a client to send a head, from its first byte.
    pub client_head: Duration,
    /// For a client's connection between requests.
    pub client_idle: Duration,
    /// Between two reads of a request's body.
    pub client_read: Duration,
    /// For a client to take more of a response.
    pub client_write: Duration,
    /// For a tunnel through which nothing passes.
    pub tunnel_idle: Duration,
    /// For the store to answer a get; after that it is a miss. An answer that has begun waits ten
    /// times as long.
    pub store_patience: Duration,
    /// Client connections at a time over all workers. For one more, the one that waits longest for
    /// a request ends; where none waits, the one more is answered 503 and closed.
    pub connections: usize,
    /// The same for the connections of one client.
    pub connections_per_client: usize,
    /// Client connections that the process has descriptors for. Where these are fewer, one more is
    /// not refused: clients wait in the listen queue.
    pub descriptors_for_connections: usize,
    /// What of a request's head, trailers and chunks is accepted.
    pub limits: foxy_http::Limits,
    /// Bytes of a request body that are read and dropped, when the answer did not need it, to keep
    /// the connection.
    pub drain_limit: u64,
    /// This proxy's name in Via. Unique to the process, so that a loop is seen.
    pub via_name: String,
    /// How long a graceful stop waits for requests in progress.
    pub stop_after: Duration,
    /// Seed of every random choice.
    pub seed: u64,
    /// Gives memory that a worker has freed back to the system, and says after what time to do so
    /// again.
    pub give_back: Option<fn() -> Duration>,
}

impl ProxySettings {
    /// What the operator decides of caching.
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
