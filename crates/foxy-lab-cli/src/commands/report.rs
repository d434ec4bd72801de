//! `foxy report`: draws run records again, as pages and pictures.

use crate::arguments::path;
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::terminal;
use foxy_report::chart::Provenance;
use foxy_report::page::charts;
use foxy_report::{Page, Place, Record, comparison};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const LONG: &str = "\
Draw run records again. Each PATH is a file that a command wrote with --json, or a folder with \
such files (.jsonl). For each PATH, the command writes a page NAME.html, and a picture NAME-1.svg, \
NAME-2.svg and so on for each chart. NAME is the last part of PATH. A chart shows the records of \
all files of load, peak or wpb in a folder, and otherwise of one file.";

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
        let count = write(out, &name, files)?;
        terminal::print(&format!("{name}.html: {count} pictures"));
    }
    Ok(())
}

/// The records of a file.
struct RecordFile {
    stem: String,
    records: Vec<Record>,
}

impl RecordFile {
    /// Returns the command that wrote the file, such as `figure`.
    fn command(&self) -> &str {
        let setup = self.records.iter().find_map(|record| match record {
            Record::Setup(setup) => Some(setup.command.as_str()),
            _ => None,
        });
        setup.and_then(|command| command.split(' ').nth(1)).unwrap_or("")
    }

    fn is_comparison(&self) -> bool {
        let is_repeat =
            |record: &Record| matches!(record, Record::Measure(one) if one.repeat.is_some());
        self.records.iter().any(is_repeat)
    }

    fn subjects(&self) -> BTreeSet<&str> {
        self.records.iter().filter_map(|record| subject(record)).collect()
    }
}

/// Returns the subject of a record that a chart draws as a series.
fn subject(record: &Record) -> Option<&str> {
    match record {
        Record::Measure(one) if one.workload.is_none() => Some(&one.subject),
        Record::Timeline(one) => Some(&one.subject),
        Record::Histogram { subject, .. } => Some(subject),
        _ => None,
    }
}

fn rename(record: &mut Record, name: &str) {
    match record {
        Record::Measure(one) if one.workload.is_none() => one.subject = name.into(),
        Record::Timeline(one) => one.subject = name.into(),
        Record::Histogram { subject, .. } => *subject = name.into(),
        _ => {}
    }
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
        let text = std::fs::read_to_string(file).map_err(|error| unusable("PATH", file, &error))?;
        // Lines that are not records of a run, such as the output of a script, have no chart.
        let records = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(RecordFile { stem, records })
    };
    let read: Vec<RecordFile> = files.iter().map(read).collect::<Result<_, Failure>>()?;
    if read.iter().all(|file| file.records.is_empty()) {
        let path = path.display();
        return Err(Failure::Unusable(format!(
            "{path}: no run records; name a file that --json wrote, or a folder of .jsonl files"
        )));
    }
    Ok(read)
}

/// Commands that measure one subject in a run, so that a chart compares several files.
const JOINED: [&str; 3] = ["load", "peak", "wpb"];

/// Joins the files of each command in [`JOINED`]. A subject that occurs in several files gets the
/// name of its file without the number of the run.
fn joined(files: Vec<RecordFile>) -> Vec<RecordFile> {
    let mut sets: Vec<(String, Vec<RecordFile>)> = Vec::new();
    for file in files.into_iter().filter(|file| !file.records.is_empty()) {
        let is_joined = JOINED.contains(&file.command()) && !file.is_comparison();
        let key = if is_joined { file.command() } else { file.stem.as_str() };
        let key = key.to_owned();
        match sets.iter_mut().find(|set| set.0 == key) {
            Some(set) => set.1.push(file),
            None => sets.push((key, vec![file])),
        }
    }
    sets.into_iter().map(|(_, files)| join(files)).collect()
}

/// Returns the name of a file without the number of the run, as in `squid-2`.
fn without_run(stem: &str) -> &str {
    match stem.rsplit_once('-') {
        Some((name, run)) if run.len() == 1 && run.bytes().all(|one| one.is_ascii_digit()) => name,
        _ => stem,
    }
}

