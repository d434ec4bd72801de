//! Settings of the chapter "Addresses and threads".

use super::super::kind::{Kind, Preset, Setting};
use super::super::values::OriginUrl;
use foxy_proxy::intercept::HostPattern;
use foxy_proxy::upstream::Cidr;
use std::net::SocketAddr;
use std::path::PathBuf;

settings! {
    struct Network, written as WrittenNetwork in network, chapter "Addresses and threads";

    /// Address where clients connect. With port 0 the system chooses a port, and the start-up
    /// message names it.
    listen: given SocketAddr = "listen" flag "listen", Address, Fixed("127.0.0.1:3128");

    /// Address where clients connect over TLS 1.2 or 1.3, besides `listen`.
    listen_tls: given Option<SocketAddr> = "listen-tls" flag "listen-tls",
        AddressOrOff, Fixed("off");

    /// Files for `listen-tls`, each with a certificate chain in PEM. A client gets the first
    /// certificate for the name it asks for, else the first of all. SIGHUP reads the files anew;
    /// open connections go on.
    tls_certificate: given Vec<PathBuf> = "tls-certificate" flag "tls-certificate", Files, Fixed();

    /// Files with the private keys of `tls-certificate` in PEM, in the same order. foxy does not
    /// start if every user may read a key or others may change it; run `chmod 600`.
    tls_key: given Vec<PathBuf> = "tls-key" flag "tls-key", Files, Fixed();

    /// Networks of balancers that send a PROXY protocol header, version 1 or 2. The header names
    /// the client for the log and for `purge-from`. A connection from there without a header is
    /// closed. From elsewhere foxy reads no header.
    proxy_protocol_from: given Vec<Cidr> = "proxy-protocol-from" flag "proxy-protocol-from",
        Networks, Fixed();

    /// Networks of balancers whose `X-Forwarded-For`, `Forwarded` and `X-Forwarded-Proto` a reverse
    /// proxy believes. foxy adds the balancer to the first two, and takes the client's scheme from
    /// the third. The balancer must set `X-Forwarded-Proto` on every request and pass `Host` on.
    /// From other clients foxy replaces these fields.
    forwarded_from: given Vec<Cidr> = "forwarded-from" flag "forwarded-from", Networks, Fixed();

    /// Address of `/metrics`, `/healthz`, `/purge` and `/explain`. Whoever can connect reads the
    /// counters; `admin-token-file` protects the last two.
    admin: given Option<SocketAddr> = "admin" flag "admin", AddressOrOff, Fixed("127.0.0.1:3129");

    /// Names that a request to the admin server may have as its `Host`, besides addresses and
    /// `localhost`. Other names are refused with 421: a web page could turn its own name to this
    /// machine and read the answers.
    admin_hosts: given Vec<HostPattern> = "admin-hosts" flag "admin-host", Hosts, Fixed();

    /// Server that foxy stands in front of as a reverse proxy. foxy answers requests for the host
    /// they name, and fetches from this server, whatever its address.
    origin: optional OriginUrl = "origin" flag "origin", Origin, Nothing("a forward proxy");

    /// Files in PEM with authorities that may sign certificates of origin servers, besides the
    /// system's. SSL_CERT_FILE and SSL_CERT_DIR name the system's, as for OpenSSL.
    origin_ca: given Vec<PathBuf> = "origin-ca" flag "origin-ca", Files, Fixed();

    /// Whether foxy speaks HTTP/2 with origin servers. Each worker sends its requests to an origin
    /// over one connection, or a few when that is full. Upgrades, such as WebSocket, always use
    /// HTTP/1.1.
    origin_http2: given &'static str = "origin-http2" flag "origin-http2", choice(&[
        ("auto", "with https origins that choose it in the TLS handshake"),
        ("off", "never"),
        (
            "prior-knowledge",
            "as auto, and with every http origin, without asking; an origin that speaks only \
             HTTP/1.1 then gives no answer",
        ),
    ]), Fixed("auto");

    /// DNS servers to ask for addresses of origin servers, instead of the system's. The port is 53
    /// unless given. No search list completes names; /etc/hosts still comes first.
    name_servers: defaulted Vec<SocketAddr> = "name-servers" flag "name-server",
        NameServers, Nothing("those of /etc/resolv.conf");

    /// Threads that serve clients.
    workers: given usize = "workers" flag "workers",
        count(1, 1024), Computed("one for each core that affinity and control-group quota allow");
}
