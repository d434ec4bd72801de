//! The log files of lab commands. Reads request logs and summarizes their lines. Writes the logs of
//! the Multiplier and the Collector (common parent proxy), the two servers of LEAP.

use super::arguments::{option, path, positive};
use clap::{Arg, ArgMatches, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::progress::Progress;
use foxy_cli::terminal;
use foxy_cli::terminal::Level;
use foxy_workload::trace::report::Example;
use foxy_workload::trace::{Builder, Format, ReadReport, Skip};
use foxy_workload::{Trace, trace};
use std::fmt::Display;
use std::fs::File;
use std::io;
use std::io::{BufWriter, LineWriter, Read, Write};
use std::path::{Path, PathBuf};

pub fn trace() -> Arg {
    path("trace", "FILE", "Send the GET requests of this log file; - reads standard input")
}

pub fn recorded() -> Arg {
    option("recorded", "N", "Start requests at the times recorded in the log, N times as fast [default without a value: 1]")
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
    const HELP: &str = "\
Format of the log: squid, common, combined, csv, parquet, json or oracle-general [default: guessed \
from the content]";
    option("format", "FORMAT", HELP).value_parser(value_parser!(Format))
}

/// Reads a log file, or standard input for `-`. Fails if the log contains no GET request. Error
/// texts begin with `option`, the name of the argument.
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
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let opened = File::open(path);
        Box::new(opened.map_err(|error| {
            unusable(format!("cannot be opened: {error}; name a log file that can be read"))
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
            "no GET request in {} lines read as {} ({}); name the right --format, or a log with GET requests",
            report.lines,
            report.format,
            if reasons.is_empty() { "the log is empty".into() } else { reasons.join(", ") }
        )));
    }
    if report.skipped(Skip::Damaged) > 0 {
        let text = format!("{option}{}: {}", path.display(), cut_off(&report));
        terminal::report(Level::Warning, &text);
    }
    Ok((trace, report))
}

fn cut_off(report: &ReadReport) -> String {
    let whole = report.lines - report.skipped(Skip::Damaged);
    format!("the data are damaged after line {whole}; the results lack all later lines")
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

pub struct LineLog {
    path: PathBuf,
    file: Option<Box<dyn Write + Send>>,
}

impl LineLog {
    pub fn create(path: Option<&PathBuf>) -> Result<Self, Failure> {
        Self::with(path, |file| Box::new(BufWriter::new(file)))
    }

    pub fn create_to_follow(path: Option<&PathBuf>) -> Result<Self, Failure> {
        Self::with(path, |file| Box::new(LineWriter::new(file)))
    }

    fn with(
        path: Option<&PathBuf>,
        writer: fn(File) -> Box<dyn Write + Send>,
    ) -> Result<Self, Failure> {
        let file = path.map(File::create).transpose().map_err(|error| {
            let path = path.map(|path| path.display().to_string()).unwrap_or_default();
            Failure::Unusable(format!("--log {path}: cannot be created: {error}; name a file in a folder that can be written to"))
        })?;
        Ok(Self { path: path.cloned().unwrap_or_default(), file: file.map(writer) })
    }

    /// Writes a line. At the first error, closes the log and returns the error as text.
    pub fn write(&mut self, line: &impl Display) -> Option<String> {
        let written = writeln!(self.file.as_mut()?, "{line}");
        written.err().map(|error| self.stop(&error))
    }

    /// Writes buffered lines to the file. Returns the error as text if the end of the log is lost.
    pub fn finish(&mut self) -> Option<String> {
        let written = self.file.as_mut()?.flush();
        written.err().map(|error| self.stop(&error))
    }

    fn stop(&mut self, error: &std::io::Error) -> String {
        self.file = None;
        format!("{}: the log stops here: {error}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    #[test]
    fn a_truncated_gzip_log_is_cut_off_after_its_last_whole_line() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::none());
        let line = |number| format!("{number},http://a.test/{number},1000\n");
        let text = "time,url,bytes\n".to_owned() + &(0..10_000).map(line).collect::<String>();
        packer.write_all(text.as_bytes()).expect("packed");
        let packed = packer.finish().expect("packed");
        let half = &packed[..packed.len() / 2];
        let (trace, report) = trace::read(half, None, &mut |_| {}).expect("read");
        let expected = format!("damaged after line {}; the results lack", trace.gets.len());
        assert!(cut_off(&report).contains(&expected), "{}", cut_off(&report));
    }
}
