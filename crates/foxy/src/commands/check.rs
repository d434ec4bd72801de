//! `foxy check FILE`: says whether a configuration file is sound, and what would be in force.

use crate::failure::Failure;
use crate::settings::{self, docs, machine::Machine};
use crate::terminal;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::path::PathBuf;

/// Its arguments.
pub fn command() -> Command {
    Command::new("check")
        .about("Say whether a configuration file is sound, and print the settings it gives")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .required_unless_present("print-docs")
                .help("The TOML file to check"),
        )
        .arg(
            Arg::new("print-docs")
                .long("print-docs")
                .action(ArgAction::SetTrue)
                .hide(true)
                .help("Print docs/configuration.md"),
        )
}

/// Runs it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    if matches.get_flag("print-docs") {
        terminal::print(docs::markdown().trim_end());
        return Ok(());
    }
    let file = matches.get_one::<PathBuf>("file").map(PathBuf::as_path);
    let mut loaded = settings::load(file, None, &Machine::look())
        .map_err(|complaints| Failure::Unusable(complaints.to_string()))?;
    terminal::print(&loaded.show());
    Ok(())
}
