//! `foxy purge`: removes stored responses from the caches of a running foxy.

use super::admin_client::{self, AdminClient};
use crate::failure::Failure;
use crate::serve::admin::requests::MAX_COUNTED_NAMES;
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
        .arg(
            flag(
                "dry-run",
                "Count the responses in memory, and on disk only for a URL; purge nothing",
            )
            .action(ArgAction::SetTrue),
        )
        .arg(flag("json", "Print one JSON object instead of text").action(ArgAction::SetTrue))
        .group(names.multiple(true).required(true));
    admin_client::add_to(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let mut wanted = Map::new();
    for name in ["url", "tag", "prefix", "site"] {
        let Some(values) = matches.get_many::<String>(name) else { continue };
        wanted.insert(name.into(), values.map(String::as_str).map(Value::from).collect());
    }
    for name in ["all", "hard", "dry-run"] {
        wanted.insert(name.into(), matches.get_flag(name).into());
    }
    let names = ["url", "tag", "prefix", "site"].iter().filter_map(|name| wanted.get(*name));
    let names: usize = names.filter_map(Value::as_array).map(Vec::len).sum();
    wanted.insert("count".into(), (names <= MAX_COUNTED_NAMES).into());
    let answer =
        AdminClient::new(matches)?.ask("POST", "/purge", &Value::Object(wanted).to_string())?;
    if matches.get_flag("json") {
        terminal::print(answer.trim_end());
        return Ok(());
    }
    let said: Value = serde_json::from_str(&answer).map_err(|error| {
        Failure::Failed(format!("the answer of the admin server is not JSON: {error}"))
    })?;
    terminal::print(&text(&said));
    Ok(())
}

/// Describes the answer of the admin server: the number of purged responses, and a line for each
/// name without a stored response.
fn text(said: &Value) -> String {
    let objects = match (&said["objects"]["memory"], &said["objects"]["disk"]) {
        (Value::Null, _) => format!("all of {} names", said["purged"]),
        (memory, Value::Null) => {
            format!("at least {memory}, in memory; foxy cannot count further ones on disk")
        }
        (memory, disk) => format!("{memory} in memory, {disk} more on disk"),
    };
    let is_fleet = !said["reach"].is_null();
    let objects = if is_fleet { format!("{objects}, on this node") } else { objects };
    let what = if said["strength"] == "hard" { "gone" } else { "stale" };
    let mut text = match &said["number"] {
        Value::Null => format!("responses to purge: {objects}"),
        number => format!("responses purged ({what}): {objects}; purge number {number}"),
    };
    for unmatched in said["unmatched"].as_array().into_iter().flatten() {
        let name = unmatched["name"].as_str().unwrap_or_default();
        text.push_str(&match unmatched["disk_searched"].as_bool() {
            Some(true) if is_fleet => {
                format!("\nthis node stores nothing for {name}; its owner may, see `foxy explain`")
            }
            Some(true) => format!("\nfoxy stores nothing for {name}; check the spelling"),
            _ => format!(
                "\nmemory has nothing for {name}; foxy does not search the disk for it; check the \
                 spelling"
            ),
        });
    }
    text.push_str(match said["reach"].as_str().filter(|_| !said["number"].is_null()) {
        Some("all-nodes") => "\nthe purge holds on all nodes of the fleet",
        Some(_) => "\nother nodes of the fleet purged nothing: set fleet.engine, or purge at each",
        None => "",
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_answer_counts_objects_and_names_what_means_nothing() {
        let check = |said: Value, expected: &str| assert_eq!(text(&said), expected);
        let purged = json!({ "purged": 2, "strength": "soft", "number": 17,
            "objects": { "memory": 3, "disk": 1 }, "unmatched": [] });
        check(purged, "responses purged (stale): 3 in memory, 1 more on disk; purge number 17");
        let trial = json!({ "purged": 0, "strength": "hard", "number": null,
            "objects": { "memory": 0, "disk": null },
            "unmatched": [{ "name": "site a.tst", "disk_searched": false }] });
        let expected = "responses to purge: at least 0, in memory; foxy cannot count further ones \
                        on disk\nmemory has nothing for site a.tst; foxy does not search the disk \
                        for it; check the spelling";
        check(trial, expected);
        let fleet = json!({ "purged": 1, "strength": "soft", "number": 17, "reach": "all-nodes",
            "objects": { "memory": 0, "disk": 0 },
            "unmatched": [{ "name": "url http://a.test/", "disk_searched": true }] });
        let expected = "responses purged (stale): 0 in memory, 0 more on disk, on this node; purge \
                        number 17\nthis node stores nothing for url http://a.test/; its owner may, \
                        see `foxy explain`\nthe purge holds on all nodes of the fleet";
        check(fleet, expected);
        let many = json!({ "purged": 100, "strength": "soft", "number": 17 });
        check(many, "responses purged (stale): all of 100 names; purge number 17");
    }
}
