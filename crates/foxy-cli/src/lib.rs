//! What commands share: exit codes, the terminal, progress, signals, temporary folders, processes,
//! and the machine that they run on.

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

use clap::{ArgMatches, Command};
use failure::Failure;

/// A command: its name, its arguments, and the function that runs it.
pub struct Entry {
    /// Name and arguments.
    pub command: fn() -> Command,
    /// The function that runs it.
    pub run: fn(&ArgMatches) -> Result<(), Failure>,
}
