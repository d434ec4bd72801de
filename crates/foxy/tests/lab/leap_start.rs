//! Tests the program `foxy leap --start`, which starts proxies itself: it must report results for
//! them, and remove all their files and processes.

use crate::support::commands::{self, ended, foxy, measure, records, signal};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Creates the folder in which LEAP runs the proxies.
fn work(folder: &Path) -> PathBuf {
    let work = folder.join("work");
    std::fs::create_dir_all(&work).expect("made");
    std::fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("set");
    work
}

fn command(folder: &Path, start: &str, more: &[&str]) -> Command {
    let mut command =
        commands::command(&["leap", "--start", start, "--disk", "64MiB", "--memory", "8MiB"]);
    command.arg("--folder").arg(work(folder)).arg("--json").arg(folder.join("json")).args(more);
    command
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).expect("there").next().is_none()
}

#[test]
fn proxies_start_behind_a_collector_and_a_proxy_named_twice_shows_the_noise() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    let more = ["--like", "ircache", "--requests", "200", "--network-cost", "5ms", "--html"];
    let mut command = command(folder.path(), "foxy,foxy", &more);
    let (code, out, err) = ended(command.arg(&page));
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("synthetic, like ircache: 200 gets of "), "{out}");
    assert!(out.contains("noise floor (one proxy started twice): "), "{out}");
    let records = records(&folder.path().join("json"));
    for path in ["direct", "foxy", "foxy-2", "passthrough"] {
        assert_eq!(measure(&records, path, "verdict_ok"), Some(200.0), "{path}: {out}");
        assert!(
            measure(&records, path, "bandwidth_share_of_passthrough").is_some(),
            "{path}: {out}"
        );
    }
    let fetches = measure(&records, "collector", "origin_fetches").expect("counted");
    assert!(fetches <= 220.0, "four paths share what the origin sends: {out}");
    assert!(
        measure(&records, "foxy", "cpu_us_per_request").is_some_and(|used| used > 0.0),
        "{out}"
    );
    assert!(measure(&records, "foxy", "hit_ratio").is_some_and(|hits| hits > 0.0), "{out}");
    for class in ["hits", "misses"] {
        let beside = measure(&records, "foxy", &format!("requests_beside_foxy-2_of_{class}"));
        assert!(beside.is_some_and(|requests| requests >= 50.0), "{class}: {out}");
        assert!(
            measure(&records, "leap", &format!("noise_floor_us_of_{class}")).is_some(),
            "{class}: {out}"
        );
    }
    let beside =
        measure(&records, "foxy", "latency_difference_p50_us_to_passthrough_of_first_hits");
    assert!(beside.is_some(), "{out}");
    let row = |line: &str| {
        line.starts_with("hits on the first only ") && line.contains("foxy less passthrough")
    };
    assert!(out.lines().any(row), "{out}");
    let set_up =
        records.iter().find(|record| record["kind"] == "subject").expect("how it was set up");
    let command = set_up["command"].as_str().expect("text");
    assert!(
        command.contains("--store FOLDER/cache") && command.contains("--memory 8388608"),
        "{command}"
    );
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("<summary>foxy-2 ") && page.contains("What the proxies used"));
    assert!(
        !out.contains("prefetches"),
        "nobody is accused of what was asked for until it was up: {out}"
    );
    assert!(is_empty(&folder.path().join("work")));
}

#[test]
fn proxies_that_are_started_speak_tls_on_both_sides_by_an_authority_of_the_run() {
    for protocol in ["1.1", "2"] {
        let folder = tempfile::tempdir().expect("a folder");
        let more = ["--tls", "--protocol", protocol, "--like", "ircache", "--requests", "60"];
        let (code, out, err) = ended(&mut command(folder.path(), "foxy,foxy", &more));
        assert_eq!(code, Some(0), "HTTP/{protocol}: {out}{err}");
        let found = records(&folder.path().join("json"));
        for path in ["direct", "foxy", "foxy-2", "passthrough"] {
            assert_eq!(
                measure(&found, path, "verdict_ok"),
                Some(60.0),
                "HTTP/{protocol}: {path}: {out}"
            );
        }
        for path in ["foxy", "foxy-2"] {
            assert!(
                measure(&found, path, "hit_ratio").is_some_and(|hits| hits > 0.0),
                "{path}: {out}"
            );
        }
        assert!(!out.contains("prefetches"), "{out}");
        let set_up =
            found.iter().find(|record| record["kind"] == "subject").expect("how it was set up");
        let command = set_up["command"].as_str().expect("text");
        for part in [
            "--listen-tls 127.0.0.1:",
            "--origin https://127.0.0.1:",
            "--origin-ca FOLDER/authority.pem",
        ] {
            assert!(command.contains(part), "{command}");
        }
        assert!(
            !std::fs::read_to_string(folder.path().join("json"))
                .expect("records")
                .contains("PRIVATE KEY")
        );
        assert!(is_empty(&folder.path().join("work")), "the certificates go with the proxies");
    }
}

