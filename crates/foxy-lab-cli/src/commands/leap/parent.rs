//! Starts the Collector of `foxy leap`, the common parent proxy of all compared proxies.

use super::arguments::NamedProxy;
use crate::collector;
use clap::ArgMatches;
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::process::raise_open_files;
use foxy_cli::terminal;
use foxy_lab::Wanted;
use foxy_lab::leap::collector::{Collector, CollectorOptions, Listen, Reach};
use foxy_lab::wire::tls::{Certificates, Trust};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const SPOOL: ByteSize = ByteSize(4 << 30);
/// The limit of the Collector's connections from each path (a proxy or the direct path). It is
/// large, because a proxy may keep many idle connections.
const CONNECTIONS: usize = 1024;
/// The limit of concurrent requests to the origin. After a stall of one second, about a thousand
/// requests are due at once.
const FETCHES: usize = 1024;

pub fn start(
    matches: &ArgMatches,
    proxies: &[NamedProxy],
    origin: Option<SocketAddr>,
    certificates: Option<Certificates>,
    trust: Trust,
    wanted: &Arc<Wanted>,
) -> Result<Option<Collector>, Failure> {
    let given = matches.get_one::<SocketAddr>("collector").copied();
    let free = matches.contains_id("start").then_some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let (Some(first), Some(origin)) = (given.or(free), origin) else { return Ok(None) };
    if !Reach::Offline.covers(origin.ip()) {
        return Err(Failure::Unusable(format!(
            "--direct {origin}: with --collector the origin must have a loopback or private \
             address; name such an address"
        )));
    }
    let names = std::iter::once("direct").chain(proxies.iter().map(|proxy| proxy.name.as_str()));
    let step = usize::from(given.is_some());
    let listen = names.enumerate().filter_map(|(place, name)| {
        let port = u16::try_from(usize::from(first.port()) + step * place).ok()?;
        Some(Listen { name: Some(name.to_owned()), address: SocketAddr::new(first.ip(), port) })
    });
    let listen: Vec<Listen> = listen.collect();
    if given.is_some_and(|given| given.port() == 0) || listen.len() <= proxies.len() {
        let most = usize::from(u16::MAX) - proxies.len();
        let text = format!(
            "--collector {first}: each proxy uses a port after this port; give a port from 1 to \
             {most}"
        );
        return Err(Failure::Unusable(text));
    }
    let folder = std::env::temp_dir();
    let file = collector::spool(&folder, SPOOL).map_err(|error| {
        Failure::Failed(format!(
            "leap: cannot create the Collector's file in {}: {error}",
            folder.display()
        ))
    })?;
    let round_trip = matches.get_one::<Duration>("network-cost").copied().unwrap_or_default();
    raise_open_files();
    let options = CollectorOptions {
        origin: Some(origin),
        most_connections: CONNECTIONS * listen.len(),
        most_fetches: FETCHES,
        file: Some(file),
        round_trip,
        certificates,
        trust,
        wanted: Some(Arc::clone(wanted)),
        ..CollectorOptions::new(listen)
    };
    let running = Collector::start(options).map_err(|error| {
        Failure::Failed(format!(
            "leap: --collector {first}: cannot listen: {error}; choose another port"
        ))
    })?;
    let scheme = super::secure::scheme(matches).as_str();
    for (proxy, address) in
        proxies.iter().zip(&running.addresses()[1..]).filter(|_| given.is_some())
    {
        terminal::print(&format!("leap: {}: parent at {scheme}://{address}/", proxy.name));
    }
    Ok(Some(running))
}
