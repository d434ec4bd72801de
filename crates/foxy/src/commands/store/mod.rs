//! `foxy store`: the store by itself, without a proxy in front.

mod bench;
mod inspect;

use crate::failure::Failure;
use clap::{ArgMatches, Command};

/// Its commands.
pub fn command() -> Command {
    Command::new("store")
        .about("Look at the disk cache and measure it, by itself")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(bench::command())
        .subcommand(inspect::command())
}

/// Runs one of them.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("bench", matches)) => bench::run(matches),
        Some(("inspect", matches)) => inspect::run(matches),
        _ => Err(Failure::Unusable("no command is given; `foxy store --help` lists them".into())),
    }
}
