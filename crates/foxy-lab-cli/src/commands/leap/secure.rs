//! What `foxy leap` speaks with whom: over TLS or not, in which version of HTTP, on which
//! connections. The arguments, and what they mean for the origin, the copies and who is started
//! here.

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

/// What `--protocol` can be besides HTTP/1.1.
const HTTP2: &str = "2";
/// What `--connections` can be besides new.
const KEPT: &str = "kept";
/// Where proxies are that are started here, and what they have as their origin.
const HERE: &str = "127.0.0.1";

/// The arguments.
pub fn arguments() -> [Arg; 5] {
    [
        switch(
            "tls",
            "Ask for https URLs: in tunnels that proxies open with CONNECT; with --reverse, by TLS with the proxies themselves; those of --start speak \
             it on both sides",
        )
        .conflicts_with("check"),
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

/// The authority of those who are started here and end TLS: that of `--ca-dir`, or with `--tls` and
/// `--start` one of this run alone.
///
/// # Errors
/// When that of the folder cannot be used.
pub fn authority(matches: &ArgMatches) -> Result<Option<Authority>, Failure> {
    let given = Authority::given(matches)?;
    if given.is_none() && matches.get_flag("tls") && matches.contains_id("start") {
        return Authority::of_this_run().map(Some);
    }
    Ok(given)
}

/// Whom copies trust, and a Collector that is started here: an authority of this run too.
///
/// # Errors
/// As [`trust::read`].
pub fn trust(
    matches: &ArgMatches,
    own: Option<&Origin>,
    authority: Option<&Authority>,
) -> Result<Trust, Failure> {
    let mut trust = trust::read(matches, own)?;
    if let Some(authority) = authority.filter(|_| !matches.contains_id("ca-dir")) {
        let added = trust.add_pem(authority.pem().as_bytes());
        added.map_err(|error| Failure::Failed(format!("no certificate authority: {error}")))?;
    }
    Ok(trust)
}

/// Whether a proxy that is to be started speaks with clients as the arguments want it.
///
/// # Errors
/// What it does not do, in a few words.
pub fn able(matches: &ArgMatches, peer: &Peer) -> Result<(), String> {
    let lacks = peer.ends.lacks(is_http2(matches)).filter(|_| matches.get_flag("tls"));
    lacks.map_or(Ok(()), |what| Err(what.into()))
}

/// What a proxy that is to be started speaks TLS with.
///
/// # Errors
/// When the authority may not vouch for where proxies and the Collector are, by address or by name.
pub fn papers(authority: &Authority) -> Result<Papers, Failure> {
    let refuse = |host: &str, why: AuthorityError| {
        Failure::Unusable(format!(
            "--ca-dir: {host}: {why}; --start needs one of `foxy ca init --allow 127.0.0.0/8 --allow localhost`"
        ))
    };
    authority.files(NAME).map_err(|why| refuse(NAME, why))?;
    let own = authority.files(HERE).map_err(|why| refuse(HERE, why))?;
    Ok(Papers { own, authority: authority.pem().to_owned() })
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
