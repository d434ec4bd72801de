//! Code that all foxy commands share: exit codes, options, terminal output, progress, signals,
//! temporary folders, processes, and facts about the machine.

pub mod authority_folder;
pub mod disk_helper;
pub mod failure;
pub mod machine;
pub mod process;
pub mod process_table;
pub mod progress;
pub mod signals;
pub mod suggestion;
pub mod temporary;
pub mod terminal;
pub mod units;

use clap::{Arg, ArgAction, ArgMatches, Command};
use failure::Failure;

/// A command of the program `foxy`.
pub struct Entry {
    /// Builds the parser for the command's name and arguments.
    pub command: fn() -> Command,
    /// Runs the command with its parsed arguments.
    pub run: fn(&ArgMatches) -> Result<(), Failure>,
}

/// Returns the option with which a command prints JSON for scripts.
pub fn json_argument() -> Arg {
    Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print one JSON object instead of text")
}
