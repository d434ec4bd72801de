//! `foxy sim` as scripts see it: tables, records, exit codes.

use std::path::Path;
use std::process::{Command, Output};

fn sim(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_foxy"));
    command.arg("sim").args(arguments).output().expect("the binary runs")
}

/// Runs it with records; gives its standard output and the measures.
fn measured(folder: &Path, arguments: &[&str]) -> (String, Vec<serde_json::Value>) {
    let file = folder.join("run.jsonl");
    let output = sim(&[arguments, &["--json", file.to_str().expect("UTF-8")]].concat());
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {out}{err}");
    let records = std::fs::read_to_string(&file).expect("written");
    let records = records.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let measures = records.filter(|record: &serde_json::Value| record["kind"] == "measure");
    (out.into_owned(), measures.collect())
}

fn value(measures: &[serde_json::Value], name: &str, subject: &str) -> f64 {
    let found = measures.iter().find(|measure| measure["name"] == name && measure["subject"] == subject);
    let found = found.unwrap_or_else(|| panic!("no {name} of {subject} in {measures:?}"));
    found["value"].as_f64().expect("a number")
}

fn check_unusable(arguments: &[&str], expected: &[&str]) {
    let output = sim(arguments);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
    for part in expected {
        assert!(err.contains(part), "{arguments:?} reported {err:?}, not {part:?}");
    }
}

/// Six gets of three URLs and two lines that are broken.
fn log(folder: &Path) -> String {
    let path = folder.join("log.csv");
    let lines = "time,url,bytes\n1,a,100\n2,b,300\n3,a,100\nx,c,1\n4,c,600\n5,b,300\n6,a,\n7,a,100\n";
    std::fs::write(&path, lines).expect("written");
    path.to_str().expect("UTF-8").into()
}

#[test]
fn a_log_gives_a_row_and_measures_for_each_policy_and_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let arguments = ["--trace", &log, "--policy", "lru,belady", "--cache-size", "40%", "infinite"];
    let (out, measures) = measured(folder.path(), &arguments);
    assert!(out.contains("8 lines read as csv, 6 gets of 3 URLs, 1 left out: no valid time"), "{out}");
    assert!(out.contains("line 4: no valid time: x,c,1"), "{out}");
    let rows: Vec<&str> = out.lines().filter(|line| line.starts_with(['l', 'b'])).collect();
    assert_eq!(rows.len(), 4, "{out}");
    assert_eq!(
        rows[0].split_whitespace().take(5).collect::<Vec<_>>(),
        ["lru", "40%", "400", "0.500", "0.333"]
    );
    assert_eq!(value(&measures, "unique_bytes", "trace"), 1000.0);
    assert_eq!(value(&measures, "hit_ratio", "lru@infinite"), 0.5);
    assert_eq!(value(&measures, "byte_hit_ratio", "belady@infinite"), 500.0 / 1500.0);
    assert!(value(&measures, "lookups_per_second", "lru@40%") > 0.0);
}

#[test]
fn seeds_of_a_workload_are_runs_of_their_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = ["--workload", "bu95", "--requests", "4000", "--scale", "0.5", "--seed", "1", "2", "3"];
    let (out, measures) = measured(folder.path(), &[&arguments[..], &["--policy", "gdsf"]].concat());
    assert!(out.contains("workload bu95, synthetic: 2000 gets"), "{out}");
    let found = measures.iter().find(|measure| measure["subject"] == "gdsf@10%").expect("a measure");
    assert_eq!(found["repeats"], 3);
    assert!(found["low"].as_f64() < found["value"].as_f64(), "{found}");
}

#[test]
fn an_unknown_name_is_answered_with_those_there_are() {
    check_unusable(&["--workload", "dev"], &["--workload dev", "there are table1, dec, bu95, ircache"]);
    check_unusable(&["--workload", "dec", "--policy", "mru"], &["--policy mru", "lru, ", "sieve", "belady"]);
    check_unusable(&["--workload", "dec", "--scale", "0"], &["above 0"]);
    check_unusable(&["--trace", "/nonexistent/log"], &["--trace /nonexistent/log: cannot be opened"]);
    check_unusable(&[], &["--trace <FILE>|--workload <NAME>"]);
}
