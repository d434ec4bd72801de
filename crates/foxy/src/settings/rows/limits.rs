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

    /// Time for the TLS handshake of a client.
    tls_handshake: given Duration = "timeouts.tls-handshake", span, Fixed("10s");

    /// Time for a client to send a request's head.
    client_head: given Duration = "timeouts.client-head", span, Fixed("30s");

    /// Time for a client to send its next request.
    client_idle: given Duration = "timeouts.client-idle", span, Fixed("60s");

    /// Time between two reads of a request's body.
    client_read: given Duration = "timeouts.client-read", span, Fixed("60s");

    /// Time for a client to take more of an answer.
    client_write: given Duration = "timeouts.client-write", span, Fixed("60s");

    /// Time to look up an origin server's name.
    resolve: given Duration = "timeouts.resolve", span, Fixed("10s");

    /// Time to connect to an origin server, TLS included.
    connect: given Duration = "timeouts.connect", span, Fixed("10s");

    /// Time for an origin server to begin its answer.
    origin_head: given Duration = "timeouts.origin-head", span, Fixed("60s");

    /// Time between two reads of a response's body.
    origin_read: given Duration = "timeouts.origin-read", span, Fixed("60s");

    /// Time for an origin server to answer `Expect: 100-continue`. Then foxy sends the body anyway.
    origin_continue: given Duration = "timeouts.origin-continue", span, Fixed("1s");

    /// Time for an unused connection to an origin server.
    origin_idle: given Duration = "timeouts.origin-idle", span, Fixed("60s");

    /// Time for the store to answer. Then the request goes to the origin server. A large response
    /// that is being stored waits as long for a busy store, and as long again for each 16 MiB.
    store: given Duration = "timeouts.store", span, Fixed("1s");

    /// Time for a silent tunnel.
    tunnel_idle: given Duration = "timeouts.tunnel-idle", span, Fixed("10m");
}

settings! {
    struct Limits, written as WrittenLimits in limits, chapter "Limits";

    /// Client connections at a time. A further connection ends the one that has waited longest for
    /// a request, a head or a TLS handshake. If every connection has a request at work, the further
    /// one is answered 503 and closed.
    connections: given usize = "limits.connections", count(1, MAX_CONNECTIONS), Fixed("8192");

    /// Connections at a time from one IPv4 address or IPv6 /64. A further connection ends one of
    /// the same client, as above. Behind a balancer of `proxy-protocol-from` the address that it
    /// names counts.
    connections_per_client: given usize = "limits.connections-per-client",
        count(1, MAX_CONNECTIONS),
        Computed("three quarters of limits.connections");

    /// Bytes of a request's or response's head. Longer heads are refused with 431 or 502.
    head_size: given ByteSize = "limits.head-size", size(8 * KIB, MIB), Fixed("64K");

    /// Header lines in a head.
    headers: given usize = "limits.headers", count(16, 10_000), Fixed("256");

    /// Unused connections of each worker to all origin servers, besides those of HTTP/2.
    idle_connections: given usize = "limits.idle-connections",
        count(0, MAX_IDLE_CONNECTIONS), Fixed("1024");

    /// Unused HTTP/1.1 connections of each worker to one origin server.
    idle_connections_per_origin: given usize = "limits.idle-connections-per-origin",
        count(0, MAX_IDLE_CONNECTIONS), Fixed("64");
}
