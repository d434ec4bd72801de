//! The run records of `--json`: setup first, end last.

use crate::{arguments, facts};
use clap::{Arg, ArgMatches};
use foxy_base::{WallTime, clock};
use foxy_cli::failure::Failure;
use foxy_report::{Record, Setup, write_records};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::OnceLock;

static STARTED: OnceLock<WallTime> = OnceLock::new();

/// Notes the start of the program for the setup record, which is written after the run.
pub fn note_start() {
    STARTED.get_or_init(clock::wall);
}

pub fn setup(matches: &ArgMatches, seed: u64) -> Setup {
    let command: Vec<String> =
        std::env::args_os().skip(1).map(|part| part.to_string_lossy().into_owned()).collect();
    Setup {
        program: "foxy".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        command: format!("foxy {}", command.join(" ")),
        machine: facts::machine(),
        seed,
        scale: 1.0,
        quick: matches!(matches.try_get_one("quick"), Ok(Some(true))),
        started: STARTED.get_or_init(clock::wall).seconds(),
    }
}

pub fn argument() -> Arg {
    arguments::output("json", "Write run records, one JSON object a line")
}

pub fn write(
    matches: &ArgMatches,
    setup: Setup,
    mut body: Vec<Record>,
    held: bool,
) -> Result<(), Failure> {
    let Some(path) = matches.get_one::<PathBuf>("json") else { return Ok(()) };
    let failed = |error: std::io::Error| {
        Failure::Failed(format!(
            "{}: run records cannot be written: {error}; name a file in a folder that can be written to",
            path.display()
        ))
    };
    let mut records = vec![Record::Setup(setup)];
    records.append(&mut body);
    records.push(Record::End { held });
    let mut file = BufWriter::new(File::create(path).map_err(failed)?);
    write_records(&mut file, &records).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::switch;
    use clap::Command;

    #[test]
    fn a_setup_says_that_a_run_was_quick_where_there_is_such_an_argument() {
        let quick = |command: Command, given: &[&str]| {
            let matches = command.try_get_matches_from([&["x"], given].concat()).expect("valid");
            setup(&matches, 1).quick
        };
        let with = || Command::new("x").arg(switch("quick", "Less of everything"));
        assert!(quick(with(), &["--quick"]));
        assert!(!quick(with(), &[]) && !quick(Command::new("x"), &[]));
    }
}
