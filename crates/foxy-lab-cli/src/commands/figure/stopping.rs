//! Ends `foxy figure` at a signal. A run of simulations ends at once. A run with real proxies and
//! file systems first removes its files.

use crate::experiment;
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_cli::signals::interrupted_then;
use foxy_cli::terminal::{self, Level};
use foxy_report::Record;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub struct Stopping {
    /// Whether a signal came.
    pub stop: Arc<AtomicBool>,
    /// Whether the run has files to remove, and therefore polls `stop`.
    pub cleans_up: Arc<AtomicBool>,
}

/// Starts to wait for signals.
pub fn at_signal(matches: &ArgMatches) -> Result<Stopping, Failure> {
    let cleans_up = Arc::new(AtomicBool::new(false));
    let (polls, matches) = (Arc::clone(&cleans_up), matches.clone());
    let stop = interrupted_then(move || {
        if !polls.load(Relaxed) {
            let failure = concluded(&matches);
            terminal::report(Level::Error, &failure.to_string());
            std::process::exit(failure.code().into());
        }
    })?;
    Ok(Stopping { stop, cleans_up })
}

/// Writes to the file of `--json` that the run was stopped. Returns the message for the operator.
fn concluded(matches: &ArgMatches) -> Failure {
    let advice = if matches.contains_id("resume") {
        "the same command continues after the last finished figure"
    } else {
        "with --resume FILE, a later run continues after the last finished figure"
    };
    let reason = "stopped by a signal".to_owned();
    let record = Record::FailedRun { subject: "figure".into(), reason };
    match experiment::write(matches, experiment::setup(matches), vec![record], false) {
        Ok(()) => Failure::Failed(format!("figure: stopped by a signal; {advice}")),
        Err(failure) => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_run_writes_so_and_names_the_way_to_continue() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name).display().to_string();
        let json = file("f.jsonl");
        let said = |more: &[&str]| {
            let given = [&["figure", "001-table2", "--json", &json], more].concat();
            let matches = super::super::command().get_matches_from(given);
            concluded(&matches).to_string()
        };
        assert!(said(&[]).contains("with --resume FILE, a later run continues"));
        assert!(said(&["--resume", &file("kept")]).contains("the same command continues"));
        let text = std::fs::read_to_string(folder.path().join("f.jsonl")).expect("written");
        let kinds: Vec<&str> = text.lines().filter_map(|line| line.split('"').nth(3)).collect();
        assert_eq!(kinds, ["setup", "failed-run", "end"], "{text}");
    }
}
