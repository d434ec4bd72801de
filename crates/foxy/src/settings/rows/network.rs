//! Settings of the chapter "Addresses and threads".

use super::super::kind::{Area, Kind, Preset, Setting};
use super::super::values::OriginUrl;
use foxy_proxy::intercept::HostPattern;
use foxy_proxy::upstream::Cidr;
use std::net::SocketAddr;
use std::path::PathBuf;

settings! {
    struct Network, written as WrittenNetwork in network, chapter Network;

    listen: given SocketAddr {
        key: "listen",
        flag: "listen",
        kind: Kind::Address;
        default: Preset::Fixed(&["127.0.0.1:3128"]),
        doc: "Address where clients connect. With port 0 the system chooses a port, and the \
        start-up \
              message names it.",
    }

    listen_tls: given Option<SocketAddr> {
        key: "listen-tls",
        flag: "listen-tls",
        kind: Kind::AddressOrOff;
        default: Preset::Fixed(&["off"]),
        doc: "Address where clients connect over TLS 1.2 or 1.3, besides `listen`.",
    }

    tls_certificate: given Vec<PathBuf> {
        key: "tls-certificate",
        flag: "tls-certificate",
        kind: Kind::Files;
        default: Preset::Fixed(&[]),
        doc: "Files for `listen-tls`, each with a certificate chain in PEM. A client gets the \
        first \
              certificate for the name it asks for, else the first of all. SIGHUP reads the files \
              anew; open connections go on.",
    }

    tls_key: given Vec<PathBuf> {
        key: "tls-key",
        flag: "tls-key",
        kind: Kind::Files;
        default: Preset::Fixed(&[]),
        doc: "Files with the private keys of `tls-certificate` in PEM, in the same order. foxy \
        does \
              not start if every user may read a key or others may change it; run `chmod 600`.",
    }

    proxy_protocol_from: given Vec<Cidr> {
        key: "proxy-protocol-from",
        flag: "proxy-protocol-from",
        kind: Kind::Networks;
        default: Preset::Fixed(&[]),
        doc: "Networks of balancers that send a PROXY protocol header, version 1 or 2. The header \
              names the client for the log and for `purge-from`. A connection from there without \
              a header is closed. From elsewhere foxy reads no header.",
    }

    forwarded_from: given Vec<Cidr> {
        key: "forwarded-from",
        flag: "forwarded-from",
        kind: Kind::Networks;
        default: Preset::Fixed(&[]),
        doc: "Networks of balancers whose `X-Forwarded-For`, `Forwarded` and `X-Forwarded-Proto` a \
              reverse proxy believes. foxy adds the balancer to the first two, and takes the \
              client's \
              scheme from the third. The balancer must set `X-Forwarded-Proto` on every request \
              and \
              pass `Host` on. From other clients foxy replaces these fields.",
    }

    admin: given Option<SocketAddr> {
        key: "admin",
        flag: "admin",
        kind: Kind::AddressOrOff;
        default: Preset::Fixed(&["127.0.0.1:3129"]),
        doc: "Address of `/metrics`, `/healthz`, `/purge` and `/explain`. Whoever can connect \
        reads \
              the counters; `admin-token-file` protects the last two.",
    }

    admin_hosts: given Vec<HostPattern> {
        key: "admin-hosts",
        flag: "admin-host",
        kind: Kind::Hosts;
        default: Preset::Fixed(&[]),
        doc: "Names that a request to the admin server may have as its `Host`, besides addresses \
        and \
              `localhost`. Other names are refused with 421: a web page could turn its own name to \
              this machine and read the answers.",
    }

    origin: optional OriginUrl {
        key: "origin",
        flag: "origin",
        kind: Kind::Origin;
        default: Preset::Nothing("a forward proxy"),
        doc: "Server that foxy stands in front of as a reverse proxy. foxy answers requests for \
        the \
              host they name, and fetches from this server, whatever its address.",
    }

    origin_ca: given Vec<PathBuf> {
        key: "origin-ca",
        flag: "origin-ca",
        kind: Kind::Files;
        default: Preset::Fixed(&[]),
        doc: "Files in PEM with authorities that may sign certificates of origin servers, besides \
              the system's. SSL_CERT_FILE and SSL_CERT_DIR name the system's, as for OpenSSL.",
    }

    origin_http2: given &'static str {
        key: "origin-http2",
        flag: "origin-http2",
        kind: Kind::choice, &[
            ("auto", "with https origins that choose it in the TLS handshake"),
            ("off", "never"),
            (
                "prior-knowledge",
                "as auto, and with every http origin, without asking; an origin that speaks only \
                 HTTP/1.1 then gives no answer",
            ),
        ];
        default: Preset::Fixed(&["auto"]),
        doc: "Whether foxy speaks HTTP/2 with origin servers. Each worker sends its requests to an \
              origin over one connection, or a few when that is full. Upgrades, such as WebSocket, \
              always use HTTP/1.1.",
    }

    name_servers: defaulted Vec<SocketAddr> {
        key: "name-servers",
        flag: "name-server",
        kind: Kind::NameServers;
        default: Preset::Nothing("those of /etc/resolv.conf"),
        doc: "DNS servers to ask for addresses of origin servers, instead of the system's. The \
        port \
              is 53 unless given. No search list completes names; /etc/hosts still comes first.",
    }

    workers: given usize {
        key: "workers",
        flag: "workers",
        kind: Kind::count, 1, 1024;
        default: Preset::Computed(
            "one for each core that affinity and control-group quota allow",
        ),
        doc: "Threads that serve clients.",
    }
}
