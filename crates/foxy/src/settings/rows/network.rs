//! Settings of the chapter "Addresses and threads".

use super::super::kind::{Area, Kind, Preset, Setting, choice, count};
use super::super::values::OriginUrl;
use foxy_proxy::intercept::HostPattern;
use foxy_proxy::upstream::Cidr;
use std::net::SocketAddr;
use std::path::PathBuf;

settings! {
    /// Addresses and threads.
    struct Network, written as WrittenNetwork in network, chapter Network;

    listen: given SocketAddr {
        key: "listen",
        flag: "listen",
        kind: Kind::Address;
        default: Preset::Fixed(&["127.0.0.1:3128"]),
        doc: "Where clients connect. Port 0 lets the system choose one, and the start-up message \
              names it.",
    }

    listen_tls: given Option<SocketAddr> {
        key: "listen-tls",
        flag: "listen-tls",
        kind: Kind::AddressOrOff;
        default: Preset::Fixed(&["off"]),
        doc: "Where clients connect over TLS, besides `listen`, or `off`. \
          TLS 1.2 and 1.3 are spoken there, with the certificates of `tls-certificate`.",
    }

    tls_certificate: given Vec<PathBuf> {
        key: "tls-certificate",
        flag: "tls-certificate",
        kind: Kind::Files;
        default: Preset::Fixed(&[]),
        doc: "Files for `listen-tls`, each with a certificate in PEM and after it those between \
              it and its authority. \
          A client gets the first one that is for the name it asks for, else the first one of all. \
          SIGHUP reads all files anew; connections that are open go on.",
    }

    tls_key: given Vec<PathBuf> {
        key: "tls-key",
        flag: "tls-key",
        kind: Kind::Files;
        default: Preset::Fixed(&[]),
        doc: "Files with the private keys of `tls-certificate` in PEM, in the same order. \
          foxy does not start where every user may read such a file or others may change it: run \
          `chmod 600` on the file.",
    }

    proxy_protocol_from: given Vec<Cidr> {
        key: "proxy-protocol-from",
        flag: "proxy-protocol-from",
        kind: Kind::Networks;
        default: Preset::Fixed(&[]),
        doc: "Networks of balancers whose connections begin with a PROXY protocol header, \
              version 1 or 2. \
          The client it names is the one that is logged and judged by `purge-from`. \
          A connection from there without such a header is closed; from anywhere else none is \
          read.",
    }

    forwarded_from: given Vec<Cidr> {
        key: "forwarded-from",
        flag: "forwarded-from",
        kind: Kind::Networks;
        default: Preset::Fixed(&[]),
        doc: "Networks of balancers whose `X-Forwarded-For`, `Forwarded` and `X-Forwarded-Proto` \
              a reverse proxy believes. \
          foxy then adds the balancer to the first two, and takes the client's scheme from the third. \
          The balancer must set `X-Forwarded-Proto` on every request and pass `Host` on. \
          From any other client these fields are replaced.",
    }

    admin: given Option<SocketAddr> {
        key: "admin",
        flag: "admin",
        kind: Kind::AddressOrOff;
        default: Preset::Fixed(&["127.0.0.1:3129"]),
        doc: "Where `/metrics`, `/healthz`, `/purge` and `/explain` are served, or `off`. \
          Whoever can connect there can read the counters; `admin-token-file` says who can purge \
          and see what is stored.",
    }

    admin_hosts: given Vec<HostPattern> {
        key: "admin-hosts",
        flag: "admin-host",
        kind: Kind::Hosts;
        default: Preset::Fixed(&[]),
        doc: "Names under which the admin server is asked, besides addresses and `localhost`. \
          A request whose `Host` is another name is refused with 421: \
          a web page could turn a name of its own to this machine and read the answers.",
    }

    origin: optional OriginUrl {
        key: "origin",
        flag: "origin",
        kind: Kind::Origin;
        default: Preset::Nothing("a forward proxy"),
        doc: "Makes foxy a reverse proxy in front of this server. \
              Requests are then answered for the host they name and fetched from here, whatever \
              address it has.",
    }

    origin_ca: given Vec<PathBuf> {
        key: "origin-ca",
        flag: "origin-ca",
        kind: Kind::Files;
        default: Preset::Fixed(&[]),
        doc: "Files with certificates in PEM of authorities that may sign the certificates of \
              origin servers, \
          besides those the system trusts. SSL_CERT_FILE and SSL_CERT_DIR say where the system's \
          are, as they do for OpenSSL.",
    }

    origin_http2: given &'static str {
        key: "origin-http2",
        flag: "origin-http2",
        kind: choice, &[
            (
                "auto",
                "with https origins that choose it in the TLS handshake; all others get HTTP/1.1",
            ),
            ("off", "never"),
            (
                "prior-knowledge",
                "as auto, and with every http origin at once, without asking; one that speaks \
                HTTP/1.1 alone then answers nothing",
            ),
        ];
        default: Preset::Fixed(&["auto"]),
        doc: "Whether HTTP/2 is spoken with origin servers. \
          Each worker then sends what it asks of an origin over one connection, or a few when that is full. \
          Upgrades, such as those of WebSocket, go over HTTP/1.1 whatever is set here.",
    }

    name_servers: defaulted Vec<SocketAddr> {
        key: "name-servers",
        flag: "name-server",
        kind: Kind::NameServers;
        default: Preset::Nothing("those of /etc/resolv.conf"),
        doc: "DNS servers that are asked for the addresses of origin servers, instead of the \
              system's. \
          Port 53 unless another is named. Names are then completed by no search list; \
          /etc/hosts still comes first.",
    }

    workers: given usize {
        key: "workers",
        flag: "workers",
        kind: count, 1, 1024;
        default: Preset::Computed(
            "one for each core the process may use, by affinity and control-group quota",
        ),
        doc: "Threads that serve clients.",
    }
}
