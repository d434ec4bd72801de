//! The files of `foxy trace`: opens logs and writes traces. What the bytes mean is foxy-workload's business.

use crate::failure::Failure;
use crate::lab::progress::Progress;
use clap::{Arg, ArgMatches, value_parser};
use flate2::Compression;
use flate2::write::GzEncoder;
use foxy_report::Table;
use foxy_workload::Trace;
use foxy_workload::trace::write::{self, WriteFormat};
use foxy_workload::trace::{Format, ReadReport, read};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// The log to read.
pub fn input() -> Arg {
    Arg::new("input")
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("The log to read, packed with gzip or not; - is the standard input")
}

/// Its format.
pub fn format() -> Arg {
    Arg::new("format")
        .long("format")
        .value_name("FORMAT")
        .value_parser(value_parser!(Format))
        .help("squid, common, combined, csv or parquet; without it the format is guessed")
}

/// Reads the trace that the arguments name. One without any get is refused.
pub fn read_trace(matches: &ArgMatches) -> Result<(Trace, ReadReport), Failure> {
    let path = matches.get_one::<PathBuf>("input").expect("required");
    let unusable = |what: String| Failure::Unusable(format!("{}: {what}", path.display()));
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

/// What became of the lines, as text.
pub fn reading(report: &ReadReport) -> String {
    let mut table = Table::new(&["lines", "count"]);
    let packed = if report.packed { ", packed" } else { "" };
    table.row(&[format!("read ({}{packed})", report.format), report.lines.to_string()]);
    table.row(&["gets".into(), report.gets.to_string()]);
    for (reason, count) in report.reasons() {
        table.row(&[format!("left out: {reason}"), count.to_string()]);
    }
    let mut text = table.render();
    for example in &report.examples {
        text.push_str(&format!(
            "line {}: {}: {}\n",
            example.line,
            example.reason,
            example.text.escape_debug()
        ));
    }
    text
}

/// The format to write.
pub fn written_format() -> Arg {
    Arg::new("to")
        .long("to")
        .value_name("FORMAT")
        .value_parser(["csv", "squid"])
        .help("csv or squid; without it the file's name tells: .csv or .log, .gz behind it packs")
}

/// Writes a trace to `path`.
pub fn write_trace(trace: &Trace, path: &Path, to: Option<&String>) -> Result<(), Failure> {
    let packed = path.extension().is_some_and(|extension| extension == "gz");
    let name = if packed { path.file_stem().map(Path::new) } else { Some(path) };
    let extension = name.and_then(Path::extension).and_then(|extension| extension.to_str());
    let format = match (to.map(String::as_str), extension) {
        (Some("csv"), _) | (None, Some("csv")) => WriteFormat::Csv,
        (Some("squid"), _) | (None, Some("log")) => WriteFormat::Squid,
        _ => {
            let path = path.display();
            return Err(Failure::Unusable(format!(
                "{path}: its name tells no format; give --to csv or --to squid"
            )));
        }
    };
    let create = |error| {
        let path = path.display();
        Failure::Unusable(format!(
            "{path}: cannot be created: {error}; name a file in a folder that can be written to"
        ))
    };
    let mut file = BufWriter::new(File::create(path).map_err(create)?);
    let mut progress = Progress::new("gets", Some(trace.gets.len() as u64));
    let mut progress = |done| progress.update(done);
    let written = if packed {
        let mut packer = GzEncoder::new(&mut file, Compression::fast());
        write::write(trace, format, &mut packer, &mut progress).and_then(|()| packer.finish().map(|_| ()))
    } else {
        write::write(trace, format, &mut file, &mut progress)
    };
    written.and_then(|()| file.flush()).map_err(|error| {
        Failure::Failed(format!("{}: cannot be written: {error}; is the disk full?", path.display()))
    })
}
