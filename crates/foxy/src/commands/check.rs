//! `foxy check FILE`: checks a configuration file and prints the resulting settings.

use crate::failure::Failure;
use crate::settings::{self, docs, schema};
use crate::terminal;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_cli::machine::Machine;
use std::path::PathBuf;

pub fn command() -> Command {
    let print =
        |name: &'static str, help| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("check")
        .about("Check a configuration file, and print the settings in force")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .required_unless_present_any(["print-docs", "print-schema"])
                .help("TOML file to check"),
        )
        .arg(print("print-schema", "Print a JSON Schema of configuration files, for editors"))
        .arg(print("print-docs", "Print docs/configuration.md").hide(true))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    if matches.get_flag("print-docs") {
        terminal::print(docs::markdown().trim_end());
        return Ok(());
    }
    if matches.get_flag("print-schema") {
        terminal::print(&schema::text());
        return Ok(());
    }
    let file = matches.get_one::<PathBuf>("file").map(PathBuf::as_path);
    let mut loaded = settings::load(file, None, &Machine::look())
        .map_err(|complaints| Failure::Unusable(complaints.to_string()))?;
    terminal::print(&loaded.show());
    Ok(())
}
