//! Log files as input: arguments, reading, and a summary of their lines.

use super::arguments::{option, path, positive};
use clap::{Arg, ArgMatches, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::progress::Progress;
use foxy_cli::terminal::{self, Level};
use foxy_workload::Trace;
use foxy_workload::trace::report::Example;
use foxy_workload::trace::{self, Builder, Format, ReadReport};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub fn trace() -> Arg {
    path("trace", "FILE", "Replay this log; - is standard input")
}

pub fn recorded() -> Arg {
    option("recorded", "TIMES", "Start requests at the recorded times, N times as fast (1)")
        .num_args(0..=1)
        .default_missing_value("1")
        .value_parser(positive)
        .requires("trace")
}

pub fn read_trace(
    matches: &ArgMatches,
    command: &str,
) -> Result<Option<(Trace, ReadReport)>, Failure> {
    let Some(path) = matches.get_one::<PathBuf>("trace") else { return Ok(None) };
    read_of(Builder::default(), matches, path, command).map(Some)
}

pub fn read_trace_of_all_methods(
    matches: &ArgMatches,
    command: &str,
) -> Result<Option<(Trace, ReadReport)>, Failure> {
    let Some(path) = matches.get_one::<PathBuf>("trace") else { return Ok(None) };
    read_of(Builder::of_all_methods(), matches, path, command).map(Some)
}

fn read_of(
    builder: Builder,
    matches: &ArgMatches,
    path: &Path,
    command: &str,
) -> Result<(Trace, ReadReport), Failure> {
    let (trace, report) = read_into(builder, matches, "--trace ", path)?;
    for example in examples(&report) {
        terminal::report(Level::Warning, &format!("{command}: {example}"));
    }
    Ok((trace, report))
}

pub fn format() -> Arg {
    option(
        "format",
        "FORMAT",
        "squid, common, combined, csv or parquet; without it the format is guessed",
    )
    .value_parser(value_parser!(Format))
}

/// Reads a log; `-` is standard input. Refuses a log without gets. `option` precedes the name in
/// errors.
pub fn read_log(
    matches: &ArgMatches,
    option: &str,
    path: &Path,
) -> Result<(Trace, ReadReport), Failure> {
    read_into(Builder::default(), matches, option, path)
}

fn read_into(
    builder: Builder,
    matches: &ArgMatches,
    option: &str,
    path: &Path,
) -> Result<(Trace, ReadReport), Failure> {
    let unusable = |what: String| Failure::Unusable(format!("{option}{}: {what}", path.display()));
    let input: Box<dyn Read> =
        if path.as_os_str() == "-" {
            Box::new(io::stdin().lock())
        } else {
            let opened = File::open(path);
            Box::new(opened.map_err(|error| {
                unusable(format!("cannot be opened: {error}; name a log to read"))
            })?)
        };
    let mut progress = Progress::new("lines", None);
    let format = matches.get_one::<Format>("format").copied();
    let read = trace::read_into(builder, input, format, &mut |lines| progress.update(lines));
    drop(progress);
    let (trace, report) = read.map_err(|error| unusable(error.to_string()))?;
    if trace.gets.is_empty() && trace.others.is_empty() {
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

pub fn reading(report: &ReadReport, trace: &Trace) -> String {
    let mut text = format!(
        "{} lines read as {}, {} gets of {} URLs",
        report.lines,
        report.format,
        trace.gets.len(),
        trace.urls()
    );
    if report.others > 0 {
        text.push_str(&format!(", {} requests by other methods", report.others));
    }
    for (reason, count) in report.reasons() {
        text.push_str(&format!(", {count} left out: {reason}"));
    }
    text
}

pub fn examples(report: &ReadReport) -> impl Iterator<Item = String> {
    let show = |Example { line, reason, text }: &Example| {
        format!("line {line}: {reason}: {}", text.escape_debug())
    };
    report.examples.iter().map(show)
}
