//! `foxy health`: asks a running foxy whether it is healthy. Containers and scripts call it.

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::terminal;
use clap::{ArgMatches, Command};
use foxy_cli::json_argument;
use serde_json::json;

pub fn command() -> Command {
    let command = Command::new("health")
        .about("Ask a running foxy whether it is healthy")
        .long_about(
            "Ask a running foxy whether it is healthy. Exits with 0 if foxy is healthy or has \
             only troubles that cost no answer, and with 3 otherwise.",
        )
        .arg(json_argument().help("Print one JSON object, also if foxy has troubles"));
    admin_client::add_to(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let client = AdminClient::new(matches)?;
    if !matches.get_flag("json") {
        terminal::print(client.ask("GET", "/healthz", "")?.trim_end());
        return Ok(());
    }
    let (is_well, troubles) = client.health()?;
    terminal::print(&json!({ "ok": is_well, "troubles": troubles }).to_string());
    match troubles.len() {
        _ if is_well => Ok(()),
        1 => Err(Failure::Failed("foxy has 1 trouble".into())),
        count => Err(Failure::Failed(format!("foxy has {count} troubles"))),
    }
}
