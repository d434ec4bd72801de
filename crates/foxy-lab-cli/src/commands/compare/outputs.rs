//! Files of `foxy compare`. The command writes records when each trial ends, and builds reports
//! from these records.

use crate::bars::{Bar, missed};
use foxy_cli::failure::Failure;
use foxy_report::comparison::{self, Check};
use foxy_report::{Measurable, Record, write_records};
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

const RECORDS: &str = "records.jsonl";

pub struct Records {
    path: PathBuf,
    file: File,
    all: Vec<Record>,
}

impl Records {
    /// Creates the file for the records. Fails if the folder already contains records of a run.
    pub fn begin(folder: &Path) -> Result<Self, Failure> {
        let unusable =
            |what: &str| Failure::Unusable(format!("--out {}: {what}", folder.display()));
        std::fs::create_dir_all(folder).map_err(|error| {
            unusable(&format!("cannot be made: {error}; name a place that can be written to"))
        })?;
        let path = folder.join(RECORDS);
        let file = File::options().write(true).create_new(true).open(&path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => unusable(
                "already contains a comparison; name another folder, or use --report for this \
                 comparison",
            ),
            _ => unusable(&format!(
                "cannot be written to: {error}; name a folder that this user may write to"
            )),
        })?;
        Ok(Self { path, file, all: Vec::new() })
    }

    pub fn add(&mut self, records: Vec<Record>) -> Result<(), Failure> {
        let written = write_records(&mut self.file, &records);
        self.all.extend(records);
        written.map_err(|error| failed(&self.path, &error))
    }

    pub fn all(&self) -> &[Record] {
        &self.all
    }
}

pub fn read(folder: &Path) -> Result<Vec<Record>, Failure> {
    let path = folder.join(RECORDS);
    let unusable = |what: String| Failure::Unusable(format!("--report {}: {what}", path.display()));
    let file = File::open(&path).map_err(|error| {
        unusable(format!(
            "cannot be read: {error}; name the folder of a comparison, as given with --out"
        ))
    })?;
    let mut records = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line =
            line.map_err(|error| unusable(format!("line {number} is unreadable: {error}")))?;
        match serde_json::from_str(&line) {
            Ok(record) => records.push(record),
            Err(error) => {
                return Err(unusable(format!("line {number} is not a record of a run: {error}")));
            }
        }
    }
    if !records
        .iter()
        .any(|record| matches!(record, Record::Measure(measure) if measure.workload.is_some()))
    {
        return Err(unusable("the comparison contains no measurements".into()));
    }
    Ok(records)
}

/// Writes the HTML page, the Markdown file and the test report. Each file replaces an older file in
/// one step. Returns the missed bounds of `--fail-if`. If a bound names a missing measure, the
/// function returns an error after it has written the page and the Markdown.
pub fn report<'a>(
    folder: &Path,
    records: &[Record],
    bars: impl Iterator<Item = &'a Bar>,
    measurable: &[Measurable],
) -> Result<Vec<String>, Failure> {
    let write = |name: &str, text: String| {
        let (path, part) = (folder.join(name), folder.join(format!("{name}.part")));
        let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &path));
        written.map_err(|error| {
            let _half_a_report = std::fs::remove_file(&part);
            failed(&path, &error)
        })
    };
    write("report.html", comparison::page(records))?;
    write("summary.md", comparison::markdown(records))?;
    let results: Vec<Record> = records
        .iter()
        .filter(|record| matches!(record, Record::Measure(measure) if measure.repeat.is_none()))
        .cloned()
        .collect();
    let check = |bar: &Bar| -> Result<Check, Failure> {
        let missed = missed([bar], &results, measurable)?;
        let missed = (!missed.is_empty()).then(|| missed.join("; "));
        Ok(Check { name: bar.to_string(), missed })
    };
    let checks: Vec<Check> = bars.map(check).collect::<Result<_, _>>()?;
    write("junit.xml", comparison::junit(records, &checks))?;
    Ok(checks.into_iter().filter_map(|check| check.missed).collect())
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::Failed(format!(
        "{}: cannot be written: {error}; free space on its disk",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_report::Measure;

    fn measured(repeat: u32) -> Record {
        let measure = Measure::once("errors", "foxy", f64::from(repeat), "requests");
        Record::Measure(Measure { workload: Some("fill".into()), repeat: Some(repeat), ..measure })
    }

    #[test]
    fn records_of_a_run_that_was_ended_early_are_read_back_and_summarised() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut records = Records::begin(folder.path()).expect("begun");
        records.add(vec![measured(1)]).expect("written");
        records.add(vec![measured(2)]).expect("written");
        let all = comparison::with_results(read(folder.path()).expect("read"));
        assert_eq!((&all[..2], all.len()), (records.all(), 3));
        assert_eq!(comparison::with_results(all.clone()), all);
        let missed = report(folder.path(), &all, ["errors>1".parse().expect("a bar")].iter(), &[]);
        assert_eq!(missed.expect("written"), ["--fail-if errors>1: fill/foxy/errors is 1.5"]);
        let text = std::fs::read_to_string(folder.path().join("summary.md")).expect("written");
        assert!(text.contains("**Incomplete"), "{text}");
    }

    #[test]
    fn a_bar_on_what_was_not_measured_is_refused_when_page_and_summary_are_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let all = comparison::with_results(vec![measured(1)]);
        let refused =
            report(folder.path(), &all, ["hit_ratio<0.9".parse().expect("a bar")].iter(), &[]);
        assert!(matches!(refused, Err(Failure::Unusable(text)) if text.contains("not measured")));
        for name in ["report.html", "summary.md"] {
            let text = std::fs::read_to_string(folder.path().join(name)).expect("written");
            assert!(text.contains("errors"), "{name}: {text}");
        }
    }

    #[test]
    fn a_report_that_does_not_fit_the_disk_leaves_no_file_and_the_old_one_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("report.html"), "of before").expect("written");
        std::os::unix::fs::symlink("/dev/full", folder.path().join("report.html.part"))
            .expect("linked");
        let refused =
            report(folder.path(), &[measured(1)], std::iter::empty(), &[]).expect_err("no room");
        assert!(
            refused.to_string().contains("report.html: cannot be written: No space left"),
            "{refused}"
        );
        let text = std::fs::read_to_string(folder.path().join("report.html")).expect("there");
        assert_eq!(
            (text.as_str(), std::fs::read_dir(folder.path()).expect("there").count()),
            ("of before", 1)
        );
    }

    #[test]
    fn a_folder_with_a_comparison_and_one_without_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(matches!(read(folder.path()), Err(Failure::Unusable(_))));
        Records::begin(folder.path()).expect("begun");
        assert!(matches!(Records::begin(folder.path()), Err(Failure::Unusable(_))));
        std::fs::write(folder.path().join(RECORDS), "{\"kind\":\"end\"").expect("written");
        let error = read(folder.path()).expect_err("cut off").to_string();
        assert!(error.contains("line 1 is not a record"), "{error}");
    }
}
