//! The one table of settings. Command line, configuration file, `foxy check` and
//! `docs/configuration.md` all come from it; nothing about a setting is written down twice.

use super::kind::{Area, Kind, Preset, Setting};
use super::rows::{count, size, span, timeout};
use super::{
    admin_rows, caching_rows, connection_rows, dns_rows, file_schemes, intercept_rows, store_rows,
    tls_rows,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// Every setting, in the order of the documentation.
pub static SETTINGS: &[Setting] = &[
    Setting {
        key: "listen",
        flag: Some("listen"),
        area: Area::Network,
        kind: Kind::Address(|w| &mut w.listen),
        default: Preset::Fixed(&["127.0.0.1:3128"]),
        doc: "Where clients connect. Port 0 lets the system choose one, and the start-up message names it.",
    },
    tls_rows::LISTEN_TLS,
    tls_rows::TLS_CERTIFICATE,
    tls_rows::TLS_KEY,
    tls_rows::PROXY_PROTOCOL_FROM,
    tls_rows::FORWARDED_FROM,
    admin_rows::ADMIN,
    admin_rows::ADMIN_HOSTS,
    Setting {
        key: "origin",
        flag: Some("origin"),
        area: Area::Network,
        kind: Kind::Origin(|w| &mut w.origin),
        default: Preset::Nothing("a forward proxy"),
        doc: "Makes foxy a reverse proxy in front of this server. \
              Requests are then answered for the host they name and fetched from here, whatever address it has.",
    },
    tls_rows::ORIGIN_CA,
    tls_rows::ORIGIN_HTTP2,
    dns_rows::NAME_SERVERS,
    Setting {
        key: "workers",
        flag: Some("workers"),
        area: Area::Network,
        kind: Kind::Count { slot: |w| &mut w.workers, at_least: 1, at_most: 1024 },
        default: Preset::Computed(
            "one for each core the process may use, by affinity and control-group quota",
        ),
        doc: "Threads that serve clients.",
    },
    Setting {
        key: "allow-destination",
        flag: Some("allow-destination"),
        area: Area::Access,
        kind: Kind::Networks(|w| &mut w.allow_destination),
        default: Preset::Fixed(&[]),
        doc: "Networks that may be relayed to although they are loopback, link-local, private or otherwise not public. \
              Blocks kept for documentation (192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24, 2001:db8::/32, 3fff::/20) are dialled as public ones are. \
              The address that is dialled decides, not the name that was asked for. \
              Public addresses are allowed, but for those that this machine has itself. \
              An address that a router translates to this machine is not known to be its own.",
    },
    admin_rows::ADMIN_TOKEN_FILE,
    admin_rows::PURGE_FROM,
    Setting {
        key: "connect-ports",
        flag: Some("connect-port"),
        area: Area::Access,
        kind: Kind::Ports(|w| &mut w.connect_ports),
        default: Preset::Fixed(&["443"]),
        doc: "Ports that CONNECT may tunnel to.",
    },
    intercept_rows::INTERCEPT_CA,
    intercept_rows::INTERCEPT_HOSTS,
    store_rows::STORE,
    store_rows::CACHE_DIR,
    store_rows::STORE_SELECTION,
    Setting {
        key: "size",
        flag: Some("size"),
        area: Area::Store,
        kind: size(|w| &mut w.size, 16 * MIB, 64 * TIB),
        default: Preset::Computed(
            "the size the store has; for a new one 10 % of the free disk, at most 10 GiB",
        ),
        doc: "Bytes of disk each store may take. \
              Where the disk does not have them, what the store has taken there already counted in, foxy does not start, \
              unless a store of that size is there already. A `webcosm` store that is given another size keeps what it holds \
              as far as that fits; below about half of its earlier size, and beyond eight times more or less than at first, \
              it begins anew, empty.",
    },
    Setting {
        key: "scheme",
        flag: Some("scheme"),
        area: Area::Store,
        kind: Kind::Scheme(|w| &mut w.scheme),
        default: Preset::Fixed(&["webcosm"]),
        doc: "How objects are laid out on disk.",
    },
    Setting {
        key: "policy",
        flag: Some("policy"),
        area: Area::Store,
        kind: Kind::Policy(|w| &mut w.policy),
        default: Preset::Fixed(&["lru"]),
        doc: "Which record goes when the disk is full. \
              The scheme `stream-packetizer` and those of one file an object ask it; the others have an order of their own, \
              and foxy does not start when a policy is given and no store has a scheme that asks it.",
    },
    Setting {
        key: "device",
        flag: Some("device"),
        area: Area::Store,
        kind: Kind::Choice {
            slot: |w| &mut w.device,
            words: &[
                (
                    "auto",
                    "what the scheme is meant for: ufs and its kin blocking, aufs threads, diskd a helper, all others io_uring where the system allows it, else threads",
                ),
                ("uring", "io_uring, or do not start"),
                ("threads", "a pool of threads that read and write"),
                ("blocking", "the store's own thread, which waits for every operation"),
                ("helper", "a process beside foxy"),
            ],
        },
        default: Preset::Fixed(&["auto"]),
        doc: "How the disk is read and written.",
    },
    store_rows::WRITE_BUDGET,
    file_schemes::RECOVERY,
    file_schemes::UFS_MAPPING,
    file_schemes::AUFS_QUEUE,
    file_schemes::AUFS_WRITES,
    file_schemes::DISKD_Q1,
    file_schemes::DISKD_Q2,
    Setting {
        key: "object-limit",
        flag: Some("object-limit"),
        area: Area::Store,
        kind: size(|w| &mut w.object_limit, KIB, TIB),
        default: Preset::Computed(
            "an eighth of the smallest store, or 64 MiB where that is more, but at most half of the store",
        ),
        doc: "Larger responses are relayed but not stored. A response must also fit the store: a `webcosm` store of 64 MiB takes up to 25 MiB, and one of 1 GiB or more three quarters of its size.",
    },
    caching_rows::NEGATIVE_LIFETIME,
    Setting {
        key: "memory",
        flag: Some("memory"),
        area: Area::Memory,
        kind: size(|w| &mut w.memory, MIB, TIB),
        default: Preset::Computed(
            "an eighth of the memory of the machine or control group, at most 1 GiB",
        ),
        doc: "Bytes of responses, and of parts of large ones, kept in memory, in front of the disk.",
    },
    Setting {
        key: "memory-object-limit",
        flag: None,
        area: Area::Memory,
        kind: size(|w| &mut w.memory_object_limit, KIB, GIB),
        default: Preset::Fixed(&["1M"]),
        doc: "Larger bodies are not kept in memory, but for those parts of bodies above 1 MiB that are asked for again and again.",
    },
    tls_rows::HANDSHAKE,
    timeout(
        "timeouts.client-head",
        &["30s"],
        |w| &mut w.client_head,
        "For a client to send a request's head.",
    ),
    timeout(
        "timeouts.client-idle",
        &["60s"],
        |w| &mut w.client_idle,
        "For a client to send its next request.",
    ),
    timeout(
        "timeouts.client-read",
        &["60s"],
        |w| &mut w.client_read,
        "Between two reads of a request's body.",
    ),
    timeout(
        "timeouts.client-write",
        &["60s"],
        |w| &mut w.client_write,
        "For a client to take more of an answer.",
    ),
    timeout(
        "timeouts.resolve",
        &["10s"],
        |w| &mut w.resolve,
        "To look up an origin server's name.",
    ),
    timeout(
        "timeouts.connect",
        &["10s"],
        |w| &mut w.connect,
        "To connect to an origin server, TLS included.",
    ),
    timeout(
        "timeouts.origin-head",
        &["60s"],
        |w| &mut w.origin_head,
        "For an origin server to begin its answer.",
    ),
    timeout(
        "timeouts.origin-read",
        &["60s"],
        |w| &mut w.origin_read,
        "Between two reads of a response's body.",
    ),
    timeout(
        "timeouts.origin-continue",
        &["1s"],
        |w| &mut w.origin_continue,
        "For an origin server to answer `Expect: 100-continue` before the body is sent anyway.",
    ),
    timeout(
        "timeouts.origin-idle",
        &["60s"],
        |w| &mut w.origin_idle,
        "For a connection to stay unused.",
    ),
    timeout("timeouts.store", &["1s"], |w| &mut w.store_patience, STORE_PATIENCE),
    timeout(
        "timeouts.tunnel-idle",
        &["10m"],
        |w| &mut w.tunnel_idle,
        "For a tunnel to stay silent.",
    ),
    connection_rows::CONNECTIONS,
    connection_rows::CONNECTIONS_PER_CLIENT,
    Setting {
        key: "limits.head-size",
        flag: None,
        area: Area::Limits,
        kind: size(|w| &mut w.head_size, 8 * KIB, MIB),
        default: Preset::Fixed(&["64K"]),
        doc: "The head of a request or response. Longer ones are refused with 431 or 502.",
    },
    count("limits.headers", 16, 10_000, &["256"], |w| &mut w.headers, "Header lines in a head."),
    count(
        "limits.idle-connections",
        0,
        100_000,
        &["1024"],
        |w| &mut w.idle_connections,
        "Unused connections each worker keeps to all origin servers together; those of HTTP/2 count apart.",
    ),
    count(
        "limits.idle-connections-per-origin",
        0,
        100_000,
        &["64"],
        |w| &mut w.idle_connections_per_origin,
        "Unused connections of HTTP/1.1 each worker keeps to one origin server.",
    ),
    Setting {
        key: "access-log",
        flag: Some("access-log"),
        area: Area::Operation,
        kind: Kind::Output(|w| &mut w.access_log),
        default: Preset::Fixed(&["-"]),
        doc: "Where a line is written for each request: a file, `-` for standard output, or `off`. \
              SIGHUP opens the file anew. Lines that cannot be written fast enough are dropped and counted, \
              never waited for.",
    },
    Setting {
        key: "access-log-format",
        flag: Some("access-log-format"),
        area: Area::Operation,
        kind: Kind::Choice {
            slot: |w| &mut w.access_log_format,
            words: &[
                ("squid", "Squid's native format"),
                ("combined", "the Combined format of Apache and nginx"),
                ("json", "one JSON object a line"),
            ],
        },
        default: Preset::Fixed(&["squid"]),
        doc: "How those lines look.",
    },
    Setting {
        key: "log-level",
        flag: Some("log-level"),
        area: Area::Operation,
        kind: Kind::Choice {
            slot: |w| &mut w.log_level,
            words: &[
                ("error", "what stops foxy"),
                ("warning", "also what costs hits"),
                ("info", "also start, stop and what an operator does"),
            ],
        },
        default: Preset::Fixed(&["info"]),
        doc: "Which messages about foxy itself go to standard error.",
    },
    Setting {
        key: "stop-after",
        flag: Some("stop-after"),
        area: Area::Operation,
        kind: span(|w| &mut w.stop_after),
        default: Preset::Fixed(&["10s"]),
        doc: "How long a graceful stop waits for requests in progress. \
              SIGTERM or SIGINT begins it; a second one ends it at once.",
    },
];

const STORE_PATIENCE: &str = "For the store to answer. After that the request goes to the origin server, as if nothing were stored. A large response \
     that is being stored waits as long for a store that is busy, and as long again for each 16 MiB of it.";
