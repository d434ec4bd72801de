//! TLS, HTTP version and connections of `foxy leap`: the arguments, and the resulting settings for
//! the origin, the copied requests and the started proxies.

use crate::arguments::{option, switch};
use crate::certificates::{self, Authority};
use crate::peers::Peer;
use crate::peers::secured::{NAME, Papers};
use crate::trust;
use clap::{Arg, ArgMatches};
use foxy_authority::AuthorityError;
use foxy_cli::failure::Failure;
use foxy_lab::leap::{Connections, Outgoing};
use foxy_lab::wire::tls::Trust;
use foxy_lab::{Origin, Scheme};

const HTTP2: &str = "2";
const KEPT: &str = "kept";
const HERE: &str = "127.0.0.1";

pub fn arguments() -> [Arg; 5] {
    [
        switch(
            "tls",
            "Request https URLs: through CONNECT tunnels, or with --reverse over TLS to the \
             proxies; proxies of --start use TLS on both sides",
        )
        .conflicts_with("check"),
        trust::argument(),
        certificates::argument(),
        option(
            "protocol",
            "VERSION",
            "HTTP version towards the proxies; 2 starts with prior knowledge, or with ALPN if --tls is given",
        )
        .value_parser(["1.1", HTTP2])
        .default_value("1.1"),
        option(
            "connections",
            "WHICH",
            "Connections of the copies: new opens a connection for each copy, kept reuses an \
             idle connection",
        )
        .value_parser(["new", KEPT])
        .default_value("new"),
    ]
}

pub fn check(matches: &ArgMatches) -> Result<(), Failure> {
    if !matches.get_flag("tls")
        || ["ca-dir", "start"].iter().any(|given| matches.contains_id(given))
    {
        return Ok(());
    }
    let ends = [
        ("collector", matches.contains_id("collector")),
        ("passthrough", matches.get_flag("passthrough")),
    ];
    match ends.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((option, _)) => Err(Failure::Unusable(format!(
            "--{option}: with --tls, the proxy that this option starts needs certificates; name the folder of an authority (`foxy ca init`) with --ca-dir"
        ))),
    }
}

pub fn scheme(matches: &ArgMatches) -> Scheme {
    if matches.get_flag("tls") { Scheme::Https } else { Scheme::Http }
}

fn is_http2(matches: &ArgMatches) -> bool {
    matches.get_one::<String>("protocol").is_some_and(|protocol| protocol == HTTP2)
}

/// Returns the certificate authority of `--ca-dir`. With `--tls` and `--start`, creates an
/// authority for this run only.
pub fn authority(matches: &ArgMatches) -> Result<Option<Authority>, Failure> {
    let given = Authority::given(matches)?;
    if given.is_none() && matches.get_flag("tls") && matches.contains_id("start") {
        return Authority::of_this_run().map(Some);
    }
    Ok(given)
}

pub fn trust(
    matches: &ArgMatches,
    own: Option<&Origin>,
    authority: Option<&Authority>,
) -> Result<Trust, Failure> {
    let mut trust = trust::read(matches, own)?;
    if let Some(authority) = authority.filter(|_| !matches.contains_id("ca-dir")) {
        let added = trust.add_pem(authority.pem().as_bytes());
        added.map_err(|error| {
            Failure::Failed(format!("the certificate authority of this run is unusable: {error}"))
        })?;
    }
    Ok(trust)
}

pub fn able(matches: &ArgMatches, peer: &Peer) -> Result<(), String> {
    let lacks = peer.ends.lacks(is_http2(matches)).filter(|_| matches.get_flag("tls"));
    lacks.map_or(Ok(()), |what| Err(what.into()))
}

pub fn papers(authority: &Authority) -> Result<Papers, Failure> {
    let refuse = |host: &str, why: AuthorityError| {
        Failure::Unusable(format!(
            "--ca-dir: {host}: {why}; --start needs an authority of `foxy ca init --allow 127.0.0.0/8 --allow localhost`"
        ))
    };
    authority.files(NAME).map_err(|why| refuse(NAME, why))?;
    let own = authority.files(HERE).map_err(|why| refuse(HERE, why))?;
    Ok(Papers { own, authority: authority.pem().to_owned() })
}

pub fn outgoing(matches: &ArgMatches, trust: &Trust) -> Outgoing {
    if is_http2(matches) { Outgoing::http2(trust) } else { Outgoing::new(trust) }
}

pub fn connections(matches: &ArgMatches) -> Connections {
    let kept = matches.get_one::<String>("connections").is_some_and(|which| which == KEPT);
    if kept { Connections::Kept } else { Connections::New }
}
