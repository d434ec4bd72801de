//! Settings of the chapter "Timeouts".

use super::super::kind::{Area, Preset, Setting, span};
use std::time::Duration;

settings! {
    /// Longest times to wait.
    struct Timeouts, written as WrittenTimeouts in timeouts, chapter Timeouts;

    tls_handshake: given Duration {
        key: "timeouts.tls-handshake",
        kind: span;
        default: Preset::Fixed(&["10s"]),
        doc: "For a client to go through the TLS handshake.",
    }

    client_head: given Duration {
        key: "timeouts.client-head",
        kind: span;
        default: Preset::Fixed(&["30s"]),
        doc: "For a client to send a request's head.",
    }

    client_idle: given Duration {
        key: "timeouts.client-idle",
        kind: span;
        default: Preset::Fixed(&["60s"]),
        doc: "For a client to send its next request.",
    }

    client_read: given Duration {
        key: "timeouts.client-read",
        kind: span;
        default: Preset::Fixed(&["60s"]),
        doc: "Between two reads of a request's body.",
    }

    client_write: given Duration {
        key: "timeouts.client-write",
        kind: span;
        default: Preset::Fixed(&["60s"]),
        doc: "For a client to take more of an answer.",
    }

    resolve: given Duration {
        key: "timeouts.resolve",
        kind: span;
        default: Preset::Fixed(&["10s"]),
        doc: "To look up an origin server's name.",
    }

    connect: given Duration {
        key: "timeouts.connect",
        kind: span;
        default: Preset::Fixed(&["10s"]),
        doc: "To connect to an origin server, TLS included.",
    }

    origin_head: given Duration {
        key: "timeouts.origin-head",
        kind: span;
        default: Preset::Fixed(&["60s"]),
        doc: "For an origin server to begin its answer.",
    }

    origin_read: given Duration {
        key: "timeouts.origin-read",
        kind: span;
        default: Preset::Fixed(&["60s"]),
        doc: "Between two reads of a response's body.",
    }

    origin_continue: given Duration {
        key: "timeouts.origin-continue",
        kind: span;
        default: Preset::Fixed(&["1s"]),
        doc: "For an origin server to answer `Expect: 100-continue` before the body is sent \
              anyway.",
    }

    origin_idle: given Duration {
        key: "timeouts.origin-idle",
        kind: span;
        default: Preset::Fixed(&["60s"]),
        doc: "For a connection to stay unused.",
    }

    store: given Duration {
        key: "timeouts.store",
        kind: span;
        default: Preset::Fixed(&["1s"]),
        doc: "For the store to answer. After that the request goes to the origin server, as if \
              nothing were stored. A large response \
     that is being stored waits as long for a store that is busy, and as long again for each 16 \
     MiB of it.",
    }

    tunnel_idle: given Duration {
        key: "timeouts.tunnel-idle",
        kind: span;
        default: Preset::Fixed(&["10m"]),
        doc: "For a tunnel to stay silent.",
    }
}
