//! `foxy origin`: the verifying origin server by itself, for load runs from several machines or other programs.

use crate::failure::Failure;
use crate::signals;
use crate::terminal::{self, Level};
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_lab::{Origin, OriginOptions};
use foxy_workload::Object;
use std::net::SocketAddr;

/// Its arguments.
pub fn command() -> Command {
    Command::new("origin")
        .about("Serve objects whose every byte follows from their URL, as `foxy load` checks them")
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS")
                .value_parser(value_parser!(SocketAddr))
                .default_value("127.0.0.1:8000")
                .help("Where to listen; port 0 lets the system choose"),
        )
        .arg(
            Arg::new("threads")
                .long("threads")
                .value_name("N")
                .value_parser(value_parser!(u16).range(1..=256))
                .default_value("1")
                .help("Threads that serve"),
        )
}

/// Runs it until a signal stops it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let listen = *matches.get_one::<SocketAddr>("listen").expect("has a default");
    let threads = usize::from(*matches.get_one::<u16>("threads").expect("has a default"));
    let origin = Origin::start(OriginOptions { listen, threads }).map_err(|error| {
        Failure::Unusable(format!("cannot listen on {listen} (--listen): {error}; give a free address"))
    })?;
    let (address, example) = (origin.address(), Object { id: 1, size: 1024, version: 1 });
    terminal::report(
        Level::Info,
        &format!("origin at http://{address}, for example http://{address}{example}\nCtrl-C stops it"),
    );
    signals::wait_for_stop().map_err(|error| Failure::Failed(format!("cannot wait for signals: {error}")))?;
    let (requests, bytes) = (origin.requests(), origin.body_bytes());
    terminal::print(&format!("{requests} requests, {bytes} bytes of bodies"));
    Ok(())
}
