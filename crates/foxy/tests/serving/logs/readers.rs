//! Programs that read access logs understand foxy's: goaccess, calamaris, and `foxy log`.

use crate::support::commands::foxy;
use crate::support::{Foxy, Origin, not_run};
use foxy_testkit::wait::until;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns the access log of a foxy that answered a miss, two hits and a refused request.
fn access_log(folder: &Path, format: &str) -> PathBuf {
    let log = folder.join(format!("{format}.log"));
    let path = log.to_str().expect("UTF-8");
    let logging = ["--access-log", path, "--access-log-format", format];
    let (foxy, origin) =
        (Foxy::start(&folder.join(format!("{format}-store")), &logging), Origin::start());
    for _ in 0..3 {
        assert_eq!(foxy.get(&origin.url("page")).status, 200);
    }
    assert_eq!(foxy.get("http://10.0.0.1/").status, 403);
    until("four lines", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        (text.lines().count() == 4).then_some(())
    });
    log
}

/// Runs a program with the log as its standard input. Returns its output, or `None` if the program
/// is missing.
fn output_of(program: &str, arguments: &[&str], log: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        not_run(&format!("{program} and the access log"), &format!("{program} is missing"));
        return None;
    };
    let text = std::fs::read(log).expect("a log");
    child.stdin.take().expect("piped").write_all(&text).expect("read");
    let output = child.wait_with_output().expect("it ends");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn calamaris_reads_the_log_in_the_format_of_squid() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = access_log(folder.path(), "squid");
    let Some(report) = output_of("calamaris", &["-a"], &log) else { return };
    let value = |name: &str| {
        let line = report.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().last().map(str::to_owned)
    };
    assert_eq!(value("lines parsed:").as_deref(), Some("4"), "{report}");
    assert_eq!(value("invalid lines:").as_deref(), Some("0"), "{report}");
    assert_eq!(value("Request hit rate:").as_deref(), Some("50.00"), "{report}");
}

#[test]
fn goaccess_reads_the_combined_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = access_log(folder.path(), "combined");
    let arguments = ["-", "--log-format=COMBINED", "-o", "json", "--no-progress"];
    let Some(report) = output_of("goaccess", &arguments, &log) else { return };
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let general = &report["general"];
    assert_eq!((&general["valid_requests"], &general["failed_requests"]), (&4.into(), &0.into()));
}

#[test]
fn foxy_log_reads_each_format_of_the_access_log() {
    let folder = tempfile::tempdir().expect("a folder");
    for format in ["squid", "combined", "json"] {
        let log = access_log(folder.path(), format);
        let log = log.to_str().expect("UTF-8");
        let (code, said, errors) = foxy(&["log", log, "--group", "status", "--json"]);
        assert_eq!((code, &*errors), (Some(0), ""), "{format}");
        let groups: Vec<serde_json::Value> =
            said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let counts: Vec<_> = groups.iter().map(|one| (&one["status"], &one["requests"])).collect();
        assert_eq!(counts, [(&"200".into(), &3.into()), (&"403".into(), &1.into())], "{format}");
        if format != "combined" {
            let (_, hits, _) = foxy(&["log", log, "-q", "hit = yes", "-n", "1"]);
            assert!(hits.contains("memory-hit") && hits.lines().count() == 1, "{hits}");
        }
    }
}
