//! Tests the programs `foxy origin` and `foxy load` together: exit codes, the table, and the run
//! records.

use crate::support::commands::{
    Serving, command, ended, foxy, records, run_workload, signal, value,
};
use std::io::{Read, Write};
use std::process::Stdio;

fn load(address: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command =
        command(&["load", "--proxy", address, "--reverse", "--origin", "origin.test"]);
    command.args(["--workload", "zipf", "--objects", "20", "--size", "1K", "--requests", "100"]);
    ended(command.args(["--clients", "4"]).args(more))
}

#[test]
fn a_run_ends_with_a_table_and_records() {
    let origin = Serving::origin();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.jsonl");
    let pid = std::process::id().to_string();
    let file_name = file.to_str().expect("UTF-8");
    let bars = ["--fail-if", "wrong_bytes>0", "--fail-if", "errors>0"];
    let more = ["--json", file_name, "--pid", &pid, "--subject", "origin"];
    let (code, out, err) = load(&origin.address, &[&bars[..], &more[..]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.lines().any(|line| line.starts_with("requests_per_second ")), "{out}");
    let records = records(&file);
    assert_eq!(records[0]["kind"], "setup");
    assert_eq!(records.last().expect("an end")["held"], true);
    let value = |name: &str| {
        let record = records.iter().find(|record| record["name"] == name);
        record.unwrap_or_else(|| panic!("no {name}"))["value"].clone()
    };
    assert_eq!(value("requests"), 100.0);
    assert_eq!(value("hit_ratio"), 0.0);
    assert!(value("cpu_us_per_request").is_number());
}

#[test]
fn a_missed_bar_ends_with_one_and_nonsense_with_two() {
    let origin = Serving::origin();
    let check = |more: &[&str], code: i32, expected: &str| {
        let (ended, _, report) = load(&origin.address, more);
        assert_eq!(ended, Some(code), "{report}");
        assert!(report.contains(expected), "{report}");
    };
    check(&["--fail-if", "hit_ratio<0.5"], 1, "--fail-if hit_ratio<0.5: hit_ratio is 0");
    check(
        &["--fail-if", "hit_ratoi<0.5"],
        2,
        "this run has no measure hit_ratoi; use hit_ratio, or another of",
    );
    check(
        &["--fail-if", "cpu_us_per_request>1"],
        2,
        "not measured; the measures are requests_per_second",
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.jsonl");
    let json = ["--json", file.to_str().expect("UTF-8"), "--fail-if", "cpu_us_per_request>1"];
    check(&json, 2, "not measured; the measures are requests_per_second");
    let records = std::fs::read_to_string(&file).expect("written all the same");
    assert!(records.contains("\"held\":false") && records.contains("\"hit_ratio\""), "{records}");
    check(&["--fail-if", "hit_ratio"], 2, "is not a condition");
    check(&["--seconds", "5"], 2, "give one of them");
    check(&["--protocol", "3"], 2, "1.0-keep-alive");
}

#[test]
fn a_bar_on_what_a_command_does_not_measure_is_refused_before_anything_is_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("never");
    let out = place.to_str().expect("UTF-8");
    // No program listens at this address. If the command began its run in spite of the refused
    // arguments, it would report failed connections.
    let nobody = "127.0.0.1:1";
    let check = |arguments: &[&str], expected: &str| {
        let (code, text, err) = foxy(arguments);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{arguments:?}: {err}");
        assert!(
            err.lines().next().is_some_and(|line| line.contains(expected)),
            "{arguments:?}: {err}"
        );
    };
    let leap = ["leap", "--proxy", "p=127.0.0.1:1", "--listen", nobody, "--fail-if"];
    check(
        &[&leap[..], &["verdict_stail>0"]].concat(),
        "use verdict_stale, or another of these names",
    );
    check(
        &[&leap[..], &["q/verdict_stale>0"]].concat(),
        "not measured for q; leave out q/, or use one of direct, p",
    );
    check(&["leap", "--check", "fairness", "--fail-if", "false_alarm>0"], "use false_alarm_share");
    check(
        &["collector", "--listen", nobody, "--fail-if", "colapse_factor<2"],
        "use collapse_factor",
    );
    check(&["passthrough", "--listen", nobody, "--fail-if", "error>0"], "use errors");
    check(&["load", "--proxy", nobody, "--fail-if", "error>0"], "use errors");
    check(&["wpb", "--proxy", nobody, "--fail-if", "wpb-8/errors>0"], "not measured for wpb-8");
    let compare = ["compare", "foxy", "--workload", "fill", "--out", out, "--fail-if"];
    check(
        &[&compare[..], &["zipf/foxy/errors>0"]].concat(),
        "leave out zipf/foxy/, or use one of fill/foxy",
    );
    assert!(!place.exists());
}

#[test]
fn an_origin_stops_on_a_signal() {
    let origin = Serving::origin();
    assert_eq!(load(&origin.address, &[]).0, Some(0));
    signal(origin.id(), "TERM");
    assert_eq!(origin.wait().code(), Some(0));
}

#[test]
fn a_signal_ends_a_run_whose_records_say_so() {
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("run.jsonl");
    let address = proxy.local_addr().expect("bound").to_string();
    let mut load = command(&["load", "--proxy", &address, "--no-warm-up", "--seconds", "3600"]);
    load.args(["--clients", "1", "--json"]).arg(&file);
    let child = load.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs");
    let first = proxy.accept().expect("a client");
    signal(child.id(), "INT");
    drop((first, proxy));
    let output = child.wait_with_output().expect("a child");
    assert_eq!(output.status.code(), Some(3));
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(
        report.contains("load: stopped by a signal; the results so far are incomplete"),
        "{report}"
    );
    let records = std::fs::read_to_string(&file).expect("written");
    assert!(records.contains("\"kind\":\"failed-run\""), "{records}");
    assert!(records.contains("\"held\":false"), "{records}");
}

#[test]
fn hits_come_over_every_protocol() {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = crate::support::Foxy::start(folder.path(), &[]);
    for protocol in ["1.0", "1.0-keep-alive", "1.1", "1.1-close", "2"] {
        let mut load =
            command(&["load", "--proxy", &foxy.proxy.to_string(), "--protocol", protocol]);
        load.args(["--objects", "20", "--size", "1K", "--requests", "100", "--clients", "4"]);
        load.args(["--fail-if", "errors>0", "--fail-if", "hit_ratio<1"]);
        let (code, out, err) = ended(&mut load);
        assert_eq!(code, Some(0), "{protocol}: {out}{err}");
    }
}

#[test]
fn what_an_earlier_run_stored_counts_as_hits() {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = crate::support::Foxy::start(folder.path(), &[]);
    let origin = Serving::origin();
    for bar in ["hit_ratio>0.9", "hit_ratio<1"] {
        let mut load =
            command(&["load", "--proxy", &foxy.proxy.to_string(), "--origin", &origin.address]);
        load.args(["--objects", "20", "--size", "1K", "--requests", "100", "--clients", "1"]);
        let (code, out, err) = ended(load.args(["--no-warm-up", "--fail-if", bar]));
        assert_eq!(code, Some(0), "{bar}: {out}{err}");
    }
}

#[test]
fn table_3_comes_at_random_times_from_a_file() {
    let lines = "model = \"table3/1\"\nabout = \"x\"\nclients = 5\nservers = 1\nthink-time = \"1 \
                 ms\"\nrate = 900\n";
    let records = run_workload("load", lines, &["--requests", "300"]);
    assert_eq!((value(&records, "requests"), value(&records, "errors")), (300.0, 0.0));
    assert!((0.3..0.5).contains(&value(&records, "offered_hit_ratio")));
}

#[test]
fn polymix_goes_through_its_phases() {
    let lines = "model = \"polymix-4/2\"\nabout = \"x\"\npeak-rate = 1000\nfill-rate = 900\ncache-size = \"1G\"\n\
                 time-scale = 20000\ndelay-scale = 1000\n";
    let records = run_workload("load", lines, &[]);
    assert_eq!((value(&records, "errors"), value(&records, "wrong_bytes")), (0.0, 0.0));
    // The workload freezes its working set (documents that requests repeat) early in so short a
    // run. Most of the 750 simulated servers then have no documents of some type. So the top phases
    // offer fewer hits than the usual 52 %.
    let offered = ["fill", "top1", "top2"]
        .map(|phase| value(&records, &format!("{phase}_offered_hit_ratio")));
    assert!(offered[0] < 0.03 && offered[1..].iter().all(|&top| top > 0.05), "{offered:?}");
    let phases: Vec<&str> = records.iter().filter_map(|record| record["class"].as_str()).collect();
    assert_eq!(
        phases,
        ["framp", "fill", "fexit", "inc1", "top1", "dec1", "idle", "inc2", "top2", "dec2"]
    );
    assert_eq!(records[0]["scale"], 1.0 / 20_000.0);
}

#[test]
fn a_load_whose_proxy_ends_in_the_middle_keeps_what_was_measured_and_says_so() {
    let (origin, folder) = (Serving::origin(), tempfile::tempdir().expect("a folder"));
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (address, to) = (proxy.local_addr().expect("bound").to_string(), origin.address.clone());
    // Starts a proxy that serves three connections and then stops.
    let lives = std::thread::spawn(move || {
        for mut client in proxy.incoming().flatten().take(3) {
            let mut server = std::net::TcpStream::connect(&to).expect("the origin");
            let mut request = [0; 4096];
            let length = client.read(&mut request).expect("a request");
            server.write_all(&request[..length]).expect("sent");
            std::io::copy(&mut server, &mut client).expect("passed on");
        }
    });
    let file = folder.path().join("run.jsonl");
    let mut load =
        command(&["load", "--proxy", &address, "--origin", &origin.address, "--no-warm-up"]);
    load.args(["--protocol", "1.1-close", "--clients", "1", "--requests", "9", "--json"])
        .arg(&file);
    let (code, _, err) = ended(&mut load);
    lives.join().expect("no panic");
    assert_eq!(code, Some(3), "{err}");
    assert!(
        err.contains(
            "6 of 9 requests failed, most of them by connect; no program listens there any more"
        ),
        "{err}"
    );
    let records = records(&file);
    assert_eq!(value(&records, "requests"), 3.0);
    assert!(records.iter().any(|record| record["kind"] == "failed-run"), "{records:?}");
    assert_eq!(records.last().map(|record| &record["held"]), Some(&false.into()));
    assert!(records.iter().all(|record| record["name"] != "two_sided_hit_ratio"));
}

#[test]
fn recorded_times_are_those_of_a_trace() {
    let (code, _, err) = ended(&mut command(&[
        "load",
        "--proxy",
        "127.0.0.1:1",
        "--workload",
        "zipf",
        "--recorded",
        "5",
    ]));
    assert_eq!(code, Some(2), "{err}");
    assert!(
        err.contains("--recorded: only a trace has recorded times; give a trace with --trace"),
        "{err}"
    );
}

#[test]
fn numbers_that_a_load_or_a_peak_cannot_use_are_refused_in_one_line() {
    let check = |arguments: &[&str], expected: &str| {
        let (code, _, err) =
            foxy(&[&[arguments[0], "--proxy", "127.0.0.1:1"], &arguments[1..]].concat());
        assert_eq!(code, Some(2), "{arguments:?}: {err}");
        assert!(err.contains(expected) && err.lines().count() == 1, "{arguments:?}: {err}");
    };
    for count in ["18446744073709551615", "1000000000000"] {
        check(
            &["load", "--objects", count],
            "at most 100000000 objects can have different popularities",
        );
    }
    check(&["peak", "--cache-size", "0"], "--cache-size: 0 is not allowed");
    let expected = "--first-rate 1000: is above --most-rate 10, the most that the robots can send";
    check(&["peak", "--first-rate", "1000", "--most-rate", "10"], expected);
}

#[test]
fn too_few_open_files_are_said_with_how_many_it_takes_and_what_asks_for_them() {
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "ulimit -n 64; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_foxy")]);
        let (ended, _, err) = ended(command.args(arguments));
        assert_eq!(ended, Some(code), "{err}");
        assert!(err.contains(expected), "{err}");
    };
    let load = ["load", "--proxy", "127.0.0.1:1", "--workload"];
    let may = "open files, but this process may open 64; use a smaller value, or raise ulimit -n";
    check(
        &[&load[..], &["table3"]].concat(),
        2,
        &format!("--workload table3: 100 clients: needs up to 268 {may}"),
    );
    let given = [&load[..], &["table3", "--clients", "9"]].concat();
    check(
        &[&given[..], &["--requests", "1"]].concat(),
        2,
        "--clients 9: needs up to 86 open files",
    );
    check(&[&load[..], &["zipf"]].concat(), 2, "--clients 64: needs up to 193 open files");
    let origin = ["origin", "--servers", "100", "--listen", "127.0.0.1:0"];
    check(&origin, 2, &format!("--servers 100: needs up to 164 {may}"));
}
