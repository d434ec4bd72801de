//! Input and output files of `foxy trace`.

use super::whole_file;
use crate::arguments::option;
use crate::logs;
use clap::{Arg, ArgMatches, value_parser};
use flate2::Compression;
use flate2::write::GzEncoder;
use foxy_cli::failure::Failure;
use foxy_cli::progress::Progress;
use foxy_cli::signals;
use foxy_report::Table;
use foxy_workload::Trace;
use foxy_workload::trace::ReadReport;
use foxy_workload::trace::write::{self, WriteFormat};
use std::path::{Path, PathBuf};

pub fn input() -> Arg {
    Arg::new("input")
        .value_name("FILE")
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .help("Log file to read, plain or gzip; - reads standard input")
}

pub fn read_trace(matches: &ArgMatches) -> Result<(Trace, ReadReport), Failure> {
    logs::read_log(matches, "", matches.get_one::<PathBuf>("input").expect("required"))
}

pub fn reading(report: &ReadReport) -> String {
    let mut table = Table::new(&["lines", "count"]);
    let packed = if report.packed { ", packed" } else { "" };
    table.row(&[format!("read ({}{packed})", report.format), report.lines.to_string()]);
    table.row(&["gets".into(), report.gets.to_string()]);
    for (reason, count) in report.reasons() {
        table.row(&[format!("left out: {reason}"), count.to_string()]);
    }
    let mut text = table.render();
    for example in logs::examples(report) {
        text.push_str(&format!("{example}\n"));
    }
    text
}

pub fn written_format() -> Arg {
    option(
        "to",
        "FORMAT",
        "Format to write: csv or squid [default: by the file name, .csv or .log; .gz compresses]",
    )
    .value_parser(["csv", "squid"])
}

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
                "{path}: the file name does not show a format; give --to csv or --to squid"
            )));
        }
    };
    let mut progress = Progress::new("gets", Some(trace.gets.len() as u64));
    let mut progress = |done| progress.update(done);
    let stop = signals::interrupted()?;
    whole_file::write(path, &stop, |mut file| {
        if !packed {
            return write::write(trace, format, &mut file, &mut progress);
        }
        let mut packer = GzEncoder::new(file, Compression::fast());
        write::write(trace, format, &mut packer, &mut progress)?;
        packer.finish().map(drop)
    })
}
