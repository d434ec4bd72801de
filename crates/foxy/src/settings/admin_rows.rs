//! Rows of the table of settings about the admin server and who may purge.

use super::kind::{Area, Kind, Preset, Setting};

/// Where it listens.
pub const ADMIN: Setting = Setting {
    key: "admin",
    flag: Some("admin"),
    area: Area::Network,
    kind: Kind::AddressOrOff(|w| &mut w.admin),
    default: Preset::Fixed(&["127.0.0.1:3129"]),
    doc: "Where `/metrics`, `/healthz`, `/purge` and `/explain` are served, or `off`. \
          Whoever can connect there can read the counters; `admin-token-file` says who can purge and see what is stored.",
};

/// Under which names.
pub const ADMIN_HOSTS: Setting = Setting {
    key: "admin-hosts",
    flag: Some("admin-host"),
    area: Area::Network,
    kind: Kind::Hosts(|w| &mut w.admin_hosts),
    default: Preset::Fixed(&[]),
    doc: "Names under which the admin server is asked, besides addresses and `localhost`. \
          A request whose `Host` is another name is refused with 421: \
          a web page could turn a name of its own to this machine and read the answers.",
};

/// Where the token is.
pub const ADMIN_TOKEN_FILE: Setting = Setting {
    key: "admin-token-file",
    flag: Some("admin-token-file"),
    area: Area::Access,
    kind: Kind::File(|w| &mut w.admin_token_file),
    default: Preset::Nothing(
        "whoever can connect to `admin` from this machine may purge and explain",
    ),
    doc: "A file with the word that `/purge` and `/explain` must be sent as `Authorization: Bearer WORD`. \
          A PURGE to the proxy may carry it as `Proxy-Authorization` or `Authorization` instead of coming from an \
          address in `purge-from`. The file is read at start-up. \
          foxy does not start where every user may read the file or others may change it: run `chmod 600` on the file.",
};

/// Who needs none.
pub const PURGE_FROM: Setting = Setting {
    key: "purge-from",
    flag: Some("purge-from"),
    area: Area::Access,
    kind: Kind::Networks(|w| &mut w.purge_from),
    default: Preset::Fixed(&[]),
    doc: "Networks whose clients may send PURGE to the proxy without a token. \
          Loopback is not among them by itself: behind another proxy on the same machine every client comes from there.",
};
