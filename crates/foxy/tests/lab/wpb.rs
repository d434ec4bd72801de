//! Tests the programs `foxy wpb` (the Wisconsin Proxy Benchmark) and `foxy reference`: tables,
//! records, page, and refused arguments. Also runs each reference architecture with a small load.

use crate::support::commands::{Serving, command, foxy, records, signal};
use serde_json::Value;
use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Runs a small benchmark: ten requests in each phase, and origin servers that wait 20 ms before
/// they answer.
fn wpb(proxy: &str, clients: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let small =
        ["wpb", "--proxy", proxy, "--clients", clients, "--requests", "10", "--latency", "20ms"];
    foxy(&[&small[..], more].concat())
}

#[test]
fn a_proxy_that_is_started_for_the_benchmark_is_described_and_ended() {
    let folder = tempfile::tempdir().expect("a folder");
    let [json, place] = ["run.jsonl", "place"].map(|name| folder.path().join(name));
    std::fs::create_dir(&place).expect("made");
    let [json_name, place_name] = [&json, &place].map(|path| path.to_str().expect("UTF-8"));
    let what =
        ["wpb", "--start", "foxy", "--clients", "2", "--requests", "10", "--latency", "20ms"];
    let more = ["--folder", place_name, "--json", json_name, "--fail-if", "errors>0"];
    let (code, out, err) = foxy(&[&what[..], &more[..]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let records = records(&json);
    assert!(value(&records, "wpb-2", "hit_ratio").expect("measured") > 0.0, "{out}");
    let of_foxy = |kind: &str| {
        records.iter().any(|record| record["kind"] == kind && record["subject"] == "foxy")
    };
    assert!(of_foxy("subject") && of_foxy("measure"), "{records:?}");
    assert!(out.contains("clients  cores busy  CPU µs/request  disk busy"), "{out}");
    for workload in ["wpb-2", "wpb-2-no-cache", "wpb-2-phase-1", "wpb-2-phase-2"] {
        assert!(
            value(&records, workload, "cpu_busy").is_some_and(|cores| cores < 64.0),
            "{workload}: {out}"
        );
    }
    assert_eq!(std::fs::read_dir(&place).expect("a folder").count(), 0);
    let (code, _, err) = foxy(&["wpb", "--start", "foxy", "--proxy", "127.0.0.1:1"]);
    assert!(code == Some(2) && err.contains("--start"), "{err}");
}

/// Whether the files in a folder contain at least `bytes` bytes that are not zero.
fn holds(folder: &Path, bytes: usize) -> bool {
    fn count(folder: &Path) -> usize {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let held = entries.map(|entry| match entry.file_type() {
            Ok(kind) if kind.is_dir() => count(&entry.path()),
            _ => std::fs::read(entry.path())
                .map_or(0, |text| text.iter().filter(|&&byte| byte != 0).count()),
        });
        held.sum()
    }
    count(folder) >= bytes
}

/// Runs a benchmark on a proxy with two cache folders, until both contain data that the proxy
/// fetched. Does nothing if the proxy is not installed.
fn on_two_disks(name: &str) {
    let disks = ["one", "two"].map(|_| tempfile::tempdir().expect("a folder"));
    for disk in &disks {
        std::fs::set_permissions(disk.path(), Permissions::from_mode(0o755)).expect("set");
    }
    let mut command =
        command(&["wpb", "--start", name, "--cache-size", "32MiB", "--memory", "8MiB"]);
    command.args(["--clients", "4..400", "--step", "1", "--requests", "20", "--latency", "1ms"]);
    for disk in &disks {
        command.arg("--folder").arg(disk.path());
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
    while !disks.iter().all(|disk| holds(disk.path(), 1 << 18)) {
        if child.try_wait().expect("a child").is_some() {
            let mut err = String::new();
            child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
            assert!(
                err.contains(&format!("--start {name}: not installed; `apt-get install")),
                "{err}"
            );
            let text = format!("\nNOT RUN: two disks of {name}: it is not installed\n");
            return std::io::stderr()
                .write_all(text.as_bytes())
                .expect("standard error is writable");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    signal(child.id(), "INT");
    let output = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{name}: {err}");
    for disk in &disks {
        assert_eq!(std::fs::read_dir(disk.path()).expect("a folder").count(), 0, "{name}");
    }
}

#[test]
fn a_proxy_with_two_folders_keeps_something_in_each() {
    on_two_disks("foxy");
}

#[test]
fn installed_proxies_with_two_folders_keep_something_in_each() {
    ["squid", "nginx", "varnish", "trafficserver"].into_iter().for_each(on_two_disks);
}

#[test]
fn two_folders_are_refused_to_whom_they_are_no_use_and_where_they_are_one() {
    let folders = ["one", "two"].map(|_| tempfile::tempdir().expect("a folder"));
    let [one, two] = [0, 1].map(|number| folders[number].path().to_str().expect("UTF-8"));
    for command in ["wpb", "peak"] {
        let (code, _, err) =
            foxy(&[command, "--start", "apache2", "--folder", one, "--folder", two]);
        assert_eq!(code, Some(2), "{err}");
        let expected = "--start apache2: the proxy can use only one cache folder, not 2; give \
                        one --folder";
        assert!(err.contains(expected), "{err}");
        let (code, _, err) = foxy(&[command, "--start", "foxy", "--folder", one, "--folder", one]);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("named twice; name a folder on each disk"), "{err}");
        assert!(
            folders.iter().all(|folder| std::fs::read_dir(folder).expect("there").next().is_none())
        );
    }
}

/// Runs a benchmark on a new reference proxy, and returns its records.
fn records_of(arguments: &[&str], clients: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Serving::reference(&folder.path().join("store"), arguments);
    let file = folder.path().join("run.jsonl");
    let (code, out, err) = wpb(&proxy.address, clients, &["--json", file.to_str().expect("UTF-8")]);
    assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
    records(&file)
}

fn value(records: &[Value], workload: &str, name: &str) -> Option<f64> {
    let found =
        records.iter().find(|record| record["workload"] == workload && record["name"] == name);
    found.and_then(|record| record["value"].as_f64())
}

#[test]
fn a_run_ends_with_a_table_records_and_a_page_and_says_its_scale() {
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = Serving::reference(&folder.path().join("store"), &["event-loop"]);
    let [json, html] = ["run.jsonl", "run.html"].map(|name| folder.path().join(name));
    let [json_name, html_name] = [&json, &html].map(|path| path.to_str().expect("UTF-8"));
    let files = ["--json", json_name, "--html", html_name];
    let more = ["--step", "2", "--subject", "loop", "--cache-size", "1G", "--fail-if", "errors>0"];
    let (code, out, err) = wpb(&proxy.address, "2..4", &[&files[..], &more[..]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.starts_with("server latency 20ms instead of 3s (scale 1/150); 10 requests"),
        "{out}"
    );
    assert!(out.contains("\n      2        1 ") && out.contains("\n      4        1 "), "{out}");
    assert!(
        err.contains("at 2, 4 clients less than 4 times the cache size of 1 GiB was fetched"),
        "{err}"
    );
    let records = records(&json);
    assert_eq!(
        (&records[0]["kind"], &records[records.len() - 1]["held"]),
        (&"setup".into(), &true.into())
    );
    let scale = records[0]["scale"].as_f64().expect("a number");
    assert!((scale - 1.0 / 150.0).abs() < 1e-12, "{scale}");
    for clients in ["wpb-2", "wpb-4"] {
        let hits = value(&records, clients, "hit_ratio").expect("measured");
        assert!(
            hits > 0.0 && hits <= value(&records, clients, "offered_hit_ratio").expect("measured")
        );
        let control =
            value(&records, &format!("{clients}-no-cache"), "latency_mean_us").expect("measured");
        assert!(control >= 20_000.0, "{control}");
    }
    let page = std::fs::read_to_string(&html).expect("written");
    for figure in ["Mean latency: loop", "Hit ratios of both phases: loop", "Errors: loop"] {
        assert!(page.contains(figure), "{figure}");
    }
}

#[test]
fn a_fixed_pool_refuses_nobody_while_workers_are_free_however_many_come_at_once() {
    let records = records_of(&["fixed-pool", "--pool", "24", "--backlog", "1", "--no-cache"], "8");
    assert_eq!(value(&records, "wpb-8-no-cache", "errors"), Some(0.0));
}

#[test]
fn what_an_earlier_run_left_in_the_cache_is_said_and_a_bar_on_it_missed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (proxy, origin) =
        (Serving::reference(&folder.path().join("store"), &["event-loop"]), Serving::origin());
    let run = |clients, bar| {
        wpb(&proxy.address, clients, &["--origin", &origin.address, "--fail-if", bar])
    };
    let (code, _, err) = run("2", "hit_ratio>0.9");
    assert_eq!(code, Some(0), "{err}");
    let (code, _, err) = run("2", "hit_ratio>0.9");
    assert!(
        err.contains("phase 1 had hits at 2 clients, although each of its files is new"),
        "{err}"
    );
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("--fail-if hit_ratio>0.9: wpb-2/proxy/hit_ratio is 1"), "{err}");
}

#[test]
fn every_architecture_hits_what_it_stored_with_and_without_what_marks_it() {
    for arguments in [
        &["process-per-request"][..],
        &["process-per-request", "--no-scan"],
        &["prefork"],
        &["prefork", "--one-phase", "--pool", "4"],
        &["fixed-pool", "--pool", "4"],
        &["event-loop", "--no-index"],
        &["thread-per-request"],
    ] {
        let records = records_of(arguments, "4");
        let errors = ["no-cache", "phase-1", "phase-2"]
            .map(|part| value(&records, &format!("wpb-4-{part}"), "errors"));
        assert_eq!(errors, [Some(0.0); 3], "{arguments:?}");
        assert!(value(&records, "wpb-4", "hit_ratio").expect("measured") > 0.0, "{arguments:?}");
    }
}

#[test]
fn a_proxy_that_stores_nothing_has_no_hits() {
    let records = records_of(&["thread-per-request", "--no-cache"], "2");
    assert_eq!(value(&records, "wpb-2", "hit_ratio"), Some(0.0));
}

#[test]
fn a_fixed_pool_refuses_whoever_comes_beyond_pool_and_backlog() {
    let records = records_of(&["fixed-pool", "--pool", "1", "--backlog", "1"], "8");
    for part in ["wpb-8-no-cache", "wpb-8-phase-1"] {
        let errors = value(&records, part, "errors").expect("measured");
        assert!(errors > 0.0, "{part}");
        assert_eq!(value(&records, part, "errors_refused"), Some(errors), "{part}");
    }
}

/// Starts a proxy that serves `connections` connections and then ends.
fn mortal(connections: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for _ in 0..connections {
            let (mut client, _) = listener.accept().expect("accepted");
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).expect("a request");
                request.push(byte[0]);
            }
            let server = String::from_utf8_lossy(&request)
                .split('/')
                .nth(2)
                .expect("an authority")
                .to_owned();
            let mut server = TcpStream::connect(server).expect("connected");
            server.write_all(&request).expect("sent");
            std::io::copy(&mut server, &mut client).expect("copied");
        }
    });
    address
}

