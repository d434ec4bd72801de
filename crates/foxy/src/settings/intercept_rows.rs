//! Rows of the table of settings about interception: which authority signs, and for whom.

use super::kind::{Area, Kind, Preset, Setting};

/// Whose certificates intercepted clients are shown.
pub const INTERCEPT_CA: Setting = Setting {
    key: "intercept-ca",
    flag: Some("intercept-ca"),
    area: Area::Access,
    kind: Kind::Folder(|w| &mut w.intercept_ca),
    default: Preset::Nothing("every CONNECT is carried unseen"),
    doc: "The folder of the certificate authority that signs for `intercept-hosts`, as `foxy ca init` makes it. \
          Clients must trust it; `foxy ca show` says how. foxy does not start when others may read its key, when it has expired, \
          or when it may not vouch for a host of the list. It is read once, at start-up.",
};

/// Whose CONNECTs are intercepted.
pub const INTERCEPT_HOSTS: Setting = Setting {
    key: "intercept-hosts",
    flag: Some("intercept-host"),
    area: Area::Access,
    kind: Kind::Hosts(|w| &mut w.intercept_hosts),
    default: Preset::Fixed(&[]),
    doc: "Hosts whose HTTPS is cached for clients that reach them with CONNECT. \
          `example.org` means this name and all below it, `*.example.org` only those below, `192.0.2.0/24` addresses. \
          foxy ends the client's TLS itself, with a certificate that `intercept-ca` signed, and verifies the origin server's as always. \
          CONNECT to any other host, or over `listen-tls` or HTTP/2, is carried unseen; one to a listed host that is not followed by TLS is closed.",
};
