//! `foxy store`: the store by itself, without a proxy in front.

mod bench;

use crate::failure::Failure;
use clap::{ArgMatches, Command};

/// Its commands.
pub fn command() -> Command {
    Command::new("store")
        .about("Measure the disk cache by itself")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(bench::command())
}

/// Runs one of them.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("bench", matches)) => bench::run(matches),
        _ => Err(Failure::Unusable("no command is given; `foxy store --help` lists them".into())),
    }
}
