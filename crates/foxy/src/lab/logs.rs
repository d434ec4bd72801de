//! Logs of gets that a command is given: opened and read, and what became of their lines. What the bytes mean is
//! foxy-workload's business.

use super::arguments::option;
use crate::failure::Failure;
use crate::lab::progress::Progress;
use clap::{Arg, ArgMatches, value_parser};
use foxy_workload::Trace;
use foxy_workload::trace::report::Example;
use foxy_workload::trace::{Format, ReadReport, read};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The log's format.
pub fn format() -> Arg {
    option("format", "FORMAT", "squid, common, combined, csv or parquet; without it the format is guessed")
        .value_parser(value_parser!(Format))
}

/// Reads a log in the format that the arguments name, if any; - is the standard input. One without any get is refused.
/// `option` goes before the name in what is said about it.
///
/// # Errors
/// What is wrong with the log.
pub fn read_log(matches: &ArgMatches, option: &str, path: &Path) -> Result<(Trace, ReadReport), Failure> {
    let unusable = |what: String| Failure::Unusable(format!("{option}{}: {what}", path.display()));
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let opened = File::open(path);
        Box::new(opened.map_err(|error| unusable(format!("cannot be opened: {error}; name a log to read")))?)
    };
    let mut progress = Progress::new("lines", None);
    let format = matches.get_one::<Format>("format").copied();
    let read = read(input, format, &mut |lines| progress.update(lines));
    drop(progress);
    let (trace, report) = read.map_err(|error| unusable(error.to_string()))?;
    if trace.gets.is_empty() {
        let reasons: Vec<String> =
            report.reasons().map(|(reason, count)| format!("{count} {reason}")).collect();
        return Err(unusable(format!(
            "no GET in {} lines read as {} ({}); name the right --format, or a log that has some",
            report.lines,
            report.format,
            if reasons.is_empty() { "it is empty".into() } else { reasons.join(", ") }
        )));
    }
    Ok((trace, report))
}

/// The first lines that could not be understood, one line of text each.
pub fn examples(report: &ReadReport) -> impl Iterator<Item = String> {
    let show =
        |Example { line, reason, text }: &Example| format!("line {line}: {reason}: {}", text.escape_debug());
    report.examples.iter().map(show)
}
