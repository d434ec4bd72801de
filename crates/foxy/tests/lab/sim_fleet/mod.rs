//! Tests `foxy sim --fleet`: its records, its parts, and the Python package `foxy_fleet`.

mod package;

use crate::support::commands::{foxy, measure, records};
use serde_json::Value;
use std::path::Path;

/// A fleet that changes: nodes are replaced, and a node is lost for some time.
const FLEET: [&str; 17] = [
    "--fleet",
    "--workload",
    "zipf",
    "--objects",
    "2000",
    "--requests",
    "20000",
    "--nodes",
    "5,20",
    "--cache-size",
    "10%",
    "--churn",
    "100",
    "--outage",
    "2@3-9",
    "--seed",
    "1,2",
];

fn sim(arguments: &[&str]) -> (Option<i32>, String, String) {
    foxy(&[&["sim"], arguments].concat())
}

/// Runs `foxy sim`, and returns its measures.
fn measures(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let file = folder.join("run.jsonl");
    let (code, out, err) = sim(&[arguments, &["--json", file.to_str().expect("UTF-8")]].concat());
    assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
    let mut measures = records(&file);
    measures.retain(|record| record["kind"] == "measure");
    measures
}

#[test]
fn merged_parts_equal_a_run_of_one_worker_exactly() {
    let folder = tempfile::tempdir().expect("a folder");
    let whole = measures(folder.path(), &FLEET);
    assert_eq!(whole, measures(folder.path(), &FLEET), "the same seed");
    let mut files = Vec::new();
    for number in 1..=3 {
        let file = folder.path().join(format!("part-{number}"));
        let (part, file) = (format!("{number}/3"), file.to_str().expect("UTF-8").to_owned());
        let (code, _, err) = sim(&[&FLEET[..], &["--part", &part, "--tallies", &file]].concat());
        assert_eq!(code, Some(0), "{err}");
        files.push(file);
    }
    let mut merge = vec!["--fleet", "--merge"];
    merge.extend(files.iter().map(String::as_str));
    assert_eq!(measures(folder.path(), &merge), whole);
    let found = |name: &str, subject: &str| measure(&whole, subject, name).expect(name);
    let hits = |placement: &str| found("hit_ratio", &format!("{placement}/20/webcosm@10%"));
    assert!(hits("owner") > hits("replicate"), "{whole:?}");
    assert!(found("former_owner_hit_ratio", "owner/5/webcosm@10%") > 0.0, "{whole:?}");
}

#[test]
fn unusable_fleets_are_refused_with_the_reason() {
    let zipf = ["--fleet", "--workload", "zipf", "--requests", "10"];
    for (more, expected) in [
        (&["--nodes", "2", "--outage", "3@1-2"][..], "the fleet has 2 nodes"),
        (&["--nodes", "1", "--outage", "1@1-2"], "at least one node"),
        (&["--nodes", "2", "--entries", "3"], "only 2 nodes"),
        (&["--placement", "both"], "owner, replicate or two-tiers"),
        (&["--part", "4/3"], "no part of a fleet"),
        (&["--policy", "belady"], "--policy belady"),
        (&["--scheme", "ufs"], "cannot be used with"),
    ] {
        let (code, _, err) = sim(&[&zipf[..], more].concat());
        assert_eq!(code, Some(2), "{more:?}: {err}");
        assert!(err.contains(expected), "{more:?}: {err}");
    }
    let (code, _, err) = sim(&["--fleet", "--merge", "/nonexistent"]);
    assert_eq!(code, Some(2), "{err}");
    let (code, _, err) = sim(&["--workload", "zipf"]);
    assert!(code == Some(2) && err.contains("no such workload"), "{err}");
}
