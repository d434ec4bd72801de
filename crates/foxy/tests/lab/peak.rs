//! Tests the program `foxy peak`, which searches the highest request rate of a proxy. Tests the
//! proxy that it starts, the end of its search, its records and its page.

use crate::support::commands::{command, ended, records, run_workload, value};
use foxy_base::clock;
use socket2::{Domain, Socket, Type};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A workload with short samples. The cache size is 320 MB divided by the time-scale: 16 MiB.
const PEAK: &str = "model = \"polymix-4/2\"\nabout = \"x\"\npeak-rate = 500\nfill-rate = 300\ncache-size = \"320M\"\n\
                    time-scale = 20\ndelay-scale = 1000\n";

/// Prepares `foxy peak` with a foxy of its own, short samples and this workload. Returns the
/// command, and the path of its records in `folder`.
fn peak(folder: &Path, workload: &str, arguments: &[&str]) -> (Command, PathBuf) {
    let [named, file] = ["mine.toml", "run.jsonl"].map(|name| folder.join(name));
    std::fs::write(&named, workload).expect("written");
    let mut command = command(&["peak", "--start", "foxy", "--sample", "0.3"]);
    command.args(arguments).arg("--folder").arg(folder);
    command.arg("--workload").arg(&named).arg("--json").arg(&file);
    (command, file)
}

#[test]
fn a_peak_is_searched_of_a_proxy_that_is_started_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut command, file) = peak(folder.path(), PEAK, &["--limit", "2"]);
    // Two seconds are too short to fill the cache. The command must keep its measurements, and
    // report that they are incomplete.
    let (code, _, err) = ended(&mut command);
    assert_eq!(code, Some(3), "{err}");
    let records = records(&file);
    assert_eq!(value(&records, "wrong_bytes"), 0.0);
    assert!(value(&records, "cpu_us_per_request") > 0.0);
    let set_up =
        records.iter().find(|record| record["kind"] == "subject").expect("how it was set up");
    assert_eq!(set_up["subject"], "foxy");
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").flatten().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn the_page_says_when_the_search_began_and_every_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    // The workload has equal request rates for its phase fill and for its peak, so all robots
    // (simulated clients) are active from the first sample.
    let workload = PEAK.replace("fill-rate = 300", "fill-rate = 500");
    let arguments = ["--limit", "3", "--low", "5", "--high", "6"];
    let (mut command, file) = peak(folder.path(), &workload, &arguments);
    command.arg("--html").arg(&page);
    let now = || clock::wall().seconds();
    let begun = now();
    let (_, _, err) = ended(&mut command);
    let started = records(&file)[0]["started"].as_u64().expect("a time");
    assert!(
        (begun..=begun + 2).contains(&started),
        "{started} is {} s before the end",
        now() - started
    );
    let page = std::fs::read_to_string(&page).expect("written");
    let warnings: Vec<&str> =
        err.lines().filter_map(|line| line.strip_prefix("peak: all robots")).collect();
    assert!(!warnings.is_empty(), "{err}");
    for warning in warnings {
        assert!(page.contains(&format!("<p>Warning: all robots{warning}.</p>")), "{warning}");
    }
}

#[test]
fn a_started_proxy_is_held_to_its_cores_or_the_search_says_why_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut command, file) = peak(folder.path(), PEAK, &["--cores", "0.05", "--limit", "1"]);
    let (code, _, err) = ended(&mut command);
    if code == Some(3) && file.exists() {
        let records = records(&file);
        let set_up =
            records.iter().find(|record| record["kind"] == "subject").expect("how it was set up");
        let notes = set_up["notes"].as_array().expect("notes");
        assert!(
            notes.iter().any(|note| note == "limited by a control group: --cores 0.05"),
            "{notes:?}"
        );
    } else {
        let expected = ["this needs root", "this system has no control groups for the processor"]
            .map(|why| format!("--start foxy: --cores 0.05: {why}"));
        assert!(expected.iter().any(|expected| err.contains(expected)), "{err}");
    }
}

#[test]
fn a_peak_of_nobody_ends_with_one_line_instead_of_never() {
    // A socket that is bound but does not listen refuses connections, and keeps the port.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).expect("a free port");
    let nobody = socket.local_addr().expect("bound").as_socket().expect("IPv4").to_string();
    let (code, _, err) = ended(&mut command(&["peak", "--proxy", &nobody, "--sample", "0.1"]));
    assert_eq!(code, Some(3), "{err}");
    let expected = format!(
        "peak: {nobody}: no request got a correct answer (connect); is the proxy running there?"
    );
    assert!(err.contains(&expected), "{err}");
}

#[test]
fn a_peak_ends_when_the_cache_is_filled_twice() {
    let lines = "model = \"polymix-4/2\"\nabout = \"x\"\npeak-rate = 500\nfill-rate = 300\ncache-size = \"20M\"\n\
                 time-scale = 20\ndelay-scale = 1000\n";
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("peak.html");
    let more = ["--sample", "0.3", "--html", page.to_str().expect("UTF-8")];
    let records = run_workload("peak", lines, &more);
    assert_eq!(records[0]["scale"], 0.05);
    assert!(value(&records, "fill") >= 2.0 && value(&records, "peak_samples") >= 1.0);
    assert_eq!((value(&records, "hit_ratio"), value(&records, "wrong_bytes")), (0.0, 0.0));
    let timelines = records.iter().filter(|record| record["kind"] == "timeline").count();
    assert_eq!(timelines, 5);
    let page = std::fs::read_to_string(&page).expect("written");
    assert!(page.contains("response time while the cache fills"));
}
