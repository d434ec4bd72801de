//! Tests a running foxy with a load that is interrupted by a fault. No byte may be wrong. Requests
//! may fail only if the fault is in the origin.

mod support;

use serde_json::Value;
use support::commands::{command, ended, foxy, records};

/// Runs a load on foxy. The fault lasts for the middle third of the run. Returns a function that
/// finds the value of a measure by name.
fn load(fault: &str, more: &[&str]) -> impl Fn(&str) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = support::Foxy::start(folder.path(), &[]);
    let file = folder.path().join("run.jsonl");
    let mut load =
        command(&["load", "--proxy", &foxy.proxy.to_string(), "--fault", fault, "--seconds", "3"]);
    load.args(["--rate", "200", "--clients", "200", "--size", "4K", "--json"])
        .arg(&file)
        .args(more);
    let (code, out, err) = ended(&mut load);
    assert_eq!(code, Some(0), "{out}{err}");
    let records = records(&file);
    move |name| value(&records, name)
}

fn value(records: &[Value], name: &str) -> f64 {
    let found = records.iter().find(|record| record["name"] == name);
    found.unwrap_or_else(|| panic!("no {name}"))["value"].as_f64().expect("a number")
}

#[test]
fn what_is_stored_is_served_while_the_origin_is_gone() {
    let measure = load("origin-down", &["--workload", "zipf", "--objects", "20"]);
    assert_eq!((measure("wrong_bytes"), measure("errors")), (0.0, 0.0));
    assert_eq!(measure("answered_during_fault"), 1.0);
}

#[test]
fn what_is_not_stored_fails_only_while_the_origin_is_gone() {
    let measure = load("origin-down", &["--workload", "fill"]);
    assert_eq!((measure("wrong_bytes"), measure("errors_outside_fault")), (0.0, 0.0));
    assert!(measure("errors") > 0.0);
    assert_eq!(measure("answered_during_fault"), 0.0);
}

#[test]
fn an_origin_that_is_slow_fails_nothing() {
    let measure = load("origin-slow", &["--workload", "fill"]);
    assert_eq!((measure("wrong_bytes"), measure("errors")), (0.0, 0.0));
    assert_eq!(measure("answered_during_fault"), 1.0);
}

#[test]
fn a_disk_that_is_full_for_a_while_fails_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    // Filling the disk may take most of a second. In a run of four seconds, the disk is also full
    // for some time.
    let mut compare =
        command(&["compare", "foxy", "--workload", "disk-full", "--quick", "--seconds", "4"]);
    let (code, text, err) =
        ended(compare.arg("--folder").arg(folder.path()).arg("--out").arg(&out));
    let records = records(&out.join("records.jsonl"));
    if code == Some(3) {
        // If this user may not mount a file system, the test cannot fill a disk. The command must
        // then say so.
        assert!(err.contains("no disk to be full"), "{text}{err}");
        return;
    }
    assert_eq!(code, Some(0), "{text}{err}");
    assert_eq!((value(&records, "wrong_bytes"), value(&records, "errors")), (0.0, 0.0));
    assert_eq!(value(&records, "answered_during_fault"), 1.0);
}

#[test]
fn a_fault_without_a_middle_third_or_an_origin_of_ours_is_refused() {
    for (more, expected) in [
        (
            vec!["--workload", "table3"],
            "--fault origin-down: needs a run that ends after --seconds, and a workload of objects",
        ),
        (vec!["--origin", "a.test"], "cannot be used with '--origin"),
        (vec!["--requests", "5"], "cannot be used with '--requests"),
        (vec!["--fault", "earthquake"], "[possible values: origin-down, origin-slow]"),
    ] {
        let fault = if more[0] == "--fault" { &[][..] } else { &["--fault", "origin-down"] };
        let (code, _, err) =
            foxy(&[&["load", "--proxy", "127.0.0.1:1", "--no-warm-up"], fault, &more].concat());
        assert_eq!(code, Some(2), "{more:?}: {err}");
        assert!(err.contains(expected), "{more:?}: {err}");
    }
}
