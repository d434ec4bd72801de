//! `foxy store bench`: benchmarks of the default store engine. Each result is a row of a table.

mod disk;
mod engine;
mod ground;
mod misses;
mod restart;

use clap::{ArgMatches, Command};
use foxy_cli::failure::Failure;

struct BenchEntry {
    command: fn() -> Command,
    run: fn(&ArgMatches) -> Result<(), Failure>,
}

const MEASURES: &[BenchEntry] = &[
    BenchEntry { command: disk::command, run: disk::run },
    BenchEntry { command: engine::command, run: engine::run },
    BenchEntry { command: misses::command, run: misses::run },
];

/// Defines `foxy store bench` and its subcommands.
pub fn command() -> Command {
    Command::new("bench")
        .about("Measure webcosm, the default store engine")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(MEASURES.iter().map(|entry| (entry.command)()))
}

/// Runs the benchmark that `matches` selects.
///
/// # Errors
///
/// Returns an error if the benchmark failed or missed a bound of `--fail-if`.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let given = matches.subcommand();
    let found = given.and_then(|(name, matches)| {
        MEASURES
            .iter()
            .find(|entry| (entry.command)().get_name() == name)
            .map(|entry| (entry, matches))
    });
    let Some((entry, matches)) = found else {
        return Err(Failure::Unusable(
            "no benchmark is given; `foxy store bench --help` lists the benchmarks".into(),
        ));
    };
    (entry.run)(matches)
}
