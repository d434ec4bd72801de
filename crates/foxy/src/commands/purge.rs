//! `foxy purge`: makes a running foxy forget stored responses.

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::terminal;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command};
use serde_json::{Map, Value};

pub fn command() -> Command {
    let flag = |name: &'static str, help| Arg::new(name).long(name).help(help);
    let many = |name: &'static str, value, help| {
        flag(name, help).value_name(value).action(ArgAction::Append)
    };
    let url = Arg::new("url").value_name("URL").action(ArgAction::Append);
    let tag = "Responses with that word in Surrogate-Key or Cache-Tag; can be repeated";
    let site = "Everything of a host, as example.com or http://example.com:8080";
    let names = ArgGroup::new("what").args(["url", "tag", "prefix", "site", "all"]);
    let command = Command::new("purge")
        .about("Make a running foxy forget what it has stored")
        .long_about(
            "Make a running foxy forget what it has stored. A purged response is stale, and foxy \
             validates it before it answers again; with --hard it is gone. When this command ends, \
             no crash can undo the purge.",
        )
        .arg(url.help("A URL, with all its variants"))
        .arg(many("tag", "TAG", tag))
        .arg(many("prefix", "URL", "URLs that begin so; can be repeated"))
        .arg(many("site", "HOST", site))
        .arg(flag("all", "Everything").action(ArgAction::SetTrue))
        .arg(
            flag("hard", "Remove the responses, instead of making them stale")
                .action(ArgAction::SetTrue),
        )
        .group(names.multiple(true).required(true));
    admin_client::add_to(command)
}

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
