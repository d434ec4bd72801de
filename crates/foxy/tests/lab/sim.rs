//! Tests the program `foxy sim`: tables, records and exit codes.

use crate::support::commands::{command, ended, foxy, measure, records};
use std::path::Path;

fn sim(arguments: &[&str]) -> (Option<i32>, String, String) {
    foxy(&[&["sim"], arguments].concat())
}

/// Runs `foxy sim`, and reads its records. Returns its standard output and the measures.
fn measured(folder: &Path, arguments: &[&str]) -> (String, Vec<serde_json::Value>) {
    let file = folder.join("run.jsonl");
    let (code, out, err) = sim(&[arguments, &["--json", file.to_str().expect("UTF-8")]].concat());
    assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
    let mut measures = records(&file);
    measures.retain(|record| record["kind"] == "measure");
    (out, measures)
}

fn value(measures: &[serde_json::Value], name: &str, subject: &str) -> f64 {
    let found = measure(measures, subject, name);
    found.unwrap_or_else(|| panic!("no {name} of {subject} in {measures:?}"))
}

fn check_unusable(arguments: &[&str], expected: &[&str]) {
    let (code, _, err) = sim(arguments);
    assert_eq!(code, Some(2), "{arguments:?}: {err}");
    for part in expected {
        assert!(err.contains(part), "{arguments:?} reported {err:?}, not {part:?}");
    }
}

/// Writes a log with six requests for three URLs, and two invalid lines.
fn log(folder: &Path) -> String {
    let path = folder.join("log.csv");
    let lines =
        "time,url,bytes\n1,a,100\n2,b,300\n3,a,100\nx,c,1\n4,c,600\n5,b,300\n6,a,\n7,a,100\n";
    std::fs::write(&path, lines).expect("written");
    path.to_str().expect("UTF-8").into()
}

#[test]
fn a_log_gives_a_row_and_measures_for_each_policy_and_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let arguments = ["--trace", &log, "--policy", "lru,belady", "--cache-size", "40%", "infinite"];
    let (out, measures) = measured(folder.path(), &arguments);
    assert!(
        out.contains("8 lines read as csv, 6 gets of 3 URLs, 1 left out: no valid time"),
        "{out}"
    );
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
    let arguments =
        ["--workload", "bu95", "--requests", "4000", "--scale", "0.5", "--seed", "1", "2", "3"];
    let (out, measures) =
        measured(folder.path(), &[&arguments[..], &["--policy", "gdsf"]].concat());
    assert!(out.contains("workload bu95, synthetic: 2000 gets"), "{out}");
    let found =
        measures.iter().find(|measure| measure["subject"] == "gdsf@10%").expect("a measure");
    assert_eq!(found["repeats"], 3);
    assert!(
        found["low"].as_f64().is_some_and(|low| Some(low) < found["value"].as_f64()),
        "{found}"
    );
}

#[test]
fn an_unknown_name_is_answered_with_those_there_are() {
    check_unusable(
        &["--workload", "dev"],
        &["--workload dev", "the workloads are table1, dec, bu95, ircache"],
    );
    check_unusable(
        &["--workload", "dec", "--policy", "coffee"],
        &["--policy coffee", "lru, ", "sieve", "belady"],
    );
    check_unusable(&["--workload", "dec", "--scale", "0"], &["above 0"]);
    check_unusable(
        &["--trace", "/nonexistent/log"],
        &["--trace /nonexistent/log: cannot be opened"],
    );
    check_unusable(&[], &["--trace <FILE>|--workload <NAME>"]);
}

#[test]
fn what_has_no_meaning_without_a_scheme_is_refused() {
    let log = ["--workload", "dec", "--requests", "10", "--policy", "lru"];
    for (option, value) in [
        ("--device", "memory"),
        ("--utilization", "60"),
        ("--prefetch", "4K"),
        ("--ufs-mapping", "round-robin"),
        ("--memory", "1M"),
        ("--disk", "1M"),
    ] {
        check_unusable(&[&log[..], &[option, value]].concat(), &["--scheme"]);
    }
}

const SMALL: [&str; 6] = ["--workload", "table1", "--scale", "0.004", "--seed", "5"];

#[test]
fn saved_operations_replayed_give_the_same_counts() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("operations");
    let file = file.to_str().expect("UTF-8");
    let schemes = ["--scheme", "ufs,stream", "--utilization", "50,75"];
    let saving = [&SMALL[..], &schemes, &["--save-operations", file]].concat();
    let (out, made) = measured(folder.path(), &saving);
    assert!(
        out.contains("4233 gets become") && out.contains("On memory (counts only, no time)"),
        "{out}"
    );
    let replaying = [&["--operations", file, "--seed", "5"][..], &schemes].concat();
    let (_, replayed) = measured(folder.path(), &replaying);
    assert_eq!(made, replayed);
    assert!(value(&made, "creates_per_get", "ufs") > 0.3);
    assert!(value(&made, "seeks_per_get", "stream@50%") < value(&made, "seeks_per_get", "ufs"));
    assert!(
        !made.iter().any(|measure| measure["name"] == "url_gets_per_second"),
        "memory has no time"
    );
}

