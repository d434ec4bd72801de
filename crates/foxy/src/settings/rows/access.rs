//! Settings of the chapter "What may be relayed".

use super::super::kind::{Area, Kind, Preset, Setting};
use foxy_proxy::intercept::HostPattern;
use foxy_proxy::upstream::Cidr;
use std::path::PathBuf;

settings! {
    /// Relayed destinations, tunnels, purges and interception.
    struct Access, written as WrittenAccess in access, chapter Access;

    allow_destination: given Vec<Cidr> {
        key: "allow-destination",
        flag: "allow-destination",
        kind: Kind::Networks;
        default: Preset::Fixed(&[]),
        doc: "Networks that may be relayed to although they are loopback, link-local, private or \
              otherwise not public. \
              Blocks kept for documentation (192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24, 2001:db8::/32, 3fff::/20) are dialled as public ones are. \
              The address that is dialled decides, not the name that was asked for. \
              Public addresses are allowed, but for those that this machine has itself. \
              An address that a router translates to this machine is not known to be its own.",
    }

    admin_token_file: optional PathBuf {
        key: "admin-token-file",
        flag: "admin-token-file",
        kind: Kind::File;
        default: Preset::Nothing(
        "whoever can connect to `admin` from this machine may purge and explain",
    ),
        doc: "A file with the word that `/purge` and `/explain` must be sent as `Authorization: \
              Bearer WORD`. \
          A PURGE to the proxy may carry it as `Proxy-Authorization` or `Authorization` instead of coming from an \
          address in `purge-from`. The file is read at start-up. \
          foxy does not start where every user may read the file or others may change it: run \
          `chmod 600` on the file.",
    }

    purge_from: given Vec<Cidr> {
        key: "purge-from",
        flag: "purge-from",
        kind: Kind::Networks;
        default: Preset::Fixed(&[]),
        doc: "Networks whose clients may send PURGE to the proxy without a token. \
          Loopback is not among them by itself: behind another proxy on the same machine every \
          client comes from there.",
    }

    connect_ports: given Vec<u16> {
        key: "connect-ports",
        flag: "connect-port",
        kind: Kind::Ports;
        default: Preset::Fixed(&["443"]),
        doc: "Ports that CONNECT may tunnel to.",
    }

    intercept_ca: optional PathBuf {
        key: "intercept-ca",
        flag: "intercept-ca",
        kind: Kind::Folder;
        default: Preset::Nothing("every CONNECT is carried unseen"),
        doc: "The folder of the certificate authority that signs for `intercept-hosts`, as `foxy \
              ca init` makes it. \
          Clients must trust it; `foxy ca show` says how. foxy does not start when others may read its key, when it has expired, \
          or when it may not vouch for a host of the list. It is read once, at start-up.",
    }

    intercept_hosts: given Vec<HostPattern> {
        key: "intercept-hosts",
        flag: "intercept-host",
        kind: Kind::Hosts;
        default: Preset::Fixed(&[]),
        doc: "Hosts whose HTTPS is cached for clients that reach them with CONNECT. \
          `example.org` means this name and all below it, `*.example.org` only those below, `192.0.2.0/24` addresses. \
          foxy ends the client's TLS itself, with a certificate that `intercept-ca` signed, and verifies the origin server's as always. \
          CONNECT to any other host, or over `listen-tls` or HTTP/2, is carried unseen; one to a \
          listed host that is not followed by TLS is closed.",
    }
}
