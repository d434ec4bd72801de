//! Tests the program `foxy load --trace`. One log must give a known number of hits on a running
//! foxy. Other logs cannot be used.

use crate::support::commands::{Serving, command, ended, records};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Builds a Squid log with a GET for each URL and size, 20 ms apart.
fn log(gets: &[(&str, u64)]) -> String {
    let line = |(number, (url, size)): (usize, &(&str, u64))| {
        let time = 1_000_000_000.0 + number as f64 * 0.02;
        format!("{time:.3} 3 10.0.0.1 TCP_MISS/200 {size} GET http://{url} - DIRECT/- text/html\n")
    };
    gets.iter().enumerate().map(line).collect()
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("written");
    path
}

fn packed(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).expect("memory");
    packer.finish().expect("memory")
}

#[test]
fn a_trace_on_foxy_hits_what_it_offers_at_every_pace_and_broken_lines_are_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let gets = [("a/", 100), ("b/", 5000), ("a/", 100), ("a/", 150), ("a/", 100), ("a/", 150)];
    let text =
        log(&gets) + "this is not a line of a log\n" + &log(&[("a/", 9)]).replace("GET", "POST");
    let plain = written(folder.path(), "access.log", text.as_bytes());
    let gzip = written(folder.path(), "access.log.gz", &packed(&text));
    let jsonl = folder.path().join("run.jsonl");
    // Three of the six requests repeat an earlier request. These three hits have 100 + 100 + 150 of
    // all 5600 bytes.
    let expected = [
        ("requests", 6.0),
        ("errors", 0.0),
        ("wrong_bytes", 0.0),
        ("offered_hit_ratio", 0.5),
        ("offered_byte_hit_ratio", 0.0625),
        ("hit_ratio", 0.5),
        ("byte_hit_ratio", 0.0625),
        ("two_sided_hit_ratio", 0.5),
        ("trace_lines", 8.0),
        ("trace_lines_left_out", 2.0),
        ("trace_lines_broken", 1.0),
    ];
    let paces: [(&Path, &[&str]); 3] =
        [(&plain, &[]), (&gzip, &["--rate", "50"]), (&plain, &["--recorded", "2"])];
    for (number, (log, pace)) in paces.into_iter().enumerate() {
        let foxy = crate::support::Foxy::start(&folder.path().join(number.to_string()), &[]);
        let mut load = command(&["load", "--proxy", &foxy.proxy.to_string(), "--clients", "1"]);
        load.arg("--trace").arg(log).arg("--json").arg(&jsonl).args(pace);
        let (code, out, err) = ended(&mut load);
        assert_eq!(code, Some(0), "{pace:?}: {out}{err}");
        assert!(
            err.contains("load: line 7: ")
                && err.contains("8 lines read as squid, 6 gets of 2 URLs"),
            "{err}"
        );
        let records = records(&jsonl);
        for (name, value) in expected {
            let found = records.iter().find(|record| record["name"] == name);
            assert_eq!(
                found.unwrap_or_else(|| panic!("no {name}"))["value"],
                value,
                "{pace:?} {name}"
            );
        }
        assert_eq!(records[0]["scale"], if number == 2 { 0.5 } else { 1.0 });
    }
}

#[test]
fn a_trace_that_cannot_be_replayed_is_refused_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Serving::origin();
    let check = |log: &Path, more: &[&str], expected: &str| {
        let mut load = command(&["load", "--proxy", &origin.address, "--trace"]);
        let (code, _, err) = ended(load.arg(log).args(more));
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(expected), "{expected}: {err}");
        assert_eq!(err.trim_end().lines().count(), 1, "{err}");
    };
    check(&folder.path().join("none.log"), &[], "none.log: cannot be opened: No such file");
    check(folder.path(), &[], "cannot be read: Is a directory");
    check(&written(folder.path(), "empty.log", b""), &[], "empty.log: the file is empty");
    let posts = log(&[("a/", 9)]).replace("GET", "POST");
    check(
        &written(folder.path(), "posts.log", posts.as_bytes()),
        &[],
        "no GET request in 1 lines read as squid (1 not a GET)",
    );
    let cut = &packed(&log(&[("a/", 9), ("b/", 9)]))[..12];
    check(&written(folder.path(), "cut.gz", cut), &[], "cut.gz: ");
    let good = written(folder.path(), "good.log", log(&[("a/", 9)]).as_bytes());
    check(
        &good,
        &["--objects", "5"],
        "--objects: only workloads of the model objects/1 have this option",
    );
    check(&good, &["--newest", "5"], "--newest: only workloads that never repeat");
}

#[test]
fn what_only_a_trace_has_is_refused_without_one() {
    for (more, expected) in [
        (&["--recorded"][..], "--trace <FILE>"),
        (&["--format", "squid"], "--trace <FILE>"),
        (&["--trace", "a", "--workload", "zipf"], "cannot be used with"),
        (&["--trace", "a", "--recorded", "--rate", "5"], "cannot be used with"),
        (&["--trace", "a", "--recorded", "0"], "is not a number of at least 0.001"),
    ] {
        let (code, _, err) = ended(command(&["load", "--proxy", "127.0.0.1:1"]).args(more));
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(expected), "{expected}: {err}");
    }
}
