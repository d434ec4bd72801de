//! Makes the page of a folder with run records. A file may measure only one subject (a proxy,
//! scheme or engine). If one command wrote several such files, they share charts.

mod peaks;

use crate::Page;
use crate::chart::Provenance;
use crate::comparison;
use crate::figure::Place;
use crate::number::readable;
use crate::record::Record;
use crate::table::Table;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Largest number of rows in a table of a script's lines.
const MAX_LINES: usize = 200;

/// A line of a file that is not a record. Scripts beside the records write such lines.
type JsonLine = Map<String, Value>;

/// The records of a file.
#[derive(Clone, Debug)]
pub struct RecordFile {
    stem: String,
    records: Vec<Record>,
    lines: Vec<JsonLine>,
}

impl RecordFile {
    /// Reads the text of a file. `stem` is the file's name without its ending.
    pub fn read(stem: &str, text: &str) -> Self {
        let (mut records, mut lines) = (Vec::new(), Vec::new());
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(record) => records.push(record),
                Err(_) => lines.extend(serde_json::from_str::<JsonLine>(line)),
            }
        }
        Self { stem: stem.into(), records, lines }
    }

    /// Returns the file's name without its ending.
    fn stem(&self) -> &str {
        &self.stem
    }

    fn records(&self) -> &[Record] {
        &self.records
    }

    fn is_peak(&self) -> bool {
        self.command() == "peak"
    }

    /// Returns whether the file has no record and no other line of JSON.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty() && self.lines.is_empty()
    }

    /// Returns the lines that are not records.
    pub fn other_lines(&self) -> &[JsonLine] {
        &self.lines
    }

    /// Returns the key that is equal for all files whose values appear in common charts.
    fn set(&self) -> &str {
        match self.command() {
            _ if self.is_comparison() => &self.stem,
            command if JOINED.contains(&command) => command,
            "store" => without_run(&self.stem),
            _ => &self.stem,
        }
    }

    /// Returns the command that wrote the file, such as `figure`.
    fn command(&self) -> &str {
        let setup = self.records.iter().find_map(|record| match record {
            Record::Setup(setup) => Some(setup.command.as_str()),
            _ => None,
        });
        setup.and_then(|command| command.split(' ').nth(1)).unwrap_or("")
    }

    fn is_modelled(&self) -> bool {
        let is_misses = |record: &Record| match record {
            Record::Setup(setup) => setup.command.contains("bench misses"),
            _ => false,
        };
        ["sim", "figure"].contains(&self.command()) || self.records.iter().any(is_misses)
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

/// Returns the page of the files. `second` contains the files of the same runs at another scale. A
/// verdict needs both scales.
pub fn page(title: &str, files: Vec<RecordFile>, second: &[RecordFile]) -> Page {
    let mut page = Page::new(title);
    page.figure_rows(&peaks::rows(&files, second));
    for file in joined(files) {
        page.heading(&file.stem);
        if file.is_comparison() {
            comparison::add(&mut page, &comparison::with_results(file.records));
        } else {
            let place = if file.is_modelled() { Place::Simulated } else { Place::Measured };
            let provenance =
                Provenance { source: source(&file.stem), ..provenance(&file.records, place) };
            page.records(&file.records, provenance);
        }
        for lines in by_keys(&file.lines) {
            page.table(&format!("lines of {}.jsonl", file.stem), &table(&lines));
        }
    }
    page
}

/// Returns the name of joined files for the subtitle of a chart, at most about 40 letters.
fn source(stem: &str) -> String {
    match stem.split_once(", ") {
        Some((first, rest)) if stem.len() > 40 => {
            format!("{first} and {} more files", rest.split(", ").count())
        }
        _ => stem.into(),
    }
}

/// Groups lines with the same keys.
fn by_keys(lines: &[JsonLine]) -> Vec<Vec<&JsonLine>> {
    let mut groups: Vec<Vec<&JsonLine>> = Vec::new();
    for line in lines {
        match groups.iter_mut().find(|group| group[0].keys().eq(line.keys())) {
            Some(group) => group.push(line),
            None => groups.push(vec![line]),
        }
    }
    groups
}

fn table(lines: &[&JsonLine]) -> Table {
    let heads: Vec<&str> = lines[0].keys().map(String::as_str).collect();
    let mut table = Table::new(&heads);
    let cell = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), readable),
        Value::Null => "–".into(),
        other => other.to_string(),
    };
    for line in lines.iter().take(MAX_LINES) {
        table.row(&line.values().map(cell).collect::<Vec<_>>());
    }
    table
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

