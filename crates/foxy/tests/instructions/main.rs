//! Counts the instructions that foxy executes for a request, with valgrind's tool cachegrind. A
//! count may grow by at most 2 %. `counts.tsv` has the counts, and the reason for each.

mod clients;
#[path = "../support/mod.rs"]
mod support;

use foxy_testkit::wait::PATIENCE;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use support::black_box::{BlackBox, binary};
use support::{Origin, not_run};

/// Largest relative growth of a count of instructions. A larger growth fails the test.
const TOLERANCE: f64 = 0.02;

/// valgrind runs foxy about 50 times slower.
const SLOW: Duration = Duration::from_secs(4 * PATIENCE.as_secs());

/// A kind of request. Two runs with different numbers of requests show its cost: the difference of
/// the instructions, divided by the difference of the numbers.
struct Work {
    name: &'static str,
    memory: &'static str,
    /// Number of URLs, which the client requests in turn. `None` gives each request a new URL.
    urls: Option<u64>,
    bytes: u64,
    protocol: Protocol,
    requests: [u64; 2],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Http1,
    Http2,
}

const WORKS: [Work; 4] = [
    Work {
        name: "memory hit, 1 KB",
        memory: "64M",
        urls: Some(1),
        bytes: 1_000,
        protocol: Protocol::Http1,
        requests: [500, 2_500],
    },
    // The memory cache has room for only some of the objects, so each object leaves memory before
    // its next request.
    Work {
        name: "disk hit, 8 KB",
        memory: "1M",
        urls: Some(400),
        bytes: 8_000,
        protocol: Protocol::Http1,
        requests: [800, 1_600],
    },
    Work {
        name: "fill, 8 KB",
        memory: "4M",
        urls: None,
        bytes: 8_000,
        protocol: Protocol::Http1,
        requests: [200, 1_000],
    },
    Work {
        name: "memory hit over HTTP/2, 1 KB",
        memory: "64M",
        urls: Some(1),
        bytes: 1_000,
        protocol: Protocol::Http2,
        requests: [500, 2_500],
    },
];

#[test]
fn no_request_costs_more_instructions_than_recorded() {
    let checks = "the instructions of a request";
    let Some(counts) = recorded() else {
        return not_run(checks, "another rustc than in counts.tsv compiled foxy");
    };
    if !Command::new("valgrind").arg("--version").output().is_ok_and(|run| run.status.success()) {
        return not_run(checks, "valgrind is missing");
    }
    let mut grown = Vec::new();
    for (work, recorded) in WORKS.iter().zip(counts) {
        assert_eq!(work.name, recorded.0, "the order of counts.tsv");
        let now = fewest(work, recorded.1 * (1.0 + TOLERANCE));
        let growth = now / recorded.1 - 1.0;
        say(&format!("{}: {now:.0} instructions ({:+.1} %)", work.name, 100.0 * growth));
        if growth > TOLERANCE {
            grown.push(format!("{}\t{now:.0}\tREASON", work.name));
        }
    }
    let rows = grown.join("\n");
    assert!(grown.is_empty(), "put these rows with a reason into counts.tsv:\n{rows}");
}

/// Returns the name and the count of each row of `counts.tsv`. Returns `None` if the file was
/// recorded with another compiler.
fn recorded() -> Option<Vec<(&'static str, f64)>> {
    let mut lines = include_str!("counts.tsv").lines();
    let version = Command::new("rustc").arg("--version").output().ok()?;
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    lines.next().filter(|first| first.contains(version.trim()))?;
    let row = |line: &'static str| {
        let (name, rest) = line.split_once('\t').expect("a name");
        let (count, reason) = rest.split_once('\t').expect("a count and a reason");
        assert!(!reason.is_empty(), "{name} has no reason");
        (name, count.parse().expect("a count"))
    };
    Some(lines.map(row).collect())
}

/// Counts once, and again up to twice while the count is above `limit`, because timers of foxy add
/// instructions on a busy machine. Returns the lowest count.
fn fewest(work: &Work, limit: f64) -> f64 {
    let mut fewest = f64::INFINITY;
    for _ in 0..3 {
        fewest = per_request(work).min(fewest);
        if fewest <= limit {
            break;
        }
    }
    fewest
}

fn per_request(work: &Work) -> f64 {
    let [few, many] = work.requests;
    let counts = std::thread::scope(|scope| {
        [few, many]
            .map(|requests| scope.spawn(move || count(work, requests)))
            .map(|run| run.join().expect("a count"))
    });
    (counts[1] - counts[0]) / (many - few) as f64
}

/// Returns the instructions of a foxy that answers this number of requests.
fn count(work: &Work, requests: u64) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("valgrind.log");
    let mut foxy = start(work, folder.path(), &log);
    let (proxy, _) = foxy.ready(SLOW).unwrap_or_else(|why| panic!("foxy did not start: {why}"));
    let origin = Origin::start();
    let urls = (0..requests).map(|number| {
        let page = work.urls.map_or(number, |urls| number % urls);
        origin.url(&format!("{page}/bytes={}", work.bytes))
    });
    match work.protocol {
        Protocol::Http1 => clients::http1(proxy, urls),
        Protocol::Http2 => clients::http2(proxy, urls),
    }
    let fetches = work.urls.unwrap_or(requests);
    assert_eq!(origin.asked(), fetches, "{}: each other request is a hit", work.name);
    foxy.signal("TERM");
    assert!(foxy.ended(SLOW).is_some(), "foxy did not stop: {}", foxy.said());
    let log = std::fs::read_to_string(log).expect("a log of valgrind");
    let total = log.lines().find_map(|line| line.split_once(" refs:")).expect(&log).1;
    total.trim().replace(',', "").parse().expect("a number")
}

fn start(work: &Work, folder: &Path, log: &Path) -> BlackBox {
    let mut command = Command::new("valgrind");
    command.args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]);
    command.arg(format!("--log-file={}", log.display())).arg(binary());
    command.args(["serve", "--allow-destination", "127.0.0.0/8", "--workers", "1"]);
    command.args(["--device", "threads", "--access-log", "off", "--size", "256M"]);
    command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    // The sample of `foxy whatif` differs from run to run, and would change the count.
    command.args(["--what-if", "off", "--memory", work.memory]);
    command.arg("--store").arg(folder.join("store"));
    BlackBox::spawn(&mut command).expect("valgrind runs")
}

/// Prints `text`, even while the test harness captures output.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("standard error is writable");
}