#[test]
fn the_modelled_disk_gives_rates_and_latencies() {
    let folder = tempfile::tempdir().expect("a folder");
    let arguments = [&SMALL[..], &["--scheme", "stream", "--device", "mechanical"]].concat();
    let (out, measures) = measured(folder.path(), &arguments);
    assert!(out.contains("simulated in virtual time"), "{out}");
    assert!(value(&measures, "url_gets_per_second", "stream@75%") > 1.0);
    assert!(value(&measures, "read_modify_writes_per_get", "stream@75%") > 0.0);
    assert!(out.contains("rmw"), "{out}");
    let latency = |name| value(&measures, name, "stream@75%");
    assert!(latency("latency_p99_us") >= latency("latency_p50_us"));
}

#[test]
fn a_store_that_does_not_fit_the_modelled_disk_has_no_rate_but_a_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.jsonl");
    let too_large = ["--scheme", "stream,coss", "--device", "mechanical", "--utilization", "2"];
    let arguments = [&SMALL[..], &too_large, &["--json", file.to_str().expect("UTF-8")]].concat();
    let (code, out, err) = sim(&arguments);
    assert_eq!(code, Some(3), "{out}{err}");
    assert!(out.contains("4233 gets") && out.contains("does not fit the modelled disk"), "{out}");
    let records = std::fs::read_to_string(&file).expect("written");
    assert!(
        records.contains(
            r#"{"kind":"failed-run","subject":"stream@2%","reason":"failed: its store of"#
        ),
        "{records}"
    );
    assert!(!records.contains("url_gets_per_second"), "{records}");
}

#[test]
fn operations_of_none_have_no_rate() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = log(folder.path());
    let arguments =
        ["--trace", &log, "--scheme", "stream", "--device", "mechanical", "--disk", "1"];
    let (out, measures) = measured(folder.path(), &arguments);
    assert!(out.contains("nothing reached the disk"), "{out}");
    assert!(
        !measures.iter().any(|measure| measure["name"] == "url_gets_per_second"),
        "{measures:?}"
    );
}

#[test]
fn the_mapping_of_ufs_decides_how_many_folders_are_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let creates = |mapping| {
        let arguments = [&SMALL[..], &["--scheme", "ufs", "--ufs-mapping", mapping]].concat();
        value(&measured(folder.path(), &arguments).1, "creates_per_get", "ufs")
    };
    assert!(creates("round-robin") > creates("consecutive"));
}

#[test]
fn more_gets_than_memory_holds_are_refused() {
    let most = u64::MAX.to_string();
    check_unusable(
        &["--workload", "table1", "--requests", &most],
        &["--requests", "at most 100000000"],
    );
}

#[test]
fn a_full_standard_output_is_a_failure() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let arguments = ["sim", "--workload", "bu95", "--requests", "100", "--policy", "lru"];
    let (code, _, err) = ended(command(&arguments).stdout(full));
    assert_eq!(code, Some(3));
    assert!(err.contains("standard output cannot be written"), "{err}");
}

#[test]
fn a_folder_is_left_as_it_was_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let device = folder.path().join("disk");
    std::fs::create_dir(&device).expect("made");
    let name = device.to_str().expect("UTF-8");
    let arguments =
        [&SMALL[..], &["--scheme", "single-directory,packetizer", "--device", name]].concat();
    let (out, measures) = measured(folder.path(), &arguments);
    assert!(out.contains(&format!("On {name}, measured")), "{out}");
    assert!(value(&measures, "completion_seconds", "single-directory") > 0.0);
    assert_eq!(std::fs::read_dir(&device).expect("still there").count(), 0);
}

#[test]
fn a_folder_in_use_is_said_in_the_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let _in_use = foxy_device::Root::open(folder.path()).expect("opens");
    let name = folder.path().to_str().expect("UTF-8");
    let (code, out, err) = sim(&[&SMALL[..], &["--scheme", "stream", "--device", name]].concat());
    assert_eq!(code, Some(3), "{err}");
    assert!(
        out.lines().any(|line| line.starts_with("stream ") && line.contains("in use")),
        "{out}"
    );
    assert!(err.contains("no run succeeded"), "{err}");
}

#[test]
fn schemes_devices_and_files_that_cannot_be_used_are_refused() {
    let scheme = |name, more: &[&'static str]| [&SMALL[..], &["--scheme", name], more].concat();
    check_unusable(&scheme("coffee", &[]), &["--scheme coffee", "stream", "ufs"]);
    check_unusable(
        &scheme("ufs", &["--device", "tape"]),
        &["--device tape", "memory, null, mechanical"],
    );
    check_unusable(&scheme("ufs", &["--policy", "belady"]), &["--policy belady", "lru, "]);
    check_unusable(&scheme("ufs", &["--policy", "lru,fifo"]), &["give only one policy"]);
    check_unusable(&scheme("ufs", &["--utilization", "100"]), &["from 1 to 99"]);
    check_unusable(&scheme("ufs", &["--cache-size", "1%"]), &["--cache-size"]);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("operations");
    std::fs::write(&file, "foxy-operations 2 5 2 900 2\nw 1 2 300\nd 7 2 300\n").expect("written");
    let file = file.to_str().expect("UTF-8");
    check_unusable(
        &["--operations", file, "--scheme", "ufs"],
        &["operations: line 3: a read or delete"],
    );
    check_unusable(
        &["--operations", "/none", "--scheme", "ufs"],
        &["--operations /none: cannot be opened"],
    );
}
