//! How a run that has bars and records, and may have a page, ends: what was found is written, held
//! against the bars, and said in the exit code.

use super::bars::Bars;
use super::{page, records};
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_report::{Record, Setup};

pub fn conclude(
    matches: &ArgMatches,
    bars: &Bars<'_>,
    setup: Setup,
    found: Vec<Record>,
    failed: Option<Failure>,
    page: impl FnOnce(&Setup) -> String,
) -> Result<(), Failure> {
    page::write(matches, || page(&setup))?;
    settle(matches, bars, setup, found, failed)
}

pub fn settle(
    matches: &ArgMatches,
    bars: &Bars<'_>,
    setup: Setup,
    found: Vec<Record>,
    failed: Option<Failure>,
) -> Result<(), Failure> {
    let judged = failed.map_or_else(|| bars.missed(&found), Err);
    let held = judged.as_ref().is_ok_and(Vec::is_empty);
    records::write(matches, setup, found, held)?;
    let missed = judged?;
    if missed.is_empty() { Ok(()) } else { Err(Failure::Missed(missed.join("\n"))) }
}
