//! How a run that has bars, a page and records ends: what was found is held against the bars, written, and said in the exit code.

use super::arguments::bars;
use super::bars::missed;
use super::{page, records};
use crate::failure::Failure;
use clap::ArgMatches;
use foxy_report::{Record, Setup};

/// Writes what was found to the files that the arguments name. A run that failed is held against no bar.
///
/// # Errors
/// Why the run failed, if it did; a bar that was missed, or is on something that was not measured; a file that cannot be
/// written.
pub fn conclude(
    matches: &ArgMatches,
    setup: Setup,
    found: Vec<Record>,
    failed: Option<Failure>,
    page: impl FnOnce(&Setup) -> String,
) -> Result<(), Failure> {
    let missed = if failed.is_some() { Vec::new() } else { missed(bars(matches), &found)? };
    page::write(matches, || page(&setup))?;
    records::write(matches, setup, found, failed.is_none() && missed.is_empty())?;
    match failed {
        Some(failure) => Err(failure),
        None if missed.is_empty() => Ok(()),
        None => Err(Failure::Missed(missed.join("\n"))),
    }
}
