//! Files with the counts of simulated fleets, one JSON object per line.

use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_lab::simulation::fleet::tally::FleetTally;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The counts of one simulation, or of a part of it.
#[derive(Serialize, Deserialize)]
pub struct SavedTally {
    /// Placement, number of nodes, policy and cache size.
    pub subject: String,
    pub seed: u64,
    pub tally: FleetTally,
}

/// Writes the file of `--tallies`, if it is given.
pub fn write(matches: &ArgMatches, tallies: &[SavedTally]) -> Result<(), Failure> {
    let Some(path) = matches.get_one::<PathBuf>("tallies") else { return Ok(()) };
    let line = |saved| serde_json::to_string(saved).map(|line| line + "\n");
    let text: Result<String, _> = tallies.iter().map(line).collect();
    let written = text.map_err(std::io::Error::from).and_then(|text| std::fs::write(path, text));
    written.map_err(|error| {
        Failure::Failed(format!("--tallies {}: cannot be written: {error}", path.display()))
    })
}

/// Reads the files of `--merge`, and adds the counts of all parts of a simulation.
pub fn merge(matches: &ArgMatches) -> Result<Vec<SavedTally>, Failure> {
    let mut merged: Vec<SavedTally> = Vec::new();
    for path in matches.get_many::<PathBuf>("merge").into_iter().flatten() {
        for part in read(path)? {
            let is_same = |other: &&mut SavedTally| {
                (&other.subject, other.seed) == (&part.subject, part.seed)
            };
            match merged.iter_mut().find(is_same) {
                Some(sum) => sum.tally.merge(&part.tally),
                None => merged.push(part),
            }
        }
    }
    Ok(merged)
}

fn read(path: &Path) -> Result<Vec<SavedTally>, Failure> {
    let unusable = |error: &dyn std::fmt::Display| {
        Failure::Unusable(format!(
            "--merge {}: {error}; name files that --tallies wrote",
            path.display()
        ))
    };
    let text = std::fs::read_to_string(path).map_err(|error| unusable(&error))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| unusable(&error))).collect()
}
