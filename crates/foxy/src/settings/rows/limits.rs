//! Settings of the chapters "Timeouts" and "Limits".

use super::super::kind::{Kind, Preset, Setting};
use foxy_base::ByteSize;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const MAX_CONNECTIONS: usize = 10_000_000;
const MAX_IDLE_CONNECTIONS: usize = 100_000;

settings! {
    struct Timeouts, written as WrittenTimeouts in timeouts, chapter "Timeouts";

    /// Time limit for the TLS handshake with a client.
    tls_handshake: given Duration = "timeouts.tls-handshake", span, Fixed("10s");

    /// Time limit for a client to send the head of a request.
    client_head: given Duration = "timeouts.client-head", span, Fixed("30s");

    /// Time limit for a client to send its next request on an open connection.
    client_idle: given Duration = "timeouts.client-idle", span, Fixed("60s");

    /// Time limit for a client to send more of a request body.
    client_read: given Duration = "timeouts.client-read", span, Fixed("60s");

    /// Time limit for a client to accept more bytes of a response.
    client_write: given Duration = "timeouts.client-write", span, Fixed("60s");

    /// Time limit to resolve the name of an origin server.
    resolve: given Duration = "timeouts.resolve", span, Fixed("10s");

    /// Time limit to connect to an origin server, including TLS.
    connect: given Duration = "timeouts.connect", span, Fixed("10s");

    /// Time limit for an origin server to start its response.
    origin_head: given Duration = "timeouts.origin-head", span, Fixed("60s");

    /// Time limit for an origin server to send more of a response body.
    origin_read: given Duration = "timeouts.origin-read", span, Fixed("60s");

    /// Time limit for an origin server to answer `Expect: 100-continue`. After this time foxy sends
    /// the request body anyway.
    origin_continue: given Duration = "timeouts.origin-continue", span, Fixed("1s");

    /// How long foxy keeps an unused connection to an origin server open.
    origin_idle: given Duration = "timeouts.origin-idle", span, Fixed("60s");

    /// Time limit for the store to find a response. After it, foxy asks the origin server. While a
    /// response arrives, foxy waits at most this time in total for a busy store. Each MiB stored
    /// gives back a sixteenth of this time. If other clients may read the response from the store,
    /// foxy instead waits up to ten times this time for each MiB.
    store: given Duration = "timeouts.store", span, Fixed("1s");

    /// How long foxy keeps a tunnel without traffic open.
    tunnel_idle: given Duration = "timeouts.tunnel-idle", span, Fixed("10m");
}

settings! {
    struct Limits, written as WrittenLimits in limits, chapter "Limits";

    /// Highest number of open client connections. For a further client, foxy closes an idle
    /// connection (docs/operation.md), or answers 503.
    connections: given usize = "limits.connections", count(1, MAX_CONNECTIONS), Fixed("8192");

    /// Highest number of open connections of a client (an IPv4 address or an IPv6 /64 network).
    /// Above it, foxy closes an idle connection of this client, or answers 503. For a load balancer
    /// of `proxy-protocol-from`, the address in the PROXY header counts.
    connections_per_client: given usize = "limits.connections-per-client",
        count(1, MAX_CONNECTIONS),
        Computed("three quarters of limits.connections");

    /// Largest head of a request or a response. foxy answers a larger request head with 431, and a
    /// larger response head with 502.
    head_size: given ByteSize = "limits.head-size", size(8 * KIB, MIB), Fixed("64K");

    /// Highest number of header lines in the head of a request or a response.
    headers: given usize = "limits.headers", count(16, 10_000), Fixed("256");

    /// Highest number of unused connections of each worker to all origin servers. HTTP/1.1 and
    /// HTTP/2 connections count separately.
    idle_connections: given usize = "limits.idle-connections",
        count(0, MAX_IDLE_CONNECTIONS), Fixed("1024");

    /// Highest number of unused HTTP/1.1 connections of each worker to one origin server.
    idle_connections_per_origin: given usize = "limits.idle-connections-per-origin",
        count(0, MAX_IDLE_CONNECTIONS), Fixed("64");
}
