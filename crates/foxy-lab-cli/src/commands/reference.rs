//! `foxy reference`: a small caching proxy with the architecture of a proxy that the Wisconsin
//! Proxy Benchmark measured.

use crate::arguments::{option, path, switch};
use crate::reference::{self, Architecture, Options};
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::signals;
use foxy_cli::terminal;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

pub fn command() -> Command {
    let list = Architecture::ALL.iter().map(|(name, _, about)| format!("\n  {name:<20} {about}"));
    Command::new("reference")
        .about("Serve as a small proxy with a classical architecture, as a subject of measurements")
        .long_about(
            "Serve as a small caching forward proxy of a classical architecture, to be measured by foxy wpb and foxy load. They differ \
             in who carries a connection and how the cache is found and written, and in nothing else; each has a switch that takes away what \
             its figures are said to come from. They speak HTTP/1.0, store what says max-age, keep all of it, and know no access control: \
             they listen on loopback addresses only. Workers are threads. Runs until it is stopped.",
        )
        .after_help(format!("Architectures:{}", list.collect::<String>()))
        .arg(
            Arg::new("name")
                .value_name("NAME")
                .required(true)
                .value_parser(Architecture::ALL.map(|(name, ..)| name))
                .help("The architecture"),
        )
        .arg(
            option("listen", "ADDRESS:PORT", "Address to listen on")
                .value_parser(value_parser!(SocketAddr))
                .default_value("127.0.0.1:3128"),
        )
        .arg(path("store", "DIR", "The folder of the cache, new or empty").required(true))
        .arg(
            option("pool", "N", "Number of workers of prefork (64) or fixed-pool (32)")
                .value_parser(value_parser!(u16).range(1..=4096)),
        )
        .arg(
            option("backlog", "N", "Queued connections of fixed-pool (16)")
                .value_parser(value_parser!(u16).range(1..)),
        )
        .arg(switch("no-scan", "process-per-request: find files by URL hash, without the text index"))
        .arg(switch("one-phase", "prefork: write an answer once, and send it at once"))
        .arg(switch("no-index", "event-loop: look for stored answers on disk, without the index"))
        .arg(switch("no-cache", "Store nothing"))
        .arg(switch("connection", "Serve the connection on standard input").hide(true))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let options = options(matches)?;
    let name = options.architecture.name();
    let unusable = |error: std::io::Error| {
        Failure::Unusable(format!("--store {}: {error}", options.store.display()))
    };
    if matches.get_flag("connection") {
        return reference::serve_connection(&options).map_err(unusable);
    }
    let listen = *matches.get_one::<SocketAddr>("listen").expect("has a default");
    if !listen.ip().is_loopback() {
        return Err(Failure::Unusable(format!(
            "--listen {listen}: reference proxies relay for everybody; name a loopback address such as 127.0.0.1:3128"
        )));
    }
    let listener =
        TcpListener::bind(listen).and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = listener.map_err(|error| {
        Failure::Failed(format!(
            "reference: {listen} cannot be listened on: {error}; choose another with --listen"
        ))
    })?;
    reference::start(&options, listener).map_err(unusable)?;
    terminal::print(&format!("reference: {name} at http://{address}/"));
    signals::wait_for_stop()
        .map_err(|error| Failure::Failed(format!("reference: no signal handler: {error}")))
}

fn options(matches: &ArgMatches) -> Result<Options, Failure> {
    let name = matches.get_one::<String>("name").expect("required");
    let known =
        Architecture::ALL.iter().find(|(known, ..)| known == name).expect("clap knows the values");
    let architecture = known.1;
    let store = matches.get_one::<PathBuf>("store").expect("required").clone();
    let whose = [
        ("pool", architecture.workers().is_some()),
        ("backlog", architecture == Architecture::FixedPool),
        ("no-scan", architecture == Architecture::ProcessPerRequest),
        ("one-phase", architecture == Architecture::Prefork),
        ("no-index", architecture == Architecture::EventLoop),
    ];
    let given = |id: &str| {
        matches
            .value_source(id)
            .is_some_and(|source| source == clap::parser::ValueSource::CommandLine)
    };
    if let Some((option, _)) = whose.iter().find(|(id, has)| given(id) && !has) {
        return Err(Failure::Unusable(format!(
            "--{option}: {name} has nothing of that kind; leave it out"
        )));
    }
    let as_it_was = Options::new(architecture, store);
    let number = |id: &str| matches.get_one::<u16>(id).map(|&number| usize::from(number));
    Ok(Options {
        workers: number("pool").unwrap_or(as_it_was.workers),
        backlog: number("backlog").unwrap_or(as_it_was.backlog),
        scan: as_it_was.scan && !matches.get_flag("no-scan"),
        two_phase: as_it_was.two_phase && !matches.get_flag("one-phase"),
        index: as_it_was.index && !matches.get_flag("no-index"),
        cache: !matches.get_flag("no-cache"),
        ..as_it_was
    })
}
