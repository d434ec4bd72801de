//! Tests the program `foxy compare`: its files, its exit codes, and its behaviour if a proxy or the
//! user ends it early.

use crate::support::commands::{self, ended, foxy, signal};
use serde_json::Value;
use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Prepares a comparison with one repeat, which writes its files to `folder`.
fn command(folder: &Path, more: &[&str]) -> Command {
    let mut command = commands::command(&["compare", "--quick", "--clients", "2", "--folder"]);
    std::fs::create_dir_all(folder.join("work")).expect("made");
    std::fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("set");
    command.arg(folder.join("work")).arg("--out").arg(folder.join("out")).args(more);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn records(folder: &Path) -> Vec<Value> {
    commands::records(&folder.join("out/records.jsonl"))
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).expect("there").next().is_none()
}

#[test]
fn a_comparison_leaves_records_and_reports_that_can_be_made_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let whom = ["foxy", "trafficserver", "--workload", "memory-hit", "--seconds", "1"];
    let more = [&whom[..], &["--fail-if", "foxy/wrong_bytes>0"]].concat();
    // The variable `PATH` contains no programs, so nginx counts as not installed.
    let (code, out, err) = ended(command(folder.path(), &more).env("PATH", folder.path()));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        err.contains("trafficserver: not installed; `apt-get install trafficserver` installs"),
        "{err}"
    );
    assert!(out.contains("[1/1] memory-hit 1 foxy: ") && out.contains(", hit ratio 1, "), "{out}");
    let records = records(folder.path());
    assert_eq!(
        (&records[0]["kind"], &records[records.len() - 1]["held"]),
        (&"setup".into(), &true.into())
    );
    let value = |name: &str| {
        let found = records.iter().find(|record| {
            record["kind"] == "measure" && record["name"] == name && record["repeat"].is_null()
        });
        found.unwrap_or_else(|| panic!("no {name}"))["value"].as_f64().expect("a number")
    };
    assert_eq!((value("hit_ratio"), value("wrong_bytes"), value("errors")), (1.0, 0.0, 0.0));
    assert!(value("requests_per_second") > 0.0 && value("resident_bytes") > 1e6);
    assert!(is_empty(&folder.path().join("work")));

    let out = folder.path().join("out");
    let read = |name: &str| std::fs::read_to_string(out.join(name)).expect(name);
    let before = ["report.html", "summary.md", "junit.xml"].map(read);
    for (text, left_out) in before.iter().zip([
        "<p>trafficserver: not installed",
        "- trafficserver: not installed",
        "<skipped ",
    ]) {
        assert!(text.contains(left_out), "{text}");
    }
    assert!(
        before[0].contains("<dd>quick</dd>") && !before[0].contains("full scale"),
        "{}",
        before[0]
    );
    for name in ["report.html", "summary.md", "junit.xml"] {
        std::fs::remove_file(out.join(name)).expect(name);
    }
    let report =
        |bar| foxy(&["compare", "--fail-if", bar, "--report", out.to_str().expect("UTF-8")]);
    assert_eq!(report("foxy/wrong_bytes>0").0, Some(0));
    assert_eq!(["report.html", "summary.md", "junit.xml"].map(read), before);

    let (code, _, err) = report("requests_per_second>0");
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("memory-hit/foxy/requests_per_second is"), "{err}");
}

#[test]
fn what_cannot_be_compared_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    for (more, expected) in [
        (vec!["coffee"], "coffee: no such proxy; the proxies are foxy, squid"),
        (
            vec!["foxy", "--workload", "coffee"],
            "--workload coffee: this workload cannot be compared; the workloads are",
        ),
        (vec![], "no proxy to compare; name one or more of foxy"),
        (vec!["foxy", "--folder", "/no/such/folder"], ""),
        (
            vec!["foxy", "nginx", "foxy"],
            "foxy: named twice, but a comparison has one row for each name; name it once",
        ),
        (vec!["foxy", "--workload", "fill", "--workload", "fill"], "--workload fill: named twice"),
        (vec!["foxy", "--rate", "9", "--rate", "9"], "--rate 9: named twice"),
    ] {
        let (code, _, err) = ended(&mut command(folder.path(), &more));
        assert_eq!(code, Some(2), "{more:?}: {err}");
        assert!(err.contains(expected), "{more:?}: {err}");
        assert!(!folder.path().join("out").exists(), "{more:?}");
    }
    let (code, _, err) = foxy(&["compare", "--report", folder.path().to_str().expect("UTF-8")]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("name the folder of a comparison"), "{err}");
}

#[test]
fn a_load_that_cannot_have_its_connections_is_refused_before_it_begins() {
    let folder = tempfile::tempdir().expect("a folder");
    for (workload, expected) in [
        ("memory-hit", "--clients 64: needs up to 192 open files, but this process may open 64;"),
        ("table3", "--workload table3: 100 clients: needs up to 264 open files"),
        ("polymix-4", "--workload polymix-4: 500 robots: needs up to"),
    ] {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "ulimit -n 64; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_foxy"),
            "compare",
            "foxy",
        ]);
        command.args(["--quick", "--workload", workload, "--out"]).arg(folder.path().join("out"));
        let (code, out, err) = ended(&mut command);
        assert_eq!((code, &*out), (Some(2), ""), "{err}");
        assert!(err.contains(expected), "{workload}: {err}");
        assert!(!folder.path().join("out").exists(), "{workload}");
    }
}

