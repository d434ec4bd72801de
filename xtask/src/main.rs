//! `cargo xtask`: the source checks behind `make test`. A developer can also run each check alone.
//! The checks read source files and `cargo metadata`, and never run foxy.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks to its user"
)]

mod book;
mod dependencies;
mod imports;
mod licences;
mod names;
mod quotes;
mod ratchet;
mod test_run;
mod tidy;
mod tools;
mod workspace;

use std::process::{Command, ExitCode};

const USAGE: &str = "usage: cargo xtask STEP

  ci        every step below, in order; stops at the first that fails
  fmt       cargo fmt --check
  clippy    all lints, warnings denied; also for the proxy without the lab
  docs      rustdoc, warnings denied
  deps      dependencies point as ARCHITECTURE.md says
  tidy      every file says what it is; no leftovers; no ratchet rises (--tighten lowers the ratchets)
  licences  every dependency's licence is on the list
  tools     what the tests need beside Rust, installed if it can be
  book      the documents as a book with search, by mdbook; not part of ci
  quotes FOLDER  compares the table of quoted values with the papers in FOLDER; not part of ci
  test      cargo test over the workspace; a test that fails is run once more, alone";

/// The feature that is not in the default, because its client of S3 doubles the time of a build.
const COLD: &str = "foxy/cold";

type Step = fn() -> Result<String, String>;

const STEPS: [(&str, Step); 8] = [
    ("fmt", || cargo(&["fmt", "--all", "--check"])),
    ("deps", dependencies::check),
    ("tidy", tidy::check),
    ("licences", licences::check),
    ("clippy", || {
        let all = ["clippy", "--workspace", "--all-targets", "--features", COLD];
        cargo(&[&all[..], &["--quiet", "--", "-D", "warnings"]].concat())?;
        let proxy_alone = ["clippy", "-p", "foxy", "--no-default-features", "--features", "top"];
        cargo(&[&proxy_alone[..], &["--quiet", "--", "-D", "warnings"]].concat())
    }),
    ("docs", || cargo(&["doc", "--workspace", "--no-deps", "--quiet"])),
    ("tools", tools::check),
    ("test", || test_run::run(&["--features", COLD])),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match wanted.as_slice() {
        ["ci"] => all(),
        ["tidy", "--tighten"] => ratchet::tighten().map(|text| println!("{text}")),
        ["book"] => run("book", book::make),
        ["quotes", folder] => quotes::update(folder).map(|text| println!("{text}")),
        [name] => match STEPS.iter().find(|(step, _)| step == name) {
            Some((name, step)) => run(name, *step),
            None => Err(USAGE.into()),
        },
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// Gigabytes of disk space that a first `make test` takes.
const NEEDED_GB: u64 = 9;

/// Warns if the disk has too little space for a first `make test`. Without the warning, a test of a
/// store would fail first.
fn warn_of_little_space() {
    let output = Command::new("df").args(["-Pk", "."]).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let free = text.ok().and_then(|text| {
        let kib: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
        Some(kib * 1024 / 1_000_000_000)
    });
    if let Some(free) = free.filter(|free| *free < NEEDED_GB) {
        eprintln!("warning: {free} GB are free here; a first `make test` takes {NEEDED_GB} GB");
    }
}

/// Runs every check in order, and prints its position in the list.
fn all() -> Result<(), String> {
    warn_of_little_space();
    STEPS.iter().enumerate().try_for_each(|(before, (name, step))| {
        print!("[{} of {}] ", before + 1, STEPS.len());
        run(name, *step)
    })
}

/// Runs a check, and prints its duration.
#[expect(clippy::disallowed_methods, reason = "nothing decides by this time")]
fn run(name: &str, step: Step) -> Result<(), String> {
    println!("xtask {name} …");
    let begun = std::time::Instant::now();
    let text = step().map_err(|text| format!("xtask {name} failed\n{text}"))?;
    println!("xtask {name}: {text} ({} s)", begun.elapsed().as_secs());
    Ok(())
}

fn cargo(arguments: &[&str]) -> Result<String, String> {
    let status =
        Command::new("cargo").args(arguments).env("RUSTDOCFLAGS", "-D warnings").status().map_err(
            |error| format!("cargo did not start: {error}; is a Rust toolchain on the PATH?"),
        )?;
    if status.success() {
        Ok("ok".into())
    } else {
        Err(format!("cargo {}: {status}", arguments.join(" ")))
    }
}
