//! Tests the program `foxy collector`, the Collector of LEAP: a parent proxy of several proxies,
//! which fetches each object once. Tests its output, its files and the arguments that it refuses. A
//! full disk must stop only the log.

use crate::support::commands::{Running, command, foxy, measure, records};
use foxy_lab::{Origin, OriginOptions};
use foxy_testkit::client::exchange;
use foxy_workload::trace::{Format, read};
use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;

/// A running `foxy collector`, and its address for each proxy.
struct Collector {
    running: Running,
    places: Vec<String>,
}

impl Collector {
    /// Starts `foxy collector`. Each proxy in `proxies` has a port of its own.
    fn start(proxies: &[&str], more: &[&str]) -> Self {
        let mut command = command(&["collector"]);
        command.args(more).stderr(Stdio::piped());
        for proxy in proxies {
            command.arg("--listen").arg(format!("{proxy}=127.0.0.1:0"));
        }
        let running = Running::start(&mut command, proxies.len());
        let place = |(line, proxy): (usize, &&str)| {
            let text = format!("collector: {proxy}: parent at http://");
            running.address(line, &text).to_owned()
        };
        let places = proxies.iter().enumerate().map(place).collect();
        Self { running, places }
    }

    /// Sends a request to the port of the proxy at `place`. Returns the first line and the body of
    /// the response.
    fn get(&self, place: usize, url: &str) -> (String, String) {
        let stream = TcpStream::connect(&self.places[place]).expect("connected");
        let text = format!("GET {url} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = String::from_utf8_lossy(&exchange(stream, &text)).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
    }

    /// Stops `foxy collector`. Returns its exit code, standard output and standard error.
    fn stop(mut self) -> (Option<i32>, String, String) {
        let mut stderr = self.running.child.stderr.take().expect("piped");
        let (code, out) = self.running.stop("TERM");
        let mut err = String::new();
        stderr.read_to_string(&mut err).expect("text");
        (code, out, err)
    }
}

fn origin() -> Origin {
    let listen = "127.0.0.1:0".parse().expect("an address");
    Origin::start(OriginOptions { listen, threads: 1 }).expect("started")
}

#[test]
fn four_proxies_make_one_fetch_and_the_log_the_records_and_the_text_say_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (log, json, origin) = (file("log"), file("json"), origin());
    let bars = ["--fail-if", "collapse_factor<4", "--fail-if", "origin_fetches>2"];
    let dir = file("");
    let more = [&["--log", &log, "--json", &json, "--spool-dir", &dir], &bars[..]].concat();
    let collector = Collector::start(&["foxy", "squid", "nginx", "varnish"], &more);
    let url = |number: u32| format!("http://{}/o/{number}/1000/1", origin.address());
    for number in 1..=2 {
        let bodies: Vec<_> = (0..4).map(|place| collector.get(place, &url(number))).collect();
        assert!(
            bodies.iter().all(|body| *body == bodies[0] && body.0 == "HTTP/1.1 200 OK"),
            "{bodies:?}"
        );
    }
    assert_eq!(origin.requests(), 2);
    assert!(
        std::fs::read_to_string(&log).expect("a log").lines().count() >= 7,
        "it can be followed"
    );
    let (code, out, err) = collector.stop();
    assert_eq!((code, err.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("collapse factor 4.00: 8 requests, 2 origin fetches"), "{out}");
    assert!(
        out.contains("collector: offline: asks only loopback")
            && out.contains("|hit − miss|: median "),
        "{out}"
    );
    let log = std::fs::read(&log).expect("a log");
    let (trace, report) = read(&log[..], Some(Format::Squid), &mut |_| {}).expect("Squid's");
    assert_eq!((trace.gets.len(), report.lines, trace.urls(), trace.clients), (8, 8, 2, 4));
    let records = records(Path::new(&json));
    let value = |subject: &str, name: &str| measure(&records, subject, name);
    assert_eq!(
        (value("collector", "origin_fetches"), value("nginx", "requests")),
        (Some(2.0), Some(2.0))
    );
    assert_eq!(
        (value("foxy", "origin_fetches"), value("nginx", "origin_fetches")),
        (Some(2.0), Some(0.0))
    );
    assert!(value("collector", "hit_minus_miss_median_ms").is_some());
    assert_eq!(records.last().map(|record| &record["held"]), Some(&serde_json::Value::Bool(true)));
}

#[test]
fn a_full_disk_stops_the_log_and_not_the_answers() {
    let origin = origin();
    let collector = Collector::start(&["a"], &["--log", "/dev/full", "--fail-if", "requests>1"]);
    let url = format!("http://{}/o/1/1000/1", origin.address());
    assert_eq!(collector.get(0, &url), collector.get(0, &url));
    let (code, _, err) = collector.stop();
    assert_eq!(code, Some(1), "{err}");
    assert_eq!(err.matches("/dev/full: the log stops here: ").count(), 1, "{err}");
    assert!(err.contains("answers go on") && err.contains("requests>1"), "{err}");
}

#[test]
fn offline_the_network_is_not_asked_and_a_named_origin_is_every_host() {
    let collector = Collector::start(&["a"], &[]);
    let (line, body) = collector.get(0, "http://example.test/");
    assert!(
        line.starts_with("HTTP/1.1 403 ") && body.contains("--origin") && body.contains("--live"),
        "{line} {body}"
    );
    let origin = origin();
    let address = origin.address().to_string();
    let collector = Collector::start(&["a"], &["--origin", &address, "--dns-cost", "1ms"]);
    assert_eq!(collector.get(0, "http://example.test/o/1/10/1").0, "HTTP/1.1 200 OK");
    assert_eq!(origin.requests(), 1);
}

#[test]
fn what_cannot_be_used_is_refused_in_one_line() {
    let refused = |arguments: &[&str], part: &str| {
        let (code, _, err) = foxy(&[&["collector"], arguments].concat());
        assert_ne!(code, Some(0), "{arguments:?}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    };
    refused(&["--listen", "here"], "write ADDRESS:PORT or NAME=ADDRESS:PORT");
    refused(&["--origin", "192.0.2.1:80"], "sends requests only to loopback and private addresses");
    refused(&["--any-method"], "--live");
    refused(&["--live", "--live-rate", "0"], "not a number from 0.001");
    refused(
        &["--spool-dir", "/no/such/folder"],
        "--spool-dir /no/such/folder: no file can be created in this folder",
    );
    refused(&["--log", "/no/such/folder/log"], "--log /no/such/folder/log: cannot be created");
    refused(&["--listen", "192.0.2.1:1"], "choose another place with --listen");
}