#[test]
fn a_proxy_that_dies_ends_the_run_and_what_was_measured_is_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.jsonl");
    // The proxy ends in the measurement with two clients. Before, a request checks that it answers,
    // and the measurement with one client sends thirty requests.
    let more = ["--step", "1", "--json", file.to_str().expect("UTF-8")];
    let (code, out, err) = wpb(&mortal(31), "1..3", &more);
    assert_eq!(code, Some(3), "{out}{err}");
    assert!(
        err.contains("no correct answer at 2 clients in no-cache; the results so far"),
        "{err}"
    );
    let records = records(&file);
    assert_eq!(value(&records, "wpb-1-phase-2", "requests"), Some(10.0));
    assert_eq!(value(&records, "wpb-2-no-cache", "errors_refused"), Some(20.0));
    assert_eq!(value(&records, "wpb-3", "hit_ratio"), None);
    assert!(records.iter().any(|record| record["kind"] == "failed-run"));
    assert_eq!(records[records.len() - 1]["held"], false);
}

#[test]
fn what_cannot_be_run_ends_with_one_clear_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("store");
    let store = store.to_str().expect("UTF-8");
    let strangers = folder.path().to_str().expect("UTF-8");
    std::fs::write(folder.path().join("letter"), "dear").expect("written");
    for (arguments, code, expected) in [
        (
            &["wpb", "--proxy", "127.0.0.1:1", "--clients", "0.."][..],
            2,
            "--clients 0..: is not a range of numbers",
        ),
        (
            &["wpb", "--proxy", "127.0.0.1:1", "--clients", "96..8"],
            2,
            "--clients 96..8: the last number is below the first",
        ),
        (
            &["wpb", "--proxy", "127.0.0.1:1", "--quick"],
            3,
            "127.0.0.1:1 gave no correct answer (refused)",
        ),
        (
            &["reference", "event-loop", "--store", store, "--pool", "3"],
            2,
            "--pool: the architecture event-loop has no such option",
        ),
        (
            &["reference", "prefork", "--store", store, "--no-scan"],
            2,
            "--no-scan: the architecture prefork has no such option",
        ),
        (
            &["reference", "prefork", "--store", store, "--listen", "0.0.0.0:0"],
            2,
            "name a loopback address",
        ),
        (
            &["reference", "prefork", "--store", strangers, "--listen", "127.0.0.1:0"],
            2,
            "name an empty folder",
        ),
    ] {
        let (ended, _, err) = foxy(arguments);
        assert_eq!(ended, Some(code), "{arguments:?}: {err}");
        assert!(
            err.contains(expected) && err.trim_end().lines().count() == 1,
            "{arguments:?}: {err}"
        );
    }
}
