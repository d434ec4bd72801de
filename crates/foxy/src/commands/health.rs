//! `foxy health`: asks a running foxy whether it is healthy. Containers and scripts call it.

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::terminal;
use clap::{ArgMatches, Command};

pub fn command() -> Command {
    admin_client::add_to(
        Command::new("health").about("Ask a running foxy whether it is healthy").long_about(
            "Ask a running foxy whether it is healthy. Exits with 0 if foxy is healthy, and \
                 with 3 if foxy has troubles or does not answer.",
        ),
    )
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let answer = AdminClient::new(matches)?.ask("GET", "/healthz", "")?;
    terminal::print(answer.trim_end());
    Ok(())
}
