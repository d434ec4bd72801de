//! Settings of the chapter "Fleet".

use super::super::fleet::{EngineUrl, member, member_name, member_records};
use super::super::kind::{Kind, Preset, Setting};
use super::super::listen_address::ListenAddress;
use std::path::PathBuf;
use std::time::Duration;

settings! {
    struct FleetChapter, written as WrittenFleetChapter in fleet, chapter "Fleet";

    /// Name of this node among `fleet.members` ([Fleet](fleet.md)).
    node: optional String = "fleet.node" flag "fleet-node",
        text(member_name, "NAME", "a"), Nothing("foxy has no fleet");

    /// All nodes of the fleet: name, URL for other nodes, and weight. Every node needs the same
    /// list. Each node owns a share of the keys in proportion to its weight.
    members: given Vec<String> = "fleet.members" flag "fleet-member",
        texts(member, "NODE", "a https://10.0.0.1:3130 weight=2"), Fixed();

    /// DNS name that gives the members instead of `fleet.members`: `NAME:PORT` for A and AAAA
    /// records, `NAME` for SRV records.
    members_from: optional String = "fleet.members-from" flag "fleet-members-from",
        text(member_records, "NAME", "_fleet._tcp.foxy.example"), Nothing("`fleet.members`");

    /// URL of the Redis, Valkey or NATS server that puts the purges of all nodes into one sequence,
    /// such as `nats://HOST`. `rediss://` and `tls://` mean TLS.
    engine: optional EngineUrl = "fleet.engine" flag "fleet-engine",
        Engine, Nothing("purges affect one node");

    /// File with `USER:PASSWORD` or `:PASSWORD`, if `fleet.engine` contains no password. foxy reads
    /// it like `parent-credentials-file`.
    engine_credentials_file: optional PathBuf = "fleet.engine-credentials-file"
        flag "fleet-engine-credentials-file", File, Nothing("only the password in `fleet.engine`");

    /// Addresses where other nodes connect.
    listen: given Vec<ListenAddress> = "fleet.listen" flag "fleet-listen", Listen, Fixed("off");

    /// File in PEM with this node's certificate chain. The certificate's DNS name must be the
    /// `fleet.node` name.
    certificate: optional PathBuf = "fleet.certificate" flag "fleet-certificate",
        File, Nothing("none; `fleet.node` needs this file");

    /// File in PEM with the private key of `fleet.certificate`.
    key: optional PathBuf = "fleet.key" flag "fleet-key",
        File, Nothing("none; `fleet.node` needs this file");

    /// Files in PEM with the certificate authorities of the nodes' certificates.
    ca: given Vec<PathBuf> = "fleet.ca" flag "fleet-ca", Files, Fixed();

    /// Requests per second that the owner of a URL receives for it from other nodes. At this rate
    /// or above, these nodes keep copies of the response in memory.
    hot_rate: given usize = "fleet.hot-rate" flag "fleet-hot-rate",
        count(1, 1_000_000), Fixed("50");

    /// Time in which a node that starts takes over its share of the cache keys, in ten steps. After
    /// `foxy upgrade`, the node keeps its whole share.
    ramp: given Duration = "fleet.ramp" flag "fleet-ramp", span_from_zero, Fixed("1m");

    /// For this time after its start, a node that lacks a response asks the former owner of the
    /// cache key before the origin.
    former_owner: given Duration = "fleet.former-owner" flag "fleet-former-owner",
        span_from_zero, Fixed("10m");
}
