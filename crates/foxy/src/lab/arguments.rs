//! Arguments that the lab's commands share, and how they are made. Those that stand for a thing of its own are made beside
//! it: `records`, `seed`, `workloads`, `logs`.

use super::bars::Bar;
use clap::builder::RangedU64ValueParser;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::path::PathBuf;

/// `--NAME VALUE`.
pub fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// `--NAME`, which is on when it is given.
pub fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// A path in the file system as a value.
pub fn path(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    option(name, value, help).value_parser(value_parser!(PathBuf))
}

/// Reads a number that may have a fraction, from a thousandth on.
///
/// # Errors
/// When it is none.
pub fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.001);
    number.ok_or_else(|| format!("{text:?} is not a number from 0.001 on"))
}

/// A number from 1 on as a value.
pub fn count() -> RangedU64ValueParser {
    value_parser!(u64).range(1..)
}

/// `--fail-if BAR`, any number of times; `example` is one that makes sense for the command.
pub fn fail_if(example: Option<&str>) -> Arg {
    let example = example.map(|bar| format!(", such as {bar}")).unwrap_or_default();
    Arg::new("fail-if")
        .long("fail-if")
        .value_name("BAR")
        .value_parser(value_parser!(Bar))
        .action(ArgAction::Append)
        .help(format!("End with code 1 if this holds{example}; can be repeated"))
}

/// The bars that were given.
pub fn bars(matches: &ArgMatches) -> impl Iterator<Item = &Bar> {
    matches.get_many("fail-if").into_iter().flatten()
}

/// `--html FILE`: where a page goes, which `page` writes.
pub fn html(help: &'static str) -> Arg {
    path("html", "FILE", help)
}
