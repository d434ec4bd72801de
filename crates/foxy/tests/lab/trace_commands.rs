//! Tests the program `foxy trace`: its tables, its files, and exit code 2 for input that it cannot
//! read.

use crate::support::commands::foxy;
use std::path::{Path, PathBuf};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../foxy-workload/tests/data").join(name)
}

fn trace(arguments: &[&str]) -> (Option<i32>, String, String) {
    foxy(&[&["trace"], arguments].concat())
}

fn value<'a>(table: &'a str, name: &str) -> &'a str {
    let row = table.lines().find_map(|line| line.strip_prefix(name));
    row.unwrap_or_else(|| panic!("no {name} in:\n{table}")).trim()
}

#[test]
fn stats_say_what_a_log_holds_and_what_was_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("run.jsonl");
    let log = sample("squid.log");
    let arguments = ["stats", log.to_str().expect("UTF-8"), "--cache-sizes", "2%,1M", "--json"];
    let (code, out, err) = trace(&[&arguments[..], &[json.to_str().expect("UTF-8")]].concat());
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(value(&out, "read (squid)"), "11");
    assert_eq!(value(&out, "left out: not a GET"), "1");
    assert!(out.contains("line 11: field missing: 1000000064.000"), "{out}");
    assert_eq!(value(&out, "unique bytes (last size of each URL)"), "265177");
    assert_eq!(value(&out, "LRU 1 MiB"), "1048576      0.375           0.037");
    assert!(value(&out, "infinite").ends_with("0.375           0.037"), "{out}");
    let records = std::fs::read_to_string(&json).expect("written");
    let found = records
        .lines()
        .any(|line| line.contains(r#""name":"hit_ratio","subject":"infinite","value":0.375"#));
    assert!(found, "{records}");
}

#[test]
fn a_converted_log_has_the_same_statistics() {
    let folder = tempfile::tempdir().expect("a folder");
    let of = |path: &Path| {
        let (code, out, err) = trace(&["stats", path.to_str().expect("UTF-8")]);
        assert_eq!(code, Some(0), "{err}");
        out.split_once("trace ").expect("an overview").1.to_owned()
    };
    let input = sample("table.parquet");
    for name in ["out.csv", "out.csv.gz", "out.log"] {
        let path = folder.path().join(name);
        let paths = [input.to_str().expect("UTF-8"), path.to_str().expect("UTF-8")];
        let (code, _, err) = trace(&[&["convert"], &paths[..]].concat());
        assert_eq!(code, Some(0), "{err}");
        assert_eq!(of(&path), of(&input), "{name}");
    }
}

#[test]
fn a_generated_trace_is_compared_and_reads_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("like.csv.gz");
    let path = path.to_str().expect("UTF-8");
    let (code, out, err) =
        trace(&["generate", "--like", "table1", "--requests", "5000", "--out", path]);
    assert_eq!(code, Some(0), "{err}");
    assert!(out.starts_with("synthetic, like table1: 5000 gets of "), "{out}");
    assert!(value(&out, "hits in memory, share of gets").starts_with("0.320"), "{out}");
    let (code, out, err) = trace(&["stats", path]);
    assert_eq!((code, value(&out, "gets ")), (Some(0), "5000"), "{err}");
}

#[test]
fn what_cannot_be_used_ends_with_code_2_and_one_line_that_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("UTF-8").to_owned()
    };
    let words = file("words", "hello\nworld\n");
    let posts = file("posts", "1.0 1 c TCP_MISS/200 5 POST http://a.test/ - - -\n");
    let good = sample("squid.log");
    let good = good.to_str().expect("UTF-8");
    let cases: [(&[&str], &str); 5] = [
        (&["stats", "/nowhere/at/all"], "cannot be opened"),
        (&["stats", &words], "match no known format"),
        (&["stats", &posts], "1 not a GET"),
        (&["convert", good, "out.txt"], "--to csv or --to squid"),
        (&["convert", good, "/nowhere/out.csv"], "cannot be created"),
    ];
    for (arguments, expected) in cases {
        let (code, _, err) = trace(arguments);
        assert_eq!(code, Some(2), "{arguments:?}: {err}");
        assert!(
            err.contains(expected) && err.trim_end().lines().count() == 1,
            "{arguments:?}: {err}"
        );
    }
}
