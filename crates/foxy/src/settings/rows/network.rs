//! Settings of the chapter "Addresses and threads".

use super::super::kind::{Kind, Preset, Setting};
use super::super::listen_address::ListenAddress;
use foxy_base::{Cidr, HostPattern};
use foxy_proxy::upstream::OriginServer;
use std::net::SocketAddr;
use std::path::PathBuf;

settings! {
    struct Network, written as WrittenNetwork in network, chapter "Addresses and threads";

    /// Addresses where clients connect, such as `127.0.0.1:3128`, `localhost:3128` (IPv4 and IPv6),
    /// `:3128` or `3128` (all addresses), or `unix:/run/foxy/proxy.sock` (mode 0660). For port 0
    /// the system chooses a port, which the start-up message names. All clients of a Unix socket
    /// count as one client, 127.0.0.1. They need no `allow-client`, and can purge only with the
    /// secret word in `admin-token-file`.
    listen: given Vec<ListenAddress> = "listen" flag "listen", Listen, Fixed("127.0.0.1:3128");

    /// Addresses where clients connect over TLS 1.2 or 1.3.
    listen_tls: given Vec<ListenAddress> = "listen-tls" flag "listen-tls", Listen, Fixed("off");

    /// Addresses to which the kernel's rules (nftables) direct connections of clients that know no
    /// proxy (docs/operation.md).
    listen_transparent: given Vec<ListenAddress> = "listen-transparent" flag "listen-transparent",
        Listen, Fixed("off");

    /// Action of the kernel's rules that direct connections to `listen-transparent`.
    transparent_mode: given &'static str = "transparent-mode" flag "transparent-mode", choice(&[
        ("tproxy", "TPROXY keeps the destination address; foxy needs CAP_NET_ADMIN"),
        ("redirect", "REDIRECT replaces the destination address"),
    ]), Fixed("tproxy");

    /// Files in PEM, each with a certificate chain for `listen-tls`. foxy presents the first chain
    /// that matches the host name in the client's TLS handshake, otherwise the first chain of the
    /// list.
    tls_certificate: given Vec<PathBuf> = "tls-certificate" flag "tls-certificate", Files, Fixed();

    /// Files in PEM with the private keys of `tls-certificate`, in the same order. foxy does not
    /// start if every user may read a key, or other users may change a key (`chmod 600`).
    tls_key: given Vec<PathBuf> = "tls-key" flag "tls-key", Files, Fixed();

    /// Files in PEM with the certificate authorities of clients of `listen-tls`. The certificate
    /// names the user: the subject's common name, or without it the first DNS name or e-mail
    /// address. Such users need no password.
    client_ca: given Vec<PathBuf> = "client-ca" flag "client-ca", Files, Fixed();

    /// Files in PEM with lists of revoked certificates (CRLs) of `client-ca`. foxy then refuses
    /// revoked certificates, and certificates of authorities without a current list. foxy reads
    /// changed files again. It does not check whether an authority of `client-ca` itself is
    /// revoked.
    client_crl: given Vec<PathBuf> = "client-crl" flag "client-crl", Files, Fixed();

    /// Whether clients of `listen-tls` must have a certificate of `client-ca`.
    client_certificates: given &'static str = "client-certificates" flag "client-certificates",
        choice(&[
            ("required", "foxy refuses other clients"),
            ("optional", "clients without a certificate have no user"),
        ]), Fixed("required");

    /// Networks of load balancers that send a PROXY protocol header, version 1 or 2. foxy then uses
    /// the client address in this header everywhere: in `allow-client`, `purge-from`, rules, limits
    /// and logs. foxy closes connections from these networks that lack the header.
    proxy_protocol_from: given Vec<Cidr> = "proxy-protocol-from" flag "proxy-protocol-from",
        Networks, Fixed();

    /// Networks of load balancers in front of a reverse proxy (docs/operation.md). foxy trusts
    /// `X-Forwarded-For`, `Forwarded` and `X-Forwarded-Proto` from these networks, and replaces the
    /// fields in requests from other clients.
    forwarded_from: given Vec<Cidr> = "forwarded-from" flag "forwarded-from", Networks, Fixed();

    /// Addresses of the admin server, which serves a dashboard, `/metrics`, `/healthz`, `/purge`
    /// and `/explain`. Anyone who can connect can read `/metrics` and `/healthz`. Without
    /// `admin-token-file`, only clients on this machine may use the rest. With this file, only
    /// clients that send the secret word in it may.
    admin: given Vec<ListenAddress> = "admin" flag "admin", Listen, Fixed("127.0.0.1:3129");

    /// Host names by which clients may address the admin server, in addition to IP addresses and
    /// `localhost`. foxy answers 421 to another name in `Host`, so no web page can read the answers
    /// through a host name of its own.
    admin_hosts: given Vec<HostPattern> = "admin-hosts" flag "admin-host", Hosts, Fixed();

    /// Origin server of foxy as a reverse proxy, for all host names. It may have any address, even
    /// without `allow-destination`. For several origins or servers, write [`[[origin]]`](#origins).
    origin: optional OriginServer = "origin" flag "origin",
        Origin, Nothing("foxy is a forward proxy");

    /// Whether a forward proxy serves a PAC file, which configures browsers, as `/proxy.pac` and
    /// `/wpad.dat` on its own address. Browsers then reach plain names, loopback and private
    /// addresses and the hosts of `no-proxy` directly, and all other hosts through foxy. The file
    /// needs no credentials, but rules apply to it.
    pac: given &'static str = "pac" flag "pac", choice(&[
        ("off", "foxy answers 400"),
        ("on", "foxy answers with the file"),
    ]), Fixed("off");

    /// Files in PEM with certificate authorities that foxy trusts for origin servers, in addition
    /// to the system's authorities. `SSL_CERT_FILE` and `SSL_CERT_DIR` name the system's
    /// authorities, as in OpenSSL.
    origin_ca: given Vec<PathBuf> = "origin-ca" flag "origin-ca", Files, Fixed();

    /// Whether foxy uses HTTP/2 with origin servers. Upgrades, such as WebSocket, always use
    /// HTTP/1.1.
    origin_http2: given &'static str = "origin-http2" flag "origin-http2", choice(&[
        ("auto", "with https origins that choose HTTP/2 in the TLS handshake"),
        ("off", "never"),
        (
            "prior-knowledge",
            "as auto, and with every http origin without negotiation; requests to an http \
             origin that lacks HTTP/2 then fail",
        ),
    ]), Fixed("auto");

    /// Source address of connections to origin servers.
    origin_source: given &'static str = "origin-source" flag "origin-source", choice(&[
        ("foxy", "foxy's own address"),
        (
            "client",
            "the client's address; needs CAP_NET_ADMIN, and a network that routes the origins' \
             answers back to foxy",
        ),
    ]), Fixed("foxy");

    /// DNS servers that resolve the names of origin servers, by default on port 53. foxy uses no
    /// search list, and reads /etc/hosts first.
    name_servers: defaulted Vec<SocketAddr> = "name-servers" flag "name-server",
        NameServers, Nothing("foxy uses the servers in /etc/resolv.conf");

    /// Number of threads that serve clients.
    workers: given usize = "workers" flag "workers",
        count(1, 1024), Computed("one for each core that CPU affinity and control group allow");
}

impl Network {
    /// Returns whether the kernel replaces the destination of connections to transparent listeners.
    pub fn is_redirected(&self) -> bool {
        self.transparent_mode == "redirect"
    }
}
