//! The seed that a run's choices follow from: an argument that the lab's commands share.

use clap::{Arg, ArgMatches, value_parser};

/// `--seed N`, 1 unless given; `help` says whose choices they are.
pub fn argument(help: &'static str) -> Arg {
    Arg::new("seed")
        .long("seed")
        .value_name("N")
        .default_value("1")
        .value_parser(value_parser!(u64))
        .help(help)
}

/// The seed that was given.
pub fn of(matches: &ArgMatches) -> u64 {
    *matches.get_one("seed").expect("has a default")
}
