//! `foxy reload`: makes a running foxy read its configuration again.

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::serve::WATCH_TIME;
use crate::serve::reload::LIVE;
use crate::terminal;
use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

pub fn command() -> Command {
    let switch = |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue);
    let command = Command::new("reload")
        .about("Make a running foxy read its configuration again")
        .long_about(format!(
            "Make a running foxy read its configuration again. foxy first checks the whole \
             configuration. Then it applies all changes and prints them. foxy changes nothing if \
             the configuration has a mistake or a change needs a restart. These can change while \
             foxy runs: rules, origins, users, {}. SIGHUP does the same, and also reads \
             certificates and opens logs again.",
            LIVE.map(|(key, _)| key).join(", ")
        ))
        .arg(switch("json").help("Print one JSON object instead of text"))
        .arg(switch("watch").help(
            "Watch for 30 seconds, and revert the change if foxy answers many more requests \
             with errors of its own",
        ));
    admin_client::add_to(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let answer = asked(matches).inspect_err(|failure| {
        if matches.get_flag("json") {
            let said = json!({ "changes": [], "error": failure.to_string() });
            terminal::print(&said.to_string());
        }
    })?;
    let said: Value = serde_json::from_str(&answer).map_err(|error| {
        Failure::Failed(format!("the answer of the admin server is not JSON: {error}"))
    })?;
    if matches.get_flag("json") {
        terminal::print(answer.trim_end());
    } else {
        terminal::print(said["report"].as_str().unwrap_or_default());
        let watched = said["watch"]["report"].as_str();
        watched.into_iter().for_each(terminal::print);
    }
    match said["watch"]["taken_back"].as_bool() {
        Some(true) => Err(Failure::Failed("the change is not in force; see the errors".into())),
        _ => Ok(()),
    }
}

/// Makes the running foxy reload. Returns its answer.
fn asked(matches: &ArgMatches) -> Result<String, Failure> {
    let client = AdminClient::new(matches)?;
    if matches.get_flag("watch") {
        return client.patient(2 * WATCH_TIME).ask("POST", "/reload?watch", "");
    }
    client.ask("POST", "/reload", "")
}
