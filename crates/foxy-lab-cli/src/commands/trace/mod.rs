//! `foxy trace`: statistics, conversion and generation of request traces.

mod convert;
mod files;
mod generate;
mod stats;
mod whole_file;

use clap::{ArgMatches, Command};
use foxy_cli::failure::Failure;

pub fn command() -> Command {
    Command::new("trace")
        .about(
            "Inspect, convert and generate traces: log files in Squid, Common or Combined \
             format, CSV, Parquet",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands([stats::command(), convert::command(), generate::command()])
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    match matches.subcommand() {
        Some(("stats", matches)) => stats::run(matches),
        Some(("convert", matches)) => convert::run(matches),
        Some(("generate", matches)) => generate::run(matches),
        _ => Err(Failure::Unusable(
            "trace: no such subcommand; `foxy trace --help` lists the subcommands".into(),
        )),
    }
}
