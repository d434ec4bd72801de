//! Rows of the table of settings about what surrounds HTTP: the PROXY protocol, TLS with clients,
//! and whose certificates of origin servers are trusted.

use super::kind::{Area, Kind, Preset, Setting};
use super::rows::timeout;

/// Where clients connect over TLS.
pub const LISTEN_TLS: Setting = Setting {
    key: "listen-tls",
    flag: Some("listen-tls"),
    area: Area::Network,
    kind: Kind::AddressOrOff(|w| &mut w.listen_tls),
    default: Preset::Fixed(&["off"]),
    doc: "Where clients connect over TLS, besides `listen`, or `off`. \
          TLS 1.2 and 1.3 are spoken there, with the certificates of `tls-certificate`.",
};

/// With which certificates.
pub const TLS_CERTIFICATE: Setting = Setting {
    key: "tls-certificate",
    flag: Some("tls-certificate"),
    area: Area::Network,
    kind: Kind::Files(|w| &mut w.tls_certificate),
    default: Preset::Fixed(&[]),
    doc: "Files for `listen-tls`, each with a certificate in PEM and after it those between it and its authority. \
          A client gets the first one that is for the name it asks for, else the first one of all. \
          SIGHUP reads all files anew; connections that are open go on.",
};

/// And their keys.
pub const TLS_KEY: Setting = Setting {
    key: "tls-key",
    flag: Some("tls-key"),
    area: Area::Network,
    kind: Kind::Files(|w| &mut w.tls_key),
    default: Preset::Fixed(&[]),
    doc: "Files with the private keys of `tls-certificate` in PEM, in the same order. \
          foxy does not start where every user may read such a file or others may change it: run `chmod 600` on the file.",
};

/// Who signs the certificates of origin servers.
pub const ORIGIN_CA: Setting = Setting {
    key: "origin-ca",
    flag: Some("origin-ca"),
    area: Area::Network,
    kind: Kind::Files(|w| &mut w.origin_ca),
    default: Preset::Fixed(&[]),
    doc: "Files with certificates in PEM of authorities that may sign the certificates of origin servers, \
          besides those the system trusts. SSL_CERT_FILE and SSL_CERT_DIR say where the system's are, as they do for OpenSSL.",
};

/// Which version of HTTP is spoken with origin servers.
pub const ORIGIN_HTTP2: Setting = Setting {
    key: "origin-http2",
    flag: Some("origin-http2"),
    area: Area::Network,
    kind: Kind::Choice {
        slot: |w| &mut w.origin_http2,
        words: &[
            (
                "auto",
                "with https origins that choose it in the TLS handshake; all others get HTTP/1.1",
            ),
            ("off", "never"),
            (
                "prior-knowledge",
                "as auto, and with every http origin at once, without asking; one that speaks HTTP/1.1 alone then answers nothing",
            ),
        ],
    },
    default: Preset::Fixed(&["auto"]),
    doc: "Whether HTTP/2 is spoken with origin servers. \
          Each worker then sends what it asks of an origin over one connection, or a few when that is full. \
          Upgrades, such as those of WebSocket, go over HTTP/1.1 whatever is set here.",
};

/// Who speaks for clients.
pub const PROXY_PROTOCOL_FROM: Setting = Setting {
    key: "proxy-protocol-from",
    flag: Some("proxy-protocol-from"),
    area: Area::Network,
    kind: Kind::Networks(|w| &mut w.proxy_protocol_from),
    default: Preset::Fixed(&[]),
    doc: "Networks of balancers whose connections begin with a PROXY protocol header, version 1 or 2. \
          The client it names is the one that is logged and judged by `purge-from`. \
          A connection from there without such a header is closed; from anywhere else none is read.",
};

/// Who says over what clients came.
pub const FORWARDED_FROM: Setting = Setting {
    key: "forwarded-from",
    flag: Some("forwarded-from"),
    area: Area::Network,
    kind: Kind::Networks(|w| &mut w.forwarded_from),
    default: Preset::Fixed(&[]),
    doc: "Networks of balancers whose `X-Forwarded-For`, `Forwarded` and `X-Forwarded-Proto` a reverse proxy believes. \
          foxy then adds the balancer to the first two, and takes the client's scheme from the third. \
          The balancer must set `X-Forwarded-Proto` on every request and pass `Host` on. \
          From any other client these fields are replaced.",
};

/// How long a handshake may take.
pub const HANDSHAKE: Setting = timeout(
    "timeouts.tls-handshake",
    &["10s"],
    |w| &mut w.tls_handshake,
    "For a client to go through the TLS handshake.",
);