fn join(mut files: Vec<RecordFile>) -> RecordFile {
    let count = files.len();
    let seen: Vec<Vec<String>> =
        files.iter().map(|file| file.subjects().into_iter().map(str::to_owned).collect()).collect();
    let is_repeated = |name: &str| {
        count > 1 && seen.iter().filter(|names| names.iter().any(|one| one == name)).count() > 1
    };
    for (file, names) in files.iter_mut().zip(&seen) {
        for record in &mut file.records {
            let Some(own) = subject(record).filter(|name| is_repeated(name)) else { continue };
            let stem = without_run(&file.stem);
            let name = if names.len() > 1 { format!("{own}, {stem}") } else { stem.to_owned() };
            rename(record, &name);
        }
    }
    let stems: Vec<&str> = files.iter().map(|file| file.stem.as_str()).collect();
    let stem = stems.join(", ");
    let mut records: Vec<Record> = Vec::new();
    for (number, file) in files.into_iter().enumerate() {
        let keeps = |record: &Record| number == 0 || !matches!(record, Record::Setup(_));
        records.extend(file.records.into_iter().filter(keeps));
    }
    RecordFile { stem, records }
}

/// Writes the page and the pictures. Returns the number of pictures.
fn write(out: &Path, name: &str, files: Vec<RecordFile>) -> Result<usize, Failure> {
    let mut page = Page::new(&format!("Records: {name}"));
    let mut count = 0;
    for file in joined(files) {
        if file.is_comparison() {
            let place = out.join(format!("{name}-{}.html", file.stem));
            let html = comparison::page(&file.records);
            std::fs::write(&place, html).map_err(|error| unusable("--out", &place, &error))?;
            continue;
        }
        let modelled = ["sim", "figure"].contains(&file.command());
        let place = if modelled { Place::Simulated } else { Place::Measured };
        let provenance = provenance(&file.records, place);
        page.heading(&file.stem);
        page.records(&file.records, provenance.clone());
        for chart in charts(&file.records, &provenance) {
            count += 1;
            let place = out.join(format!("{name}-{count}.svg"));
            std::fs::write(&place, chart.svg())
                .map_err(|error| unusable("--out", &place, &error))?;
        }
    }
    let place = out.join(format!("{name}.html"));
    std::fs::write(&place, page.html()).map_err(|error| unusable("--out", &place, &error))?;
    Ok(count)
}

fn provenance(records: &[Record], place: Place) -> Provenance {
    let setup = records.iter().find_map(|record| match record {
        Record::Setup(setup) => Some(setup),
        _ => None,
    });
    let (scale, quick) = setup.map_or((1.0, false), |setup| (setup.scale, setup.quick));
    // The records may come from several files. Then each file has its own record of a measure.
    let mut runs: BTreeMap<(&str, &str, Option<&str>), u32> = BTreeMap::new();
    for record in records {
        if let Record::Measure(one) = record {
            *runs.entry((&one.name, &one.subject, one.workload.as_deref())).or_default() +=
                one.repeats;
        }
    }
    let seeds = runs.into_values().max().unwrap_or(1);
    Provenance { source: String::new(), place, scale, quick, seeds }
}

fn unusable(option: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::Unusable(format!("{option} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_report::{Machine, Measure, Setup};

    fn file(stem: &str, command: &str, subject: &str) -> RecordFile {
        let setup = Setup {
            program: "foxy".into(),
            version: String::new(),
            command: format!("foxy {command} --quick"),
            machine: Machine::default(),
            seed: 1,
            scale: 1.0,
            quick: false,
            started: 0,
        };
        let measure = Record::Measure(Measure::once("hit_ratio", subject, 0.5, "share"));
        RecordFile { stem: stem.into(), records: vec![Record::Setup(setup), measure] }
    }

    #[test]
    fn files_of_one_command_are_joined_and_a_repeated_subject_gets_its_files_name() {
        let files = vec![
            file("narrow-1", "peak", "squid"),
            file("narrow-2", "peak", "squid"),
            file("wide-1", "peak", "squid"),
            file("foxy-1", "peak", "foxy"),
            file("sweep", "sim", "ufs"),
        ];
        let sets = joined(files);
        let names: Vec<Vec<&str>> =
            sets.iter().map(|set| set.subjects().into_iter().collect()).collect();
        assert_eq!(names, [vec!["foxy", "narrow", "wide"], vec!["ufs"]]);
        let seeds: Vec<_> =
            sets.iter().map(|set| provenance(&set.records, Place::Measured).seeds).collect();
        assert_eq!(seeds, [2, 1], "two files of `narrow`");
    }
}
