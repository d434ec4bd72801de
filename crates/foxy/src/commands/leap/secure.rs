//! What `foxy leap` speaks with whom: over TLS or not, in which version of HTTP, on which connections. The arguments, and what they mean
//! for the origin, the copies and who is started here.

use crate::failure::Failure;
use crate::lab::arguments::{option, switch};
use crate::lab::{certificates, trust};
use clap::{Arg, ArgMatches};
use foxy_lab::Scheme;
use foxy_lab::leap::{Connections, Outgoing};
use foxy_lab::tls::Trust;

/// What `--protocol` can be besides HTTP/1.1.
const HTTP2: &str = "2";
/// What `--connections` can be besides new.
const KEPT: &str = "kept";

/// The arguments.
pub fn arguments() -> [Arg; 5] {
    [
        switch(
            "tls",
            "Ask for https URLs: in tunnels that proxies open with CONNECT; with --reverse, by TLS with the proxies themselves",
        )
        .conflicts_with_all(["check", "start"]),
        trust::argument(),
        certificates::argument(),
        option(
            "protocol",
            "VERSION",
            "HTTP towards the proxies, not the origin itself; 2 is by prior knowledge, for https by ALPN",
        )
        .value_parser(["1.1", HTTP2])
        .default_value("1.1"),
        option(
            "connections",
            "WHICH",
            "What copies go out on: new, a connection for each, which it pays for; kept, one that an earlier copy left, which costs nothing \
             to connect",
        )
        .value_parser(["new", KEPT])
        .default_value("new"),
    ]
}

/// Arguments that do not go together.
///
/// # Errors
/// When somebody who is started here has to end TLS and there is no authority.
pub fn check(matches: &ArgMatches) -> Result<(), Failure> {
    if !matches.get_flag("tls") || matches.contains_id("ca-dir") {
        return Ok(());
    }
    let ends =
        [("collector", matches.contains_id("collector")), ("passthrough", matches.get_flag("passthrough"))];
    match ends.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::Unusable(format!(
            "--{option}: with --tls it ends TLS itself; name an authority of `foxy ca init` with --ca-dir"
        ))),
    }
}

/// How the origin is spoken with.
pub fn scheme(matches: &ArgMatches) -> Scheme {
    if matches.get_flag("tls") { Scheme::Https } else { Scheme::Http }
}

fn is_http2(matches: &ArgMatches) -> bool {
    matches.get_one::<String>("protocol").is_some_and(|protocol| protocol == HTTP2)
}

/// How copies go out that trust these.
pub fn outgoing(matches: &ArgMatches, trust: &Trust) -> Outgoing {
    if is_http2(matches) { Outgoing::http2(trust) } else { Outgoing::new(trust) }
}

/// On which connections copies go out.
pub fn connections(matches: &ArgMatches) -> Connections {
    let kept = matches.get_one::<String>("connections").is_some_and(|which| which == KEPT);
    if kept { Connections::Kept } else { Connections::New }
}
