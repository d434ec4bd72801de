//! Settings of the chapter "What may be relayed".

use super::super::kind::{Kind, Preset, Setting};
use foxy_proxy::intercept::HostPattern;
use foxy_proxy::upstream::Cidr;
use std::path::PathBuf;

settings! {
    struct Access, written as WrittenAccess in access, chapter "What may be relayed";

    /// Networks that foxy may relay to although they are loopback, link-local, private or otherwise
    /// not public. The dialled address decides, not the name. Public addresses are allowed, except
    /// this machine's own; foxy does not recognise an address that a router translates to this
    /// machine. Blocks kept for documentation (192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24,
    /// 2001:db8::/32, 3fff::/20) count as public.
    allow_destination: given Vec<Cidr> = "allow-destination" flag "allow-destination",
        Networks, Fixed();

    /// File with the word that `/purge` and `/explain` require as `Authorization: Bearer WORD`. A
    /// PURGE to the proxy may carry it as `Proxy-Authorization` or `Authorization` instead of
    /// coming from `purge-from`. foxy reads the file at start-up, and does not start if every user
    /// may read it or others may change it; run `chmod 600`.
    admin_token_file: optional PathBuf = "admin-token-file" flag "admin-token-file",
        File, Nothing("whoever can connect to `admin` from this machine may purge and explain");

    /// Networks whose clients may send PURGE to the proxy without a token. Loopback is not
    /// included: behind another proxy on this machine every client comes from there.
    purge_from: given Vec<Cidr> = "purge-from" flag "purge-from", Networks, Fixed();

    /// Ports that CONNECT may tunnel to.
    connect_ports: given Vec<u16> = "connect-ports" flag "connect-port", Ports, Fixed("443");

    /// Folder of the certificate authority that signs for `intercept-hosts`; `foxy ca init` makes
    /// it. Clients must trust it; `foxy ca show` says how. foxy reads it at start-up, and does not
    /// start if others may read its key, if it has expired, or if it may not vouch for a listed
    /// host.
    intercept_ca: optional PathBuf = "intercept-ca" flag "intercept-ca",
        Folder, Nothing("every CONNECT is tunnelled");

    /// Hosts whose HTTPS foxy caches for clients that use CONNECT. `example.org` means this name
    /// and all names below it, `*.example.org` only the names below, `192.0.2.0/24` addresses. foxy
    /// ends the client's TLS with a certificate signed by `intercept-ca`, and verifies the origin
    /// server's as always. Other hosts, and CONNECT over `listen-tls` or HTTP/2, are tunnelled. A
    /// CONNECT to a listed host is closed if no TLS follows.
    intercept_hosts: given Vec<HostPattern> = "intercept-hosts" flag "intercept-host",
        Hosts, Fixed();
}
