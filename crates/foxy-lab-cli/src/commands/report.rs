//! `foxy report`: draws run records again, as pages and pictures.

use crate::arguments::path;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::terminal;
use foxy_report::folder::{self, RecordFile};
use std::path::{Path, PathBuf};

const LONG: &str = "\
Draw run records again. Each PATH is a file that a command wrote with --json, or a folder with \
such files (.jsonl). For each PATH, the command writes a page NAME.html, and a picture NAME-1.svg, \
NAME-2.svg and so on for each chart. NAME is the last part of PATH. A chart shows the records of \
all files of load, peak or wpb in a folder, and otherwise of one file. Peaks of Squid's schemes \
get verdicts, if a folder `half` inside has the same runs at another scale.";

/// Subfolder of a folder with records. It has the records of the same runs at another scale.
const HALF: &str = "half";

pub fn command() -> Command {
    Command::new("report")
        .about("Make pages and pictures from the records of earlier runs")
        .long_about(LONG)
        .arg(
            Arg::new("records")
                .value_name("PATH")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .help("Files or folders with run records"),
        )
        .arg(path("out", "DIR", "Folder for pages and pictures").required(true))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let out = matches.get_one::<PathBuf>("out").expect("is required");
    std::fs::create_dir_all(out).map_err(|error| unusable("--out", out, &error))?;
    for path in matches.get_many::<PathBuf>("records").into_iter().flatten() {
        let files = read(path)?;
        let name = path.canonicalize().unwrap_or_else(|_| path.clone());
        let name = name.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let half = path.join(HALF);
        let second = if half.is_dir() { read(&half)? } else { Vec::new() };
        let count = write(out, &name, files, &second)?;
        terminal::print(&format!("{name}.html: {count} pictures"));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<RecordFile>, Failure> {
    let mut files = Vec::new();
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|error| unusable("PATH", path, &error))?;
        files.extend(entries.filter_map(|entry| Some(entry.ok()?.path())));
        files.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let read = |file: &PathBuf| {
        let bytes = std::fs::read(file).map_err(|error| unusable("PATH", file, &error))?;
        // Bytes that are no text are no record, so the message about missing records follows.
        let text = String::from_utf8_lossy(&bytes);
        Ok(RecordFile::read(&file.file_stem().unwrap_or_default().to_string_lossy(), &text))
    };
    let read: Vec<RecordFile> = files.iter().map(read).collect::<Result<_, Failure>>()?;
    if read.iter().all(RecordFile::is_empty) {
        let path = path.display();
        return Err(Failure::Unusable(format!(
            "{path}: no run records; name a file that --json wrote, or a folder of .jsonl files"
        )));
    }
    Ok(read)
}

/// Writes the page and the pictures. Returns the number of pictures.
fn write(
    out: &Path,
    name: &str,
    files: Vec<RecordFile>,
    second: &[RecordFile],
) -> Result<usize, Failure> {
    let page = folder::page(&format!("Records: {name}"), files, second);
    let written = |place: PathBuf, text: &str| {
        std::fs::write(&place, text).map_err(|error| unusable("--out", &place, &error))
    };
    for (number, svg) in (1..).zip(page.pictures()) {
        written(out.join(format!("{name}-{number}.svg")), svg)?;
    }
    written(out.join(format!("{name}.html")), &page.html())?;
    Ok(page.pictures().len())
}

fn unusable(option: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::Unusable(format!("{option} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_other_bytes_has_no_run_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("garbage.log");
        std::fs::write(&file, [0xff, 0xfe, b'\n', 0x80]).expect("written");
        let error = read(&file).err().map(|failure| failure.to_string()).unwrap_or_default();
        assert!(error.contains("no run records"), "{error}");
    }
}
