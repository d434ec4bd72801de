//! `foxy purge`: removes stored responses from the caches of a running foxy.

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
    let tag = "Purge responses with this word in Surrogate-Key or Cache-Tag; can be repeated";
    let site = "Purge every response of a host, such as example.com or http://example.com:8080; can be repeated";
    let names = ArgGroup::new("what").args(["url", "tag", "prefix", "site", "all"]);
    let command = Command::new("purge")
        .about("Purge stored responses of a running foxy")
        .long_about(
            "Purge stored responses of a running foxy. A purge makes responses stale, so foxy \
             validates them at the origin server before it serves them again. With --hard foxy \
             removes the responses. When this command ends, the purge is durable: no crash can \
             undo it.",
        )
        .arg(url.help("Purge all variants of this URL"))
        .arg(many("tag", "TAG", tag))
        .arg(many("prefix", "URL", "Purge all URLs that start with this text; can be repeated"))
        .arg(many("site", "HOST", site))
        .arg(flag("all", "Purge every response").action(ArgAction::SetTrue))
        .arg(
            flag("hard", "Remove the responses instead of making them stale")
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
    let said: Value = serde_json::from_str(&answer).map_err(|error| {
        Failure::Failed(format!("the answer of the admin server is not JSON: {error}"))
    })?;
    let (purged, number) = (&said["purged"], &said["number"]);
    let what = if matches.get_flag("hard") { "gone" } else { "stale" };
    terminal::print(&format!("purged: {purged} ({what}); purge number {number}"));
    Ok(())
}
