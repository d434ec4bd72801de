//! `foxy completions SHELL` and `foxy man FOLDER`: files for shells and manuals, from the table of
//! commands.

use super::command_line;
use crate::failure::{Failure, unwritten};
use crate::terminal;
use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;
use std::path::PathBuf;

pub fn completions_command() -> Command {
    Command::new("completions").about("Print a completion script for a shell").arg(
        Arg::new("shell")
            .value_name("SHELL")
            .value_parser(value_parser!(Shell))
            .required(true)
            .help("Shell that completes the commands"),
    )
}

pub fn print_completions(matches: &ArgMatches) -> Result<(), Failure> {
    let shell = *matches.get_one::<Shell>("shell").expect("required");
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_line(), "foxy", &mut script);
    terminal::print(String::from_utf8_lossy(&script).trim_end());
    Ok(())
}

pub fn man_command() -> Command {
    Command::new("man").about("Write a manual page for each command").arg(
        Arg::new("folder")
            .value_name("FOLDER")
            .value_parser(value_parser!(PathBuf))
            .required(true)
            .help("Folder for the pages foxy.1, foxy-serve.1 and so on"),
    )
}

pub fn write_man(matches: &ArgMatches) -> Result<(), Failure> {
    let folder = matches.get_one::<PathBuf>("folder").expect("required");
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command_line(), folder));
    written.map_err(|error| {
        let why = unwritten(&error, "name a folder that this user may write");
        Failure::Failed(format!("cannot write manual pages to {}: {why}", folder.display()))
    })
}
