//! What of `foxy leap` is spoken over TLS or in HTTP/2: its arguments, and what they mean for the origin, the copies and who is started
//! here.

use crate::failure::Failure;
use crate::lab::arguments::{option, switch};
use crate::lab::{certificates, trust};
use clap::{Arg, ArgMatches};
use foxy_lab::Scheme;
use foxy_lab::leap::Outgoing;
use foxy_lab::tls::Trust;

/// What `--protocol` can be besides HTTP/1.1.
const HTTP2: &str = "2";

/// The arguments.
pub fn arguments() -> [Arg; 4] {
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

/// How copies go out that trust these.
pub fn outgoing(matches: &ArgMatches, trust: &Trust) -> Outgoing {
    match matches.get_one::<String>("protocol") {
        Some(protocol) if protocol == HTTP2 => Outgoing::http2(trust),
        _ => Outgoing::new(trust),
    }
}
