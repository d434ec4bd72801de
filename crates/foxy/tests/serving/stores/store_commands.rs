//! Tests `foxy store bench`: its table, its records and its exit codes.

use crate::support::commands::{self, foxy, measure, records};
use std::process::Stdio;
use std::time::Duration;

fn bench(arguments: &[&str]) -> (Option<i32>, String, String) {
    foxy(&[&["store", "bench"], arguments].concat())
}

#[test]
fn misses_are_compared_over_all_workloads_and_written_as_records() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.jsonl");
    let name = file.to_str().expect("UTF-8");
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../foxy-workload/tests/data/squid.log");
    let (code, out, err) = bench(&["misses", "--quick", "--trace", log, "--json", name]);
    assert_eq!(code, Some(0), "{out}{err}");
    for workload in ["squid.log", "dec, synthetic", "cdn, synthetic", "registry, synthetic"] {
        assert!(out.lines().any(|line| line == workload), "no {workload} in {out}");
    }
    assert!(out.contains("  dec, synthetic at 10 %, webcosm: 0."), "{out}");
    let records = records(&file);
    let of = |name: &str, subject: &str| {
        let found = measure(&records, subject, name);
        found.unwrap_or_else(|| panic!("no {name} of {subject}"))
    };
    assert!((of("misses_against_lru", "lru@5% of cdn, synthetic") - 1.0).abs() < 1e-9);
    assert!(of("misses_against_lru", "webcosm@5% of cdn, synthetic") < 0.95);
    let written =
        |name: &str| of("written_per_missed_byte", &format!("{name}@5% of cdn, synthetic"));
    assert!(written("webcosm-staged") < written("webcosm"));
}

#[test]
fn the_engine_itself_stands_beside_its_model_for_the_workloads_that_are_named() {
    let (code, out, err) = bench(&["misses", "--quick", "--engine", "--workload", "dec"]);
    assert_eq!(code, Some(0), "{out}{err}");
    for row in ["webcosm-staged ", "webcosm-engine ", "webcosm-engine-held "] {
        assert_eq!(out.lines().filter(|line| line.starts_with(row)).count(), 1, "{row}: {out}");
    }
    for judged in ["webcosm", "webcosm-engine", "webcosm-engine-held"] {
        assert!(
            out.contains(&format!("  dec, synthetic at 10 %, {judged}: 0.")),
            "{judged}: {out}"
        );
    }
    assert_eq!(out.lines().filter(|line| line.ends_with(", synthetic")).count(), 1, "{out}");
}

#[test]
fn a_log_that_is_not_there_is_named() {
    let (code, _, err) = bench(&["misses", "--quick", "--trace", "/no/such.log"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("/no/such.log"), "{err}");
}

#[test]
fn the_engine_is_measured_beside_its_bars() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = folder.path().to_str().expect("UTF-8");
    let (code, out, err) = bench(&["engine", "--quick", "--folder", name]);
    assert_eq!(code, Some(0), "{out}{err}");
    let row = |name: &str| {
        out.lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("no {name} in {out}"))
    };
    for name in
        ["small_object_reads_per_hit", "small_object_read_bytes_per_hit", "objects_back_share"]
    {
        assert!(row(name).contains("held"), "{out}");
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("still there").count(),
        0,
        "nothing is left"
    );
}

#[test]
fn the_engine_is_measured_beside_the_disk_it_is_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.jsonl");
    let (name, json) = (folder.path().to_str().expect("UTF-8"), file.to_str().expect("UTF-8"));
    let (code, out, err) = bench(&["disk", "--quick", "--folder", name, "--json", json]);
    assert_eq!(code, Some(0), "{out}{err}");
    let records = records(&file);
    let of = |name: &str| {
        let found = records.iter().find(|record| record["name"] == name);
        found
            .and_then(|record| record["value"].as_f64())
            .unwrap_or_else(|| panic!("no {name} in {out}"))
    };
    for name in
        ["fill_share_of_raw", "fill_cores", "read_p99_filled_by_idle", "read_p999_filled_by_idle"]
    {
        assert!(of(name) > 0.0, "{out}");
    }
    assert!(of("read_hits_while_filled") > 0.5, "{out}");
    assert_eq!(
        std::fs::read_dir(folder.path()).expect("still there").count(),
        1,
        "only the records are left"
    );
}

#[test]
fn a_folder_that_is_not_there_is_refused_and_not_made() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("not-there");
    let name = folder.to_str().expect("UTF-8");
    for measure in ["disk", "engine"] {
        let (code, out, err) = bench(&[measure, "--quick", "--folder", name]);
        assert_eq!(code, Some(2), "{measure}: {err}");
        let first = err.lines().next().unwrap_or_default();
        let wanted = format!("--folder {name}: no such folder; name an existing folder");
        assert!(first.contains(&wanted) && out.is_empty(), "{measure}: {err}{out}");
        assert!(!folder.exists(), "{measure}");
    }
}

#[test]
fn a_measure_that_is_ended_by_a_signal_removes_what_it_made_and_says_so() {
    for (measure, signal) in [("disk", "INT"), ("disk", "TERM"), ("engine", "TERM")] {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().to_str().expect("UTF-8");
        let mut command =
            commands::command(&["store", "bench", measure, "--quick", "--folder", name]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        while std::fs::read_dir(folder.path()).expect("there").next().is_none() {
            assert!(
                child.try_wait().expect("a child").is_none(),
                "{measure} ended before anything was made"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        commands::signal(child.id(), signal);
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(3), "{measure} {signal}: {text}");
        assert!(text.contains("stopped by a signal; its files are removed"), "{measure}: {text}");
        assert!(output.stdout.is_empty(), "{measure}: no figures of a part");
        let left = std::fs::read_dir(folder.path()).expect("there").count();
        assert_eq!(left, 0, "{measure} {signal}");
    }
}

#[test]
fn a_folder_without_room_for_the_store_that_is_killed_is_an_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let name = folder.path().to_str().expect("UTF-8");
    let bench = commands::command(&["store", "bench", "engine", "--quick", "--folder", name]);
    let Some(mut command) = commands::on_file_system("size=20M", folder.path(), &bench) else {
        return;
    };
    let (code, _, err) = commands::ended(&mut command);
    assert!(
        code == Some(3) && err.contains("no space left: this benchmark fills a store of 256 MiB"),
        "{code:?} {err}"
    );
}
