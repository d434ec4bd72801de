//! Settings of the chapter "Limits".

use super::super::kind::{Area, Preset, Setting, count, size};
use foxy_base::ByteSize;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// Connections that no setting goes beyond.
const AT_MOST: usize = 10_000_000;

settings! {
    /// Limits on connections and message heads.
    struct Limits, written as WrittenLimits in limits, chapter Limits;

    connections: given usize {
        key: "limits.connections",
        kind: count, 1, AT_MOST;
        default: Preset::Fixed(&["8192"]),
        doc: "Client connections at a time. \
          For one more, the connection ends that has waited longest for a request. \
          A connection whose head or TLS handshake is not complete waits too. \
          Where a request is at work on every connection, one more is answered 503 and closed.",
    }

    connections_per_client: given usize {
        key: "limits.connections-per-client",
        kind: count, 1, AT_MOST;
        default: Preset::Computed(
        "three quarters of limits.connections, so that an office behind one address has room",
    ),
        doc: "Connections at a time of one client: of an IPv4 address, or of the /64 of an IPv6 \
              address. \
          For one more, the client's own connection ends that has waited longest for a request. \
          Where a request is at work on each, one more is answered 503 and closed. \
          Behind a balancer of `proxy-protocol-from` the address counts that the balancer names.",
    }

    head_size: given ByteSize {
        key: "limits.head-size",
        kind: size, 8 * KIB, MIB;
        default: Preset::Fixed(&["64K"]),
        doc: "The head of a request or response. Longer ones are refused with 431 or 502.",
    }

    headers: given usize {
        key: "limits.headers",
        kind: count, 16, 10_000;
        default: Preset::Fixed(&["256"]),
        doc: "Header lines in a head.",
    }

    idle_connections: given usize {
        key: "limits.idle-connections",
        kind: count, 0, 100_000;
        default: Preset::Fixed(&["1024"]),
        doc: "Unused connections each worker keeps to all origin servers together; those of \
              HTTP/2 count apart.",
    }

    idle_connections_per_origin: given usize {
        key: "limits.idle-connections-per-origin",
        kind: count, 0, 100_000;
        default: Preset::Fixed(&["64"]),
        doc: "Unused connections of HTTP/1.1 each worker keeps to one origin server.",
    }
}