/// Commands that measure one subject (a proxy, scheme or engine) in a run, so that a chart compares
/// several files.
const JOINED: [&str; 4] = ["disk", "load", "peak", "wpb"];

/// Joins the files of each command in [`JOINED`], and the runs of `foxy store bench`. If a subject
/// (a proxy, scheme or engine) occurs in several files, it gets the name of its file without the
/// number of the run. It keeps its name if all files are runs of the same subjects.
fn joined(files: Vec<RecordFile>) -> Vec<RecordFile> {
    let mut sets: Vec<(String, Vec<RecordFile>)> = Vec::new();
    for file in files.into_iter().filter(|file| !file.is_empty()) {
        let key = file.set().to_owned();
        match sets.iter_mut().find(|set| set.0 == key) {
            Some(set) => set.1.push(file),
            None => sets.push((key, vec![file])),
        }
    }
    sets.into_iter().map(|(_, files)| join(files)).collect()
}

/// Returns the name of a file without the number of the run and what follows a dot, as in
/// `squid-2.disk`.
fn without_run(stem: &str) -> &str {
    let stem = stem.split('.').next().unwrap_or(stem);
    match stem.rsplit_once('-') {
        Some((name, run)) if run.len() == 1 && run.bytes().all(|one| one.is_ascii_digit()) => name,
        _ => stem,
    }
}

fn join(mut files: Vec<RecordFile>) -> RecordFile {
    let count = files.len();
    let seen: Vec<Vec<String>> =
        files.iter().map(|file| file.subjects().into_iter().map(str::to_owned).collect()).collect();
    let is_one_set =
        files.iter().all(|file| without_run(&file.stem) == without_run(&files[0].stem));
    let is_repeated = |name: &str| {
        count > 1
            && !is_one_set
            && seen.iter().filter(|names| names.iter().any(|one| one == name)).count() > 1
    };
    for (file, names) in files.iter_mut().zip(&seen) {
        for record in &mut file.records {
            let Some(own) = subject(record).filter(|name| is_repeated(name)) else { continue };
            let stem = without_run(&file.stem);
            let name = if names.len() > 1 { format!("{own}, {stem}") } else { stem.to_owned() };
            rename(record, &name);
        }
    }
    let mut stems: Vec<&str> = Vec::new();
    for file in &files {
        let stem = if count > 1 { without_run(&file.stem) } else { &file.stem };
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    let stem = stems.join(", ");
    let (mut records, mut lines): (Vec<Record>, Vec<JsonLine>) = (Vec::new(), Vec::new());
    for (number, file) in files.into_iter().enumerate() {
        let keeps = |record: &Record| number == 0 || !matches!(record, Record::Setup(_));
        records.extend(file.records.into_iter().filter(keeps));
        lines.extend(file.lines);
    }
    RecordFile { stem, records, lines }
}

fn provenance(records: &[Record], place: Place) -> Provenance {
    let setup = records.iter().find_map(|record| match record {
        Record::Setup(setup) => Some(setup),
        _ => None,
    });
    let (scale, quick) = setup.map_or((1.0, false), |setup| (setup.scale, setup.quick));
    // The records may come from several files. Then each file has its own record of the same
    // measure, and the numbers of runs add up.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Machine, Measure, Setup};

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
        let records = vec![Record::Setup(setup), measure];
        RecordFile { stem: stem.into(), records, lines: Vec::new() }
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

    #[test]
    fn lines_of_scripts_are_tables() {
        let text = "{\"round\":1,\"us\":35.5}\n{\"round\":2,\"us\":36}\nno JSON\n";
        let file = RecordFile::read("rounds", text);
        assert_eq!((file.records.len(), file.other_lines().len()), (0, 2));
        let html = page("a", vec![file], &[]).html();
        assert!(html.contains("<td class=\"number\">35.5</td>"), "{html}");
    }
}
