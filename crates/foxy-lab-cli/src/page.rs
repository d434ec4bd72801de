//! The page of `--html`.

use clap::ArgMatches;
use foxy_cli::failure::Failure;
use std::path::PathBuf;

pub fn write(matches: &ArgMatches, page: impl FnOnce() -> String) -> Result<(), Failure> {
    let Some(path) = matches.get_one::<PathBuf>("html") else { return Ok(()) };
    std::fs::write(path, page()).map_err(|error| {
        let path = path.display();
        Failure::Failed(format!("{path}: the page cannot be written: {error}; name another place"))
    })
}