#[test]
fn an_authority_that_is_given_must_vouch_for_where_proxies_and_their_origin_are() {
    let folder = tempfile::tempdir().expect("a folder");
    for (hosts, expected) in [
        (&["127.0.0.0/8", "localhost"][..], Some(0)),
        (&["127.0.0.0/8"], Some(2)),
        (&["localhost"], Some(2)),
    ] {
        let place = folder.path().join(hosts.join("-").replace('/', "-"));
        let place = place.to_str().expect("UTF-8");
        let allowed = hosts.iter().flat_map(|host| ["--allow", *host]);
        let made =
            foxy(&["ca", "init", "--dir", place].into_iter().chain(allowed).collect::<Vec<_>>());
        assert_eq!(made.0, Some(0), "{made:?}");
        let more = ["--tls", "--ca-dir", place, "--requests", "10"];
        let (code, out, err) = ended(&mut command(folder.path(), "foxy", &more));
        assert_eq!(code, expected, "{hosts:?}: {out}{err}");
        if code == Some(2) {
            assert!(err.contains("--allow 127.0.0.0/8 --allow localhost"), "{err}");
        }
    }
}

#[test]
fn a_signal_ends_what_was_started_and_keeps_what_was_measured() {
    let folder = tempfile::tempdir().expect("a folder");
    let more = ["--requests", "100000", "--rate", "20"];
    let log = folder.path().join("log");
    let mut command = command(folder.path(), "foxy", &more);
    let child = command
        .arg("--log")
        .arg(&log)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    while std::fs::metadata(&log).map_or(0, |file| file.len()) == 0 {
        std::thread::sleep(Duration::from_millis(20));
    }
    signal(child.id(), "INT");
    let output = child.wait_with_output().expect("it ends");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(3), "{out}{err}");
    assert!(
        err.contains("stopped by a signal") && out.contains("foxy less passthrough"),
        "{out}{err}"
    );
    assert!(is_empty(&folder.path().join("work")), "its folder goes when the proxy has ended");
}

#[test]
fn a_proxy_that_does_not_come_up_costs_only_its_own_row() {
    let folder = tempfile::tempdir().expect("a folder");
    let programs = folder.path().join("programs");
    std::fs::create_dir(&programs).expect("made");
    let broken = programs.join("varnishd");
    std::fs::write(&broken, "#!/bin/sh\necho no such option\nexit 2\n").expect("written");
    std::fs::set_permissions(&broken, Permissions::from_mode(0o755)).expect("set");
    std::fs::set_permissions(&programs, Permissions::from_mode(0o755)).expect("set");
    let mut command = command(folder.path(), "foxy,varnish", &["--requests", "10"]);
    let (code, out, err) = ended(command.env("PATH", &programs));
    assert_eq!(code, Some(3), "{out}{err}");
    assert!(err.contains("varnish did not start") && err.contains("no such option"), "{err}");
    let records = records(&folder.path().join("json"));
    assert_eq!(measure(&records, "foxy", "verdict_ok"), Some(10.0), "{out}");
    let failed = records.iter().find(|record| record["kind"] == "failed-run").expect("a row");
    assert_eq!(failed["subject"], "varnish");
}

#[test]
fn what_cannot_be_started_is_refused_in_one_line() {
    for (more, expected) in [
        (vec!["--start", "coffee"], "coffee: no such proxy; the proxies are foxy, squid"),
        (
            vec!["--start", "varnish", "--tls"],
            "varnish: the proxy does not terminate TLS; continuing without this proxy",
        ),
        (
            vec!["--start", "squid", "--tls", "--protocol", "2"],
            "squid: the proxy does not speak HTTP/2 with clients; continuing",
        ),
        (vec!["--start", "foxy", "--folder", "/no/such/folder"], "--folder /no/such/folder: "),
        (vec!["--start", "foxy", "--proxy", "a=127.0.0.1:1"], "cannot be used with"),
        (vec!["--proxy", "a=127.0.0.1:1", "--disk", "1G"], "--disk"),
        (vec!["--proxy", "a=127.0.0.1:1", "--network-cost", "1ms"], "--collector"),
    ] {
        let (code, _, err) = foxy(&[&["leap"], &more[..]].concat());
        assert_eq!(code, Some(2), "{more:?}: {err}");
        assert!(err.contains(expected), "{more:?}: {err}");
    }
}
