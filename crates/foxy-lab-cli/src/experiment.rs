//! The common code of all measuring commands. Defines the shared flags, and checks the bounds of
//! `--fail-if` before the run. After the run, prints the table, writes the page and the records,
//! and compares the results with the bounds.

use crate::arguments::{option, output};
use crate::bars::{Bar, Bars};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use foxy_base::{WallTime, clock};
use foxy_cli::failure::Failure;
use foxy_cli::machine::Machine as Limits;
use foxy_cli::terminal;
use foxy_cli::terminal::Level;
use foxy_report::{Machine, Measurable, Record, Setup, write_records};
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::sync::OnceLock;

/// A flag that several measuring commands have.
#[derive(Clone, Copy)]
pub enum Flag {
    Seed,
    Json,
    Html,
    /// `--fail-if`. The text is the example of a bound that the help shows.
    FailIf(&'static str),
}

pub fn flags<const N: usize>(wanted: [Flag; N]) -> [Arg; N] {
    wanted.map(|flag| match flag {
        Flag::Seed => option("seed", "N", "Seed of all random choices; equal seeds repeat a run")
            .default_value("1")
            .value_parser(value_parser!(u64)),
        Flag::Json => output("json", "Write run records to this file, one JSON object per line"),
        Flag::Html => output("html", "Write the results to this HTML file"),
        Flag::FailIf(example) => Arg::new("fail-if")
            .long("fail-if")
            .value_name("BAR")
            .value_parser(value_parser!(Bar))
            .action(ArgAction::Append)
            .help(format!(
                "End with exit code 1 if this condition is true, such as {example}; can be repeated"
            )),
    })
}

/// Returns the value of the flag `--seed`.
pub fn seed(matches: &ArgMatches) -> u64 {
    *matches.get_one("seed").expect("has a default")
}

static STARTED: OnceLock<WallTime> = OnceLock::new();

/// Remembers the start time of the program for the setup record, which the command writes after the
/// run.
pub fn note_start() {
    STARTED.get_or_init(clock::wall);
}

/// Builds the setup record of a run at full scale (1.0). The seed is 0 for commands without
/// `--seed`.
pub fn setup(matches: &ArgMatches) -> Setup {
    let command: Vec<String> =
        std::env::args_os().skip(1).map(|part| part.to_string_lossy().into_owned()).collect();
    Setup {
        program: "foxy".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        command: format!("foxy {}", command.join(" ")),
        machine: machine(),
        seed: matches.try_get_one("seed").ok().flatten().copied().unwrap_or(0),
        scale: 1.0,
        quick: matches!(matches.try_get_one("quick"), Ok(Some(true))),
        started: STARTED.get_or_init(clock::wall).seconds(),
    }
}

/// The results of a run.
#[derive(Default)]
pub struct Conclusion {
    /// Tables for the terminal.
    pub text: String,
    pub warnings: Vec<String>,
    pub records: Vec<Record>,
    /// The reason why the run failed. The bounds of `--fail-if` do not apply to a failed run.
    pub failed: Option<String>,
}

/// A measuring command whose arguments are valid.
pub struct Experiment<'a> {
    command: &'static str,
    matches: &'a ArgMatches,
    bars: Option<Bars<'a>>,
    scale: f64,
}

impl<'a> Experiment<'a> {
    /// Creates an experiment without bounds of `--fail-if`. All its warnings and failures begin
    /// with the name of the command.
    pub fn new(command: &'static str, matches: &'a ArgMatches) -> Self {
        Self { command, matches, bars: None, scale: 1.0 }
    }

    /// Adds the bounds of `--fail-if`. Returns an error if a bound is on a measure that the run
    /// cannot produce.
    pub fn with_bars(mut self, measurable: Vec<Measurable>) -> Result<Self, Failure> {
        self.bars = Some(Bars::of(self.matches, measurable)?);
        Ok(self)
    }

    pub fn scaled(mut self, scale: f64) -> Self {
        self.scale = scale;
        self
    }

    pub fn finish(self, conclusion: Conclusion) -> Result<(), Failure> {
        self.finish_with_page(conclusion, |_| String::new())
    }

    /// Prints and writes the results. Calls `page` only if `--html` is given.
    pub fn finish_with_page(
        self,
        conclusion: Conclusion,
        page: impl FnOnce(&Setup) -> String,
    ) -> Result<(), Failure> {
        let Conclusion { text, warnings, records, failed } = conclusion;
        if !text.is_empty() {
            terminal::print(text.trim_end());
        }
        for warning in warnings {
            terminal::report(Level::Warning, &format!("{}: {warning}", self.command));
        }
        let setup = Setup { scale: self.scale, ..setup(self.matches) };
        if let Ok(Some(path)) = self.matches.try_get_one::<PathBuf>("html") {
            std::fs::write(path, page(&setup)).map_err(|error| {
                let path = path.display();
                Failure::Failed(format!(
                    "{path}: the page cannot be written: {error}; name a file in a folder that can be written to"
                ))
            })?;
        }
        let judged = match (failed, &self.bars) {
            (Some(reason), _) => Err(Failure::Failed(format!("{}: {reason}", self.command))),
            (None, Some(bars)) => bars.missed(&records),
            (None, None) => Ok(Vec::new()),
        };
        let held = judged.as_ref().is_ok_and(Vec::is_empty);
        write(self.matches, setup, records, held)?;
        let missed = judged?;
        if missed.is_empty() { Ok(()) } else { Err(Failure::Missed(missed.join("\n"))) }
    }
}

/// Writes all records to the file of `--json`: the setup record first, the end record last.
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

fn machine() -> Machine {
    let limits = Limits::look();
    Machine {
        cpu: model_name(&read("/proc/cpuinfo")).to_owned(),
        cores: limits.cores,
        memory: limits.memory.map_or(0, |memory| memory.0),
        kernel: format!(
            "{} {}",
            read("/proc/sys/kernel/ostype").trim(),
            read("/proc/sys/kernel/osrelease").trim()
        ),
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn model_name(text: &str) -> &str {
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    line.and_then(|rest| rest.split_once(':')).map_or("", |(_, name)| name.trim())
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
            setup(&matches).quick
        };
        let with = || Command::new("x").arg(switch("quick", "Less of everything"));
        assert!(quick(with(), &["--quick"]));
        assert!(!quick(with(), &[]) && !quick(Command::new("x"), &[]));
    }

    #[test]
    fn the_first_processors_name_is_taken() {
        assert_eq!(
            model_name("processor\t: 0\nmodel name\t: AMD EPYC\nmodel name\t: other\n"),
            "AMD EPYC"
        );
        assert_eq!(model_name("processor: 0\n"), "");
    }
}
