//! The settings of how many connections clients may have.

use super::kind::{Area, Kind, Preset, Setting};

/// The most connections.
const AT_MOST: usize = 10_000_000;

/// All clients together.
pub const CONNECTIONS: Setting = Setting {
    key: "limits.connections",
    flag: None,
    area: Area::Limits,
    kind: Kind::Count { slot: |w| &mut w.connections, at_least: 1, at_most: AT_MOST },
    default: Preset::Fixed(&["8192"]),
    doc: "Client connections at a time. \
          For one more, the connection ends that has waited longest for a request. \
          A connection whose head or TLS handshake is not complete waits too. \
          Where a request is at work on every connection, one more is answered 503 and closed.",
};

/// One client.
pub const CONNECTIONS_PER_CLIENT: Setting = Setting {
    key: "limits.connections-per-client",
    flag: None,
    area: Area::Limits,
    kind: Kind::Count { slot: |w| &mut w.connections_per_client, at_least: 1, at_most: AT_MOST },
    default: Preset::Computed(
        "three quarters of limits.connections, so that an office behind one address has room",
    ),
    doc: "Connections at a time of one client: of an IPv4 address, or of the /64 of an IPv6 address. \
          For one more, the client's own connection ends that has waited longest for a request. \
          Where a request is at work on each, one more is answered 503 and closed. \
          Behind a balancer of `proxy-protocol-from` the address counts that the balancer names.",
};

/// The share of one client when none is given.
pub const fn share(connections: usize) -> usize {
    connections - connections / 4
}
