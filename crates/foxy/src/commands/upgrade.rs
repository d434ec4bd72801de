//! `foxy upgrade`: replaces a running foxy by a process of another binary, without a stop.

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::serve::LONGEST_UPGRADE;
use crate::terminal;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::json_argument;
use serde_json::Value;
use std::path::PathBuf;

pub fn command() -> Command {
    let binary = Arg::new("binary")
        .value_name("BINARY")
        .value_parser(value_parser!(PathBuf))
        .help("The new binary [default: the path with which the running foxy was started]");
    let command = Command::new("upgrade")
        .about("Replace a running foxy by a new binary, without a stop")
        .long_about(
            "Replace a running foxy by a new binary, without a stop. The running foxy starts the \
             new process with its own arguments, and gives it the listening sockets and the \
             stores. During this handover, new connections wait. The old process finishes its \
             connections. If the new process does not come up, the old process stays in service.",
        )
        .arg(binary)
        .arg(json_argument());
    admin_client::add_to(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let binary = match matches.get_one::<PathBuf>("binary") {
        None => String::new(),
        Some(path) => {
            let whole = std::path::absolute(path).ok();
            let text = whole.as_deref().and_then(|path| path.to_str());
            let unusable = || Failure::Unusable(format!("{}: not UTF-8", path.display()));
            text.ok_or_else(unusable)?.to_owned()
        }
    };
    let answer =
        AdminClient::new(matches)?.patient(LONGEST_UPGRADE).ask("POST", "/upgrade", &binary)?;
    let said: Value = serde_json::from_str(&answer).map_err(|error| {
        Failure::Failed(format!("the answer of the admin server is not JSON: {error}"))
    })?;
    if matches.get_flag("json") {
        terminal::print(answer.trim_end());
        return Ok(());
    }
    terminal::print(&format!(
        "process {} serves now; new connections waited {} ms",
        said["process"], said["gap_ms"]
    ));
    Ok(())
}
