//! `foxy reference`: runs a small caching proxy, with the architecture of one of the proxies that
//! the paper on the Wisconsin Proxy Benchmark measured.

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
        .about("Serve as a small proxy with a classical architecture, to be measured")
        .long_about(
            "Serve as a small caching forward proxy with a classical architecture, which foxy wpb and foxy load can measure. The \
             architectures differ only in how they serve a connection, and in how they find and write cached answers. Most have \
             an option that removes the property to which the literature attributes their results. The proxies speak HTTP/1.0, store \
             every answer with max-age, and never evict. They have no access control, so they listen only on loopback addresses. \
             All workers are threads, also where the original has processes. \
             The command runs until a signal stops it.",
        )
        .after_help(format!("Architectures:{}", list.collect::<String>()))
        .arg(
            Arg::new("name")
                .value_name("NAME")
                .required(true)
                .value_parser(Architecture::ALL.map(|(name, ..)| name))
                .help("How the reference proxy serves connections: with processes, threads or events"),
        )
        .arg(
            option("listen", "ADDRESS:PORT", "Address to listen on")
                .value_parser(value_parser!(SocketAddr))
                .default_value("127.0.0.1:3128"),
        )
        .arg(path("store", "DIR", "Folder of the cache, which must be new or empty").required(true))
        .arg(
            option("pool", "N", "prefork and fixed-pool: number of workers [default: prefork 64, fixed-pool 32]")
                .value_parser(value_parser!(u16).range(1..=4096)),
        )
        .arg(
            option("backlog", "N", "fixed-pool: number of connections that may wait in the queue [default: 16]")
                .value_parser(value_parser!(u16).range(1..)),
        )
        .arg(switch("no-scan", "process-per-request: find files by a hash of the URL, without the text index"))
        .arg(switch(
            "one-phase",
            "prefork: send each answer before the write to disk, and write it once instead of twice",
        ))
        .arg(switch("no-index", "event-loop: keep no index in memory, and check the disk for each request"))
        .arg(switch("no-cache", "Store no answers"))
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
            "--listen {listen}: reference proxies have no access control; name a loopback address such as 127.0.0.1:3128"
        )));
    }
    let listener =
        TcpListener::bind(listen).and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = listener.map_err(|error| {
        Failure::Failed(format!(
            "reference: cannot listen on {listen}: {error}; choose another address with --listen"
        ))
    })?;
    reference::start(&options, listener).map_err(unusable)?;
    terminal::print(&format!("reference: {name} at http://{address}/"));
    signals::wait_for_stop().map_err(|error| {
        Failure::Failed(format!("reference: cannot set a signal handler: {error}"))
    })
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
            "--{option}: the architecture {name} has no such option; leave it out"
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
