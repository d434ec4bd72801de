//! `--seed N`.

use super::arguments::option;
use clap::{Arg, ArgMatches, value_parser};

pub fn argument(help: &'static str) -> Arg {
    option("seed", "N", help).default_value("1").value_parser(value_parser!(u64))
}

pub fn of(matches: &ArgMatches) -> u64 {
    *matches.get_one("seed").expect("has a default")
}
