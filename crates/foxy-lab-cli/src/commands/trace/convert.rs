//! `foxy trace convert`: reads a log in any supported format, and writes it as CSV or as a Squid
//! log.

use super::files;
use crate::logs;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::terminal;
use std::path::PathBuf;

pub fn command() -> Command {
    Command::new("convert")
        .about("Write a trace's GETs as CSV or as a Squid access.log; each client becomes a number")
        .arg(files::input())
        .arg(
            Arg::new("output")
                .value_name("OUT")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("File to write"),
        )
        .args([logs::format(), files::written_format()])
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let (trace, report) = files::read_trace(matches)?;
    let path = matches.get_one::<PathBuf>("output").expect("required");
    files::write_trace(&trace, path, matches.get_one::<String>("to"))?;
    terminal::print(files::reading(&report).trim_end());
    Ok(())
}
