//! The seed that a run's choices follow from: an argument that the lab's commands share.

use super::arguments::option;
use clap::{Arg, ArgMatches, value_parser};

/// `--seed N`, 1 unless given; `help` says whose choices they are.
pub fn argument(help: &'static str) -> Arg {
    option("seed", "N", help).default_value("1").value_parser(value_parser!(u64))
}

/// The seed that was given.
pub fn of(matches: &ArgMatches) -> u64 {
    *matches.get_one("seed").expect("has a default")
}
