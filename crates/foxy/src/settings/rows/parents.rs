//! Settings of the chapter "Parent proxies".

use super::super::kind::{Kind, Preset, Setting};
use foxy_proxy::upstream::{NoProxy, Parent};
use std::path::PathBuf;

settings! {
    struct ParentProxies, written as WrittenParentProxies in parents, chapter "Parent proxies";

    /// HTTP proxies through which foxy reaches origin servers. foxy speaks TLS with the proxy of an
    /// `https://` URL, and checks its certificate as it checks origins. `off`, or an empty list,
    /// means no parent. A URL may contain a percent-encoded user and password.
    /// `parent-credentials-file` is safer, because other users can read a command line.
    parent: optional Vec<Parent> = "parent" flag "parent",
        Parents, Nothing("foxy uses the proxies of the environment");

    /// Order in which foxy tries the parent proxies.
    parent_choice: given &'static str = "parent-choice" flag "parent-choice", choice(&[
        ("order", "the first proxy of the list that works"),
        ("rendezvous", "by a hash of the URL, so that each proxy caches another part of the URLs"),
    ]), Fixed("order");

    /// Answer to requests while no parent proxy works.
    parent_fallback: given &'static str = "parent-fallback" flag "parent-fallback", choice(&[
        ("refuse", "foxy answers 502"),
        ("direct", "foxy connects to the origin server itself"),
    ]), Fixed("refuse");

    /// File with `USER:PASSWORD` for the parent proxies whose URLs contain no credentials. foxy
    /// reads it at start-up, and does not start if every user may read it, or other users may
    /// change it (`chmod 600`).
    parent_credentials_file: optional PathBuf = "parent-credentials-file"
        flag "parent-credentials-file", File, Nothing("foxy sends only the credentials in URLs");

    /// Hosts that foxy reaches without a parent proxy: a name with all names below it, an address,
    /// a network, or `*`. A port may follow. An address or network applies only to URLs with a
    /// literal address.
    no_proxy: optional Vec<NoProxy> = "no-proxy" flag "no-proxy",
        NoProxies, Nothing("if the environment names the parent proxies, its `no_proxy` counts");
}