#[test]
fn arguments_of_a_run_are_refused_where_a_comparison_is_reported_again() {
    for more in [
        &["--workload", "zipf"][..],
        &["--quick"],
        &["--clients", "9"],
        &["--seed", "9"],
        &["foxy"],
    ] {
        let (code, _, err) = foxy(&[&["compare", "--report", "somewhere"], more].concat());
        assert_eq!(code, Some(2), "{more:?}: {err}");
        assert!(err.contains("cannot be used with"), "{more:?}: {err}");
    }
}

/// Writes a script that replaces nginx. Returns its path.
fn stand_in(folder: &Path, script: &str) -> String {
    let programs = folder.join("programs");
    std::fs::create_dir_all(&programs).expect("made");
    std::fs::set_permissions(&programs, Permissions::from_mode(0o755)).expect("set");
    std::fs::write(programs.join("nginx"), format!("#!/bin/sh\n{script}\n")).expect("written");
    std::fs::set_permissions(programs.join("nginx"), Permissions::from_mode(0o755)).expect("set");
    format!("{}:/usr/bin:/bin", programs.display())
}

#[test]
fn a_proxy_that_does_not_come_up_costs_its_own_figures_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "[ \"$1\" = -v ] && { echo nginx/1.0.0; exit 0; }\necho unknown directive; exit 1";
    let path = stand_in(folder.path(), script);
    let more = ["nginx", "foxy", "--workload", "memory-hit", "--seconds", "1"];
    let mut command = command(folder.path(), &more);
    command.env("PATH", path);
    let (code, out, err) = ended(&mut command);
    assert_eq!(code, Some(3), "{out}{err}");
    assert!(err.contains("nginx did not start (exit status: 1): unknown directive"), "{err}");
    let records = records(folder.path());
    let failed = records.iter().find(|record| record["kind"] == "failed-run").expect("kept");
    assert_eq!(failed["subject"], "nginx");
    assert!(
        records.iter().any(|record| record["subject"] == "foxy" && record["name"] == "hit_ratio")
    );
    let junit = std::fs::read_to_string(folder.path().join("out/junit.xml")).expect("written");
    assert!(
        junit.contains("<failure message=\"memory-hit, repeat 1: nginx did not start"),
        "{junit}"
    );
}

/// Starts a comparison that would take a minute, and waits until its proxy serves. Returns the
/// command and the process id of the proxy.
fn begun(folder: &Path) -> (Child, u32) {
    let more = ["foxy", "--workload", "memory-hit", "--seconds", "60"];
    let child = command(folder, &more).spawn().expect("the binary runs");
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    loop {
        let proxy = std::fs::read_to_string(&children).unwrap_or_default();
        let output = std::fs::read_dir(folder.join("work"))
            .expect("there")
            .flatten()
            .find_map(|entry| std::fs::read_to_string(entry.path().join("foxy/output")).ok());
        match proxy.split_whitespace().next().and_then(|id| id.parse().ok()) {
            // The first line of the proxy's output says that the proxy serves.
            Some(proxy) if output.is_some_and(|text| text.contains('\n')) => return (child, proxy),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

#[test]
fn an_interrupted_comparison_ends_its_proxy_and_keeps_what_it_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut child, proxy) = begun(folder.path());
    signal(child.id(), "INT");
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    assert_eq!(child.wait().expect("ends").code(), Some(3), "{err}");
    let stopping = err.find("stopping foxy and removing its files").expect("said at once");
    assert!(err[stopping..].contains("stopped by a signal; the results so far are in"), "{err}");
    assert!(!Path::new(&format!("/proc/{proxy}")).exists());
    assert!(is_empty(&folder.path().join("work")));
    let records = records(folder.path());
    let last = records.last().expect("a record");
    assert_eq!(records[0]["kind"], "setup");
    assert_eq!(last["kind"], "failed-run");
    assert!(last["reason"].to_string().contains("stopped by a signal"), "{last}");
    let read =
        |name: &str| std::fs::read_to_string(folder.path().join("out").join(name)).expect(name);
    assert!(read("summary.md").contains("**Incomplete"), "{}", read("summary.md"));
    assert!(read("junit.xml").contains("name=\"complete\"><failure"), "{}", read("junit.xml"));
}

#[test]
fn an_incomplete_comparison_that_is_reported_again_says_so_and_ends_with_three() {
    let folder = tempfile::tempdir().expect("a folder");
    let measure = "{\"kind\":\"measure\",\"name\":\"errors\",\"subject\":\"foxy\",\"value\":2.0,\"unit\":\"requests\",\
        \"low\":2.0,\"high\":2.0,\"repeats\":1,\"workload\":\"fill\",\"repeat\":1}\n";
    std::fs::write(folder.path().join("records.jsonl"), measure).expect("written");
    let folder_name = folder.path().to_str().expect("UTF-8");
    let (code, out, err) = foxy(&["compare", "--report", folder_name, "--fail-if", "errors>1"]);
    assert_eq!(code, Some(3), "{out}{err}");
    assert!(out.starts_with("Incomplete: "), "{out}");
    assert!(err.contains("the run ended before everything was measured"), "{err}");
    assert!(err.contains("--fail-if errors>1: fill/foxy/errors is 2"), "{err}");
}

#[test]
fn a_proxy_that_dies_in_the_middle_is_a_failed_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut child, proxy) = begun(folder.path());
    signal(proxy, "KILL");
    let mut err = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    assert_eq!(child.wait().expect("ends").code(), Some(3), "{err}");
    assert!(err.contains("(signal: 9 (SIGKILL))"), "{err}");
    assert!(err.contains("one run failed"), "{err}");
}
