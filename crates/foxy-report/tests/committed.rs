//! Tests the committed records: each folder makes a page, and README.md quotes their values.

use foxy_report::folder::{RecordFile, page};
use foxy_report::number::significant;
use foxy_report::{Measure, Record};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Adds to `found` each folder that directly contains files with records, and these files. Searches
/// `folder` and all folders below it.
fn folders(folder: &Path, found: &mut Vec<(PathBuf, Vec<PathBuf>)>) {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let is_file = |path: &&PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    let files: Vec<PathBuf> = paths.iter().filter(is_file).cloned().collect();
    if !files.is_empty() {
        found.push((folder.to_owned(), files));
    }
    for inside in paths.iter().filter(|path| path.is_dir()) {
        folders(inside, found);
    }
}

#[test]
fn each_folder_makes_a_page_with_charts_or_tables_from_every_record() {
    let mut found = Vec::new();
    folders(&root().join("results"), &mut found);
    assert!(found.len() > 20, "{found:?}");
    for (folder, files) in found {
        let name = folder.display();
        let read = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).expect("text");
            let stem = file.file_stem().expect("a name").to_string_lossy();
            let read = RecordFile::read(&stem, &text);
            let kinds = read.other_lines().iter().filter_map(|line| line.get("kind")?.as_str());
            let unread: Vec<&str> = kinds.filter(|kind| *kind != "round").collect();
            assert!(unread.is_empty(), "{}: unread records: {unread:?}", file.display());
            read
        };
        let html = page("a", files.iter().map(read).collect(), &[]).html();
        assert!(html.contains("<figure>") || html.contains("<table>"), "{name}: an empty page");
        assert!(!html.contains("NaN"), "{name}");
    }
}

/// The rows of README's table, each with its workload and measure.
const ROWS: [(&str, &str, &str); 5] = [
    ("CPU time per hit in memory (zipf)", "zipf", "cpu_us_per_request"),
    ("CPU time per hit on disk (disk-hit)", "disk-hit", "cpu_us_per_request"),
    ("CPU time per new object of 8 KB (fill)", "fill", "cpu_us_per_request"),
    ("bytes written to disk", "fill", "disk_bytes_per_cached_byte"),
    ("CPU time per request (polymix-4)", "polymix-4", "cpu_us_per_request"),
];
const PROXIES: [&str; 6] = ["foxy", "nginx", "varnish", "trafficserver", "squid", "apache2"];

#[test]
fn the_readme_has_the_values_of_the_record_with_their_intervals() {
    let file = root().join("results/2026-11-22-intel-xeon-2-cores-compare/records.jsonl");
    let text = std::fs::read_to_string(file).expect("text");
    let records: Vec<Record> =
        text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let cell = |workload: &str, name: &str, proxy: &str| {
        let found = records.iter().find_map(|record| match record {
            Record::Measure(one)
                if (one.name.as_str(), one.subject.as_str(), one.repeat) == (name, proxy, None)
                    && one.workload.as_deref() == Some(workload) =>
            {
                Some(one)
            }
            _ => None,
        });
        let Measure { value, low, high, .. } = found.expect("a result");
        let [value, low, high] = [value, low, high].map(|value| significant(*value, 3));
        if low == high { value } else { format!("{value} ({low}–{high})") }
    };
    let readme = std::fs::read_to_string(root().join("README.md")).expect("text");
    for (label, workload, name) in ROWS {
        let line = readme.lines().find(|line| line.starts_with(&format!("| {label}")));
        let cells: Vec<&str> = line.expect("a row").split(" | ").skip(1).collect();
        let expected = PROXIES.map(|proxy| cell(workload, name, proxy));
        assert_eq!(cells.join(" | "), format!("{} |", expected.join(" | ")), "{label}");
    }
}
