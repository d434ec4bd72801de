//! `foxy purge`: makes a running foxy forget what it has stored.

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::terminal;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use serde_json::{Map, Value};

/// Its arguments.
pub fn command() -> Command {
    let many = |name: &'static str, value, help| {
        Arg::new(name).long(name).value_name(value).action(ArgAction::Append).help(help)
    };
    let command = Command::new("purge")
        .about("Make a running foxy forget what it has stored")
        .long_about(
            "Make a running foxy forget what it has stored. What is purged is stale from then on \
             and validated before it \
             answers again; with --hard it is gone. When this command ends, a crash cannot bring \
             it back.",
        )
        .arg(Arg::new("url").value_name("URL").action(ArgAction::Append).help(
            "A URL, with all its \
            variants",
        ))
        .arg(many(
            "tag",
            "TAG",
            "Responses with that word in Surrogate-Key or Cache-Tag; can be \
        repeated",
        ))
        .arg(many("prefix", "URL", "URLs that begin so; can be repeated"))
        .arg(many(
            "site",
            "HOST",
            "Everything of a host, as example.com or \
        http://example.com:8080",
        ))
        .arg(Arg::new("all").long("all").action(ArgAction::SetTrue).help("Everything"))
        .arg(Arg::new("hard").long("hard").action(ArgAction::SetTrue).help(
            "For good, not only \
        stale",
        ))
        .group(
            ArgGroup::new("what")
                .args(["url", "tag", "prefix", "site", "all"])
                .multiple(true)
                .required(true),
        );
    admin_client::add_to(command)
}

/// Runs it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let mut wanted = Map::new();
    for name in ["url", "tag", "prefix", "site"] {
        let Some(values) = matches.get_many::<String>(name) else { continue };
        wanted.insert(name.into(), values.map(String::as_str).map(Value::from).collect());
    }
    for name in ["all", "hard"] {
        wanted.insert(name.into(), matches.get_flag(name).into());
    }
    let answer =
        AdminClient::new(matches)?.ask("POST", "/purge", &Value::Object(wanted).to_string())?;
    let said: Value = serde_json::from_str(&answer)
        .map_err(|error| Failure::Failed(format!("the answer cannot be read: {error}")))?;
    let (purged, number) = (&said["purged"], &said["number"]);
    let what = if matches.get_flag("hard") { "gone" } else { "stale" };
    terminal::print(&format!("purged: {purged} ({what}); purge number {number}"));
    Ok(())
}
