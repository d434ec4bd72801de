//! The program `foxy-torture`: runs many random schedules against the storage schemes, or replays
//! one script. It exits with 1 if a scheme violates the store's contract, and with 2 for unusable
//! arguments.

use clap::Parser;
use foxy_base::clock;
use foxy_torture::campaign::{Campaign, Findings};
use foxy_torture::run;
use foxy_torture::script::Script;
use foxy_torture::subject::{self, SCHEMES, Subject};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Tortures the store: random schedules of requests, disk faults and crashes in virtual time.
#[derive(Debug, Parser)]
struct Arguments {
    /// Total number of schedules, shared evenly among the storage schemes.
    #[arg(long, default_value_t = 10_000)]
    schedules: u64,
    /// Seed of the first schedule.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Storage scheme to test, repeatable; default: all schemes of the store.
    #[arg(long)]
    scheme: Vec<String>,
    /// Number of threads; default: the number of cores.
    #[arg(long)]
    threads: Option<usize>,
    /// File for run records, one JSON object per line.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Replay this script instead, and print every event.
    #[arg(long)]
    replay: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match &arguments.replay {
        Some(path) => replay(path),
        None => torture(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(text) => {
            let _ = writeln!(io::stderr(), "{text}");
            ExitCode::from(2)
        }
    }
}

fn replay(path: &Path) -> Result<bool, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let script: Script = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
    let outcome = run::explain(&script, subject_of(&script.scheme)?);
    outcome.log.iter().for_each(|line| say(line));
    match &outcome.failure {
        Some(failure) => say(&format!("step {}: {}", failure.step + 1, failure.violation)),
        None => say(&format!("held: {:?}", outcome.tally)),
    }
    Ok(outcome.failure.is_none())
}

fn torture(arguments: &Arguments) -> Result<bool, String> {
    let subjects: Vec<&Subject> = if arguments.scheme.is_empty() {
        SCHEMES.iter().collect()
    } else {
        arguments.scheme.iter().map(|name| subject_of(name)).collect::<Result<_, _>>()?
    };
    let threads = arguments
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let mut records = Records::open(arguments.json.as_deref())?;
    records.write(&setup(arguments, &subjects))?;
    let share = arguments.schedules.div_ceil(subjects.len().max(1) as u64);
    let mut held = true;
    for subject in subjects {
        let campaign = Campaign { first_seed: arguments.seed, schedules: share, threads };
        let started = clock::monotonic();
        let findings = campaign.against(subject, &|done| {
            let _ = write!(io::stderr(), "\r{}: {done} of {share} schedules ", subject.name);
        });
        let seconds = clock::monotonic().since(started).as_secs_f64();
        report(subject, &campaign, &findings, seconds);
        for (name, value) in [
            ("torture_schedules", findings.schedules),
            ("torture_violations", u64::from(findings.found.is_some())),
        ] {
            records.write(&json!({
                "kind": "measure", "name": name, "subject": subject.name, "value": value, "unit": "count",
                "low": null, "high": null, "repeats": 1, "seconds": seconds,
            }))?;
        }
        held &= findings.found.is_none();
    }
    records.write(&json!({ "kind": "end", "held": held }))?;
    Ok(held)
}

fn report(subject: &Subject, campaign: &Campaign, findings: &Findings, seconds: f64) {
    let tally = findings.tally;
    let last = campaign.first_seed + campaign.schedules.saturating_sub(1);
    say(&format!(
        "\r{}: {} schedules in {seconds:.1} s, seeds {} to {last}: {} crashes, {} completions, {} hits ({} by looks), {} misses, \
         {} done, {} refused",
        subject.name,
        findings.schedules,
        campaign.first_seed,
        tally.crashes,
        tally.completions,
        tally.found,
        tally.looked_up,
        tally.absent,
        tally.done,
        tally.refused,
    ));
    if let Some(found) = &findings.found {
        say(&format!("{found}"));
    }
}

fn setup(arguments: &Arguments, subjects: &[&Subject]) -> Value {
    json!({
        "kind": "setup", "program": "foxy-torture", "version": env!("CARGO_PKG_VERSION"), "seed": arguments.seed,
        "schemes": subjects.iter().map(|subject| subject.name).collect::<Vec<_>>(),
        "started": clock::wall().seconds(),
    })
}

fn subject_of(name: &str) -> Result<&'static Subject, String> {
    subject::find(name).ok_or_else(|| {
        let known: Vec<&str> = subject::all().map(|subject| subject.name).collect();
        format!("there is no scheme {name:?} to torture; there are {}", known.join(", "))
    })
}

struct Records(Option<File>);

impl Records {
    fn open(path: Option<&Path>) -> Result<Self, String> {
        let file = path
            .map(|path| File::create(path).map_err(|error| format!("{}: {error}", path.display())));
        Ok(Self(file.transpose()?))
    }

    fn write(&mut self, record: &Value) -> Result<(), String> {
        let Some(file) = &mut self.0 else { return Ok(()) };
        writeln!(file, "{record}").map_err(|error| format!("cannot write the run records: {error}"))
    }
}

fn say(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}
