//! `foxy store`: inspects, lists and benchmarks stores.

mod inspect;
mod list;
mod map;

use crate::failure::Failure;
use clap::{ArgMatches, Command};

pub fn command() -> Command {
    Command::new("store")
        .about("Inspect, list and measure the disk cache")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(inspect::command())
        .subcommand(list::command())
        .subcommand(map::command())
        .subcommands(bench())
}

/// Returns the command `foxy store bench`. Returns `None` if this build does not contain the lab.
fn bench() -> Option<Command> {
    #[cfg(feature = "lab")]
    return Some(foxy_lab_cli::store_bench::command());
    #[cfg(not(feature = "lab"))]
    None
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        #[cfg(feature = "lab")]
        Some(("bench", matches)) => foxy_lab_cli::store_bench::run(matches),
        Some(("inspect", matches)) => inspect::run(matches),
        Some(("list", matches)) => list::run(matches),
        Some(("map", matches)) => map::run(matches),
        _ => Err(Failure::Unusable(
            "no command is given; `foxy store --help` lists the commands".into(),
        )),
    }
}
