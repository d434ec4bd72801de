//! Where a run's page goes: a file that `--html` names.

use clap::ArgMatches;
use foxy_cli::failure::Failure;
use std::path::PathBuf;

/// Writes a page to the file that the arguments name, if they name one.
///
/// # Errors
/// When the file cannot be written.
pub fn write(matches: &ArgMatches, page: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(path) = matches.get_one::<PathBuf>("html") else { return Ok(()) };
    std::fs::write(path, page()).map_err(|error| {
        let path = path.display();
        Failure::Failed(format!("{path}: the page cannot be written: {error}; name another place"))
    })
}
