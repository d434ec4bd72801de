//! Tests signals and limits that must not end a running foxy.

use crate::support::{Foxy, Origin};
use foxy_testkit::wait::until;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

#[test]
fn the_log_is_opened_anew_on_sigusr1_and_nothing_happens_on_sigusr2() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let (log, old) = (folder.path().join("access.log"), folder.path().join("access.log.1"));
    let flags = ["--access-log", log.to_str().expect("UTF-8")];
    let mut foxy = Foxy::start(&folder.path().join("store"), &flags);
    foxy.get(&origin.url("a"));
    until("logging", || std::fs::read_to_string(&log).ok().filter(|text| text.contains("/a ")));
    std::fs::rename(&log, &old).expect("moved");
    foxy.signal("USR2");
    foxy.signal("USR1");
    until("reopening", || log.exists().then_some(()));
    foxy.report_containing("opening the access log again (SIGUSR1)");
    foxy.get(&origin.url("b"));
    until("logging", || std::fs::read_to_string(&log).ok().filter(|text| text.contains("/b ")));
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
}

fn limit_files(foxy: &Foxy, bytes: u64) {
    let process = Pid::from_raw(i32::try_from(foxy.id()).expect("small"));
    let limit = Rlimit { current: Some(bytes), maximum: None };
    prlimit(process, Resource::Fsize, limit).expect("root, or the same user");
}

#[test]
fn a_file_that_may_not_grow_counts_as_a_full_disk() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let log = folder.path().join("access.log");
    let flags = ["--scheme", "ufs", "--size", "32M", "--access-log", log.to_str().expect("UTF-8")];
    let foxy = Foxy::start_plain(&folder.path().join("store"), &flags);
    foxy.get(&origin.url("a"));
    until("logging", || std::fs::read_to_string(&log).ok().filter(|text| text.contains("/a ")));
    limit_files(&foxy, 20);
    let health = until("trouble", || {
        assert_eq!(foxy.get(&origin.url("b?bytes=9000")).status, 200);
        Some(foxy.admin("/healthz")).filter(|health| health.status == 503)
    });
    assert!(
        health.body.contains("the disk is full, so new responses are not stored"),
        "{health:?}"
    );
    until("counting", || {
        let metrics = foxy.admin("/metrics").body;
        let lost = metrics
            .lines()
            .find_map(|line| line.strip_prefix("foxy_access_log_lines_unwritten_total "));
        lost.is_none_or(|lost| lost != "0").then_some(())
    });
    foxy.signal("TERM");
    assert_eq!(foxy.wait().0.code(), Some(0));
}

#[test]
fn a_store_larger_than_a_file_may_be_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = std::process::Command::new("sh");
    command.args([
        "-c",
        "ulimit -f 16384 && exec \"$0\" \"$@\"",
        env!("CARGO_BIN_EXE_foxy"),
        "serve",
    ]);
    command
        .args(["--listen", "127.0.0.1:0", "--admin", "off", "--size", "64M", "--store"])
        .arg(folder.path());
    let output = command.output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("the size is 64 MiB, but a file may have"), "{said}");
    assert!(said.contains("ulimit -f"), "{said}");
}
