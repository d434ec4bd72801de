//! `foxy store list`: lists the stored objects of a running foxy, or of a store that is not in use.

mod at_rest;
mod listing;
mod running;

use crate::commands::admin_client;
use crate::failure::Failure;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_base::clock;
use foxy_cli::json_argument;
use foxy_rules::operator::Pattern;
use listing::{Filter, Listing};
use std::path::PathBuf;

pub fn command() -> Command {
    let flag = |name: &'static str, help| Arg::new(name).long(name).help(help);
    let pattern = |text: &str| text.parse::<Pattern>();
    let folder = "Folder of a store that no foxy uses [default: ask the running foxy]";
    let host = "Only objects of this host, such as example.org or '*.example.org'";
    let path = "Only objects whose path matches this pattern, such as '/images/*'";
    let limit = "Number of objects to show: the first in the order of host and path";
    let command = Command::new("list")
        .about("List stored objects by host and path")
        .long_about(
            "List stored objects by host and path, with size, age, remaining freshness, uses and \
             number of parts. Without a folder, the command asks a running foxy for the objects on \
             its disks. The command cannot list a store whose scheme keeps each object in a file \
             of its own, such as ufs. The remaining freshness of a store that is not in use \
             ignores rules.",
        )
        .arg(
            Arg::new("folder")
                .value_name("FOLDER")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with_all(["config", "admin", "admin-token-file", "memory"])
                .help(folder),
        )
        .arg(flag("host", host).value_name("PATTERN").value_parser(pattern))
        .arg(flag("path", path).value_name("PATTERN").value_parser(pattern))
        .arg(
            flag("limit", limit)
                .value_name("N")
                .value_parser(value_parser!(usize))
                .default_value("100"),
        )
        .arg(
            flag("all", "Show all objects, in the order in which foxy finds them")
                .action(ArgAction::SetTrue)
                .conflicts_with("limit"),
        )
        .arg(
            flag("memory", "List the objects in the memory of the running foxy")
                .action(ArgAction::SetTrue),
        )
        .arg(json_argument().help("Print one JSON object for each object, then the counts"));
    admin_client::add_to(command)
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let pattern = |name: &str| matches.get_one::<Pattern>(name).cloned();
    let limit = *matches.get_one::<usize>("limit").expect("has a default");
    let limit = (!matches.get_flag("all")).then_some(limit);
    let filter = Filter { host: pattern("host"), path: pattern("path") };
    let mut listing = Listing::new(filter, limit, matches.get_flag("json"), clock::wall());
    match matches.get_one::<PathBuf>("folder") {
        Some(folder) => at_rest::list(folder, &mut listing)?,
        None => running::list(matches, &mut listing)?,
    }
    listing.finish();
    Ok(())
}
