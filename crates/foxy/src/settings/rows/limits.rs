//! Settings of the chapters "Timeouts" and "Limits".

use super::super::kind::{Area, Kind, Preset, Setting};
use foxy_base::ByteSize;
use std::time::Duration;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const MAX_CONNECTIONS: usize = 10_000_000;
const MAX_IDLE_CONNECTIONS: usize = 100_000;

settings! {
    struct Timeouts, written as WrittenTimeouts in timeouts, chapter Timeouts;

    tls_handshake: given Duration {
        key: "timeouts.tls-handshake",
        kind: Kind::span;
        default: Preset::Fixed(&["10s"]),
        doc: "Time for the TLS handshake of a client.",
    }

    client_head: given Duration {
        key: "timeouts.client-head",
        kind: Kind::span;
        default: Preset::Fixed(&["30s"]),
        doc: "Time for a client to send a request's head.",
    }

    client_idle: given Duration {
        key: "timeouts.client-idle",
        kind: Kind::span;
        default: Preset::Fixed(&["60s"]),
        doc: "Time for a client to send its next request.",
    }

    client_read: given Duration {
        key: "timeouts.client-read",
        kind: Kind::span;
        default: Preset::Fixed(&["60s"]),
        doc: "Time between two reads of a request's body.",
    }

    client_write: given Duration {
        key: "timeouts.client-write",
        kind: Kind::span;
        default: Preset::Fixed(&["60s"]),
        doc: "Time for a client to take more of an answer.",
    }

    resolve: given Duration {
        key: "timeouts.resolve",
        kind: Kind::span;
        default: Preset::Fixed(&["10s"]),
        doc: "Time to look up an origin server's name.",
    }

    connect: given Duration {
        key: "timeouts.connect",
        kind: Kind::span;
        default: Preset::Fixed(&["10s"]),
        doc: "Time to connect to an origin server, TLS included.",
    }

    origin_head: given Duration {
        key: "timeouts.origin-head",
        kind: Kind::span;
        default: Preset::Fixed(&["60s"]),
        doc: "Time for an origin server to begin its answer.",
    }

    origin_read: given Duration {
        key: "timeouts.origin-read",
        kind: Kind::span;
        default: Preset::Fixed(&["60s"]),
        doc: "Time between two reads of a response's body.",
    }

    origin_continue: given Duration {
        key: "timeouts.origin-continue",
        kind: Kind::span;
        default: Preset::Fixed(&["1s"]),
        doc: "Time for an origin server to answer `Expect: 100-continue`. Then foxy sends the \
        body anyway.",
    }

    origin_idle: given Duration {
        key: "timeouts.origin-idle",
        kind: Kind::span;
        default: Preset::Fixed(&["60s"]),
        doc: "Time for an unused connection to an origin server.",
    }

    store: given Duration {
        key: "timeouts.store",
        kind: Kind::span;
        default: Preset::Fixed(&["1s"]),
        doc: "Time for the store to answer. Then the request goes to the origin server. A large \
        response \
              that is being stored waits as long for a busy store, and as long again for each 16 \
              MiB.",
    }

    tunnel_idle: given Duration {
        key: "timeouts.tunnel-idle",
        kind: Kind::span;
        default: Preset::Fixed(&["10m"]),
        doc: "Time for a silent tunnel.",
    }
}

settings! {
    struct Limits, written as WrittenLimits in limits, chapter Limits;

    connections: given usize {
        key: "limits.connections",
        kind: Kind::count, 1, MAX_CONNECTIONS;
        default: Preset::Fixed(&["8192"]),
        doc: "Client connections at a time. A further connection ends the one that has waited \
        longest \
              for a request, a head or a TLS handshake. If every connection has a request at \
              work, the \
              further one is answered 503 and closed.",
    }

    connections_per_client: given usize {
        key: "limits.connections-per-client",
        kind: Kind::count, 1, MAX_CONNECTIONS;
        default: Preset::Computed(
            "three quarters of limits.connections, so that an office behind one address has room",
        ),
        doc: "Connections at a time from one IPv4 address or IPv6 /64. A further connection ends \
        one \
              of the same client, as above. Behind a balancer of `proxy-protocol-from` the address \
              that it names counts.",
    }

    head_size: given ByteSize {
        key: "limits.head-size",
        kind: Kind::size, 8 * KIB, MIB;
        default: Preset::Fixed(&["64K"]),
        doc: "Bytes of a request's or response's head. Longer heads are refused with 431 or 502.",
    }

    headers: given usize {
        key: "limits.headers",
        kind: Kind::count, 16, 10_000;
        default: Preset::Fixed(&["256"]),
        doc: "Header lines in a head.",
    }

    idle_connections: given usize {
        key: "limits.idle-connections",
        kind: Kind::count, 0, MAX_IDLE_CONNECTIONS;
        default: Preset::Fixed(&["1024"]),
        doc: "Unused connections of each worker to all origin servers, besides those of HTTP/2.",
    }

    idle_connections_per_origin: given usize {
        key: "limits.idle-connections-per-origin",
        kind: Kind::count, 0, MAX_IDLE_CONNECTIONS;
        default: Preset::Fixed(&["64"]),
        doc: "Unused HTTP/1.1 connections of each worker to one origin server.",
    }
}
