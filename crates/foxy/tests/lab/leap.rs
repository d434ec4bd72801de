//! Tests the program `foxy leap`: its tables, records, page and log, and the arguments that it
//! refuses. Also tests it on a proxy that sends wrong responses.

use crate::support::commands::{Serving, foxy, measure, records};
use foxy_lab::leap::Line;
use foxy_testkit::http::{ok, read_head};
use foxy_testkit::origin::listen_in_order;
use serde_json::Value;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::{Receiver, channel};

/// Starts a caching proxy with the reference architecture `prefork`. A two-phase architecture could
/// serve a file that another process is still copying.
fn proxy(store: &Path) -> Serving {
    Serving::reference(store, &["prefork"])
}

fn leap(arguments: &[&str]) -> (Option<i32>, String, String) {
    foxy(&[&["leap"], arguments].concat())
}

/// Starts a proxy that answers every request with the same body. Returns its address, and a channel
/// that yields the requests it received.
fn same_for_all() -> (String, Receiver<String>) {
    let (asked, requests) = channel();
    let address = listen_in_order(move |mut client| {
        let _nobody_listens = asked.send(read_head(&mut client).unwrap_or_default());
        let _gone_already = client.write_all(&ok("", b"hi"));
    });
    (address.to_string(), requests)
}

#[test]
fn two_names_for_one_proxy_give_tables_records_a_page_a_log_and_a_noise_floor() {
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = proxy(&folder.path().join("store"));
    let (a, b) = (format!("a={}", proxy.address), format!("b={}", proxy.address));
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (json, html, log) = (file("json"), file("html"), file("log"));
    let (code, out, err) = leap(&[
        "--proxy",
        &a,
        "--proxy",
        &b,
        "--requests",
        "30",
        "--json",
        &json,
        "--html",
        &html,
        "--log",
        &log,
        "--fail-if",
        "verdict_body_mismatch>0",
    ]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("a less b") && out.contains("noise floor (one address twice): "), "{out}");
    let records = records(Path::new(&json));
    let value = |subject: &str, name: &str| measure(&records, subject, name);
    for path in ["direct", "a", "b"] {
        assert_eq!(value(path, "verdict_ok"), Some(30.0), "{path}: {out}");
        assert_eq!(value(path, "answers"), Some(30.0), "{path}: {out}");
    }
    assert_eq!(value("direct", "hit_ratio"), Some(0.0));
    let hits = value("a", "hit_ratio").expect("known") + value("b", "hit_ratio").expect("known");
    assert!(hits > 0.0, "each of two requests for one URL missed: {out}");
    assert!(value("leap", "noise_floor_us").is_some());
    let ceiling = value("leap", "generator_ceiling").expect("known");
    assert!(ceiling > 0.0 && out.contains("requests per second, of "), "{out}");
    let of_direct =
        |path| value(path, "bandwidth_share_of_direct").expect("what the origin sent for it");
    assert_eq!(of_direct("direct"), 1.0);
    assert!(
        of_direct("a") + of_direct("b") < 2.0,
        "what one stored was not sent for the other: {out}"
    );
    assert_eq!(records.last().map(|record| &record["held"]), Some(&Value::Bool(true)));
    let log = std::fs::read_to_string(log).expect("a log");
    let paths: Vec<String> = log.lines().map(|line| Line::parse(line).expect(line).path).collect();
    assert_eq!(paths.len(), 90);
    assert_eq!(paths.iter().filter(|path| *path == "b").count(), 30);
    let html = std::fs::read_to_string(html).expect("a page");
    assert!(html.contains("Distribution of response times") && !html.contains("src="));
}

#[test]
fn kept_connections_are_said_to_cost_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = proxy(&folder.path().join("store"));
    let named = format!("p={}", proxy.address);
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (json, html) = (file("json"), file("html"));
    let kept = ["--connections", "kept", "--requests", "20", "--json", &json, "--html", &html];
    let (code, out, err) = leap(&[&["--proxy", &named, "--passthrough"], &kept[..]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    let said = "a reused connection takes no time to connect";
    assert!(
        out.contains(said) && std::fs::read_to_string(&html).expect("a page").contains(said),
        "{out}"
    );
    let records = records(Path::new(&json));
    let value = |path: &str, name: &str| measure(&records, path, name).expect(name);
    for path in ["direct", "passthrough"] {
        let found =
            ["kept_connections", "verdict_ok", "connect_p50_us"].map(|name| value(path, name));
        assert_eq!(found, [20.0, 20.0, 0.0], "{path}: {out}");
        assert_eq!(value(path, "kept_connections_with_surplus_bytes"), 0.0, "{path}: {out}");
    }
    // The proxy closes each connection without announcing this in `Connection`, which is not an
    // error.
    let found = ["kept_connections", "verdict_ok", "errors"].map(|name| value("p", name));
    assert_eq!(found, [0.0, 20.0, 0.0], "{out}");
    assert!(value("p", "connect_p50_us") > 0.0, "{out}");
}

#[test]
fn a_lying_proxy_is_named_and_misses_the_bar_and_a_full_disk_stops_only_the_log() {
    let proxy = format!("liar={}", same_for_all().0);
    let (code, out, err) = leap(&[
        "--proxy",
        &proxy,
        "--requests",
        "4",
        "--log",
        "/dev/full",
        "--fail-if",
        "liar/verdict_body_mismatch>0",
    ]);
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(out.contains("BODY_MISMATCH  2 bytes instead of"), "{out}");
    assert!(
        err.contains("liar/verdict_body_mismatch>0")
            && err.contains("/dev/full: the log stops here: "),
        "{err}"
    );
}

#[test]
fn a_trace_is_replayed_as_objects_of_its_sizes() {
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = proxy(&folder.path().join("store"));
    let trace = folder.path().join("access.log");
    let line = |number: u32| {
        format!(
            "{}.000 3 10.0.0.1 TCP_MISS/200 {} GET http://h.test/{number} - DIRECT/- text/html\n",
            100,
            50 + number
        )
    };
    std::fs::write(&trace, format!("{}{}broken\n", line(1), line(2))).expect("written");
    let proxy = format!("p={}", proxy.address);
    let trace = trace.to_str().expect("UTF-8");
    let bar = ["--fail-if", "p/verdict_ok<2"];
    let (code, out, err) =
        leap(&[&["--proxy", &proxy, "--trace", trace, "--recorded"], &bar[..]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("103 B") && err.contains("line 3: "), "{out}{err}");
}

#[test]
fn live_proxies_are_asked_for_what_the_trace_names_and_judged_by_most() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("access.log");
    let line =
        |url: &str| format!("100.000 3 10.0.0.1 TCP_MISS/200 50 GET {url} - DIRECT/- text/html\n");
    let urls =
        ["http://h.test/a?b", "ftp://h.test/file", "https://h.test/secret", "http://h.test:81/c"];
    std::fs::write(&trace, urls.map(line).concat()).expect("written");
    let ((a, requests), (b, _)) = (same_for_all(), same_for_all());
    let (a, b, trace) = (format!("a={a}"), format!("b={b}"), trace.to_str().expect("UTF-8"));
    let bars = ["--fail-if", "verdict_ok<2", "--fail-if", "verdict_ok>2"];
    let arguments = ["--proxy", &a, "--proxy", &b, "--trace", trace, "--live", "--rate", "100"];
    let (code, out, err) = leap(&[&arguments[..], &bars].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains("reference: the answer on which more than half of the proxies agree"),
        "{out}"
    );
    assert!(err.contains("1 GETs of the trace are left out"), "{err}");
    let asked: Vec<String> = requests.try_iter().collect();
    let lines: Vec<&str> = asked.iter().filter_map(|request| request.lines().next()).collect();
    let (first, last) = ("GET http://h.test/a?b HTTP/1.1", "GET http://h.test:81/c HTTP/1.1");
    let tunnel = "CONNECT h.test:443 HTTP/1.1";
    assert_eq!(
        lines,
        [first, first, first, tunnel, last],
        "twice beforehand, to learn what is noise"
    );
    assert!(asked.iter().all(|request| !request.contains("X-Foxy-")), "{asked:?}");
}

/// Returns the first of three consecutive free ports. They are below the range from which the
/// system assigns ports, so that no other program takes them before the test does.
fn three_ports() -> u16 {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 1000).expect("below 1000") * 12;
    let free = |port: u16| TcpListener::bind(("127.0.0.1", port)).is_ok();
    let mut firsts = std::iter::repeat_with(|| {
        20_000 + (own + 3 * TAKEN.fetch_add(1, Ordering::Relaxed)) % 12_000
    });
    firsts.find(|&first| (first..first + 3).all(free)).expect("one")
}

#[test]
fn a_collector_behind_all_asks_the_origin_once_and_says_the_collapse_factor() {
    let folder = tempfile::tempdir().expect("a folder");
    let json = folder.path().join("json");
    let first = three_ports();
    let place = |name: &str, after: u16| format!("{name}=127.0.0.1:{}", first + after);
    // Ports of the Collector stand for the proxies here. The Collector is the common parent proxy
    // in LEAP. It has no cache that answers for a proxy.
    let (a, b, collector) = (place("a", 1), place("b", 2), format!("127.0.0.1:{first}"));
    let (code, out, err) = leap(&[
        "--collector",
        &collector,
        "--proxy",
        &a,
        "--proxy",
        &b,
        "--requests",
        "20",
        "--json",
        json.to_str().expect("UTF-8"),
    ]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains(&format!("leap: b: parent at http://127.0.0.1:{}/", first + 2)), "{out}");
    assert!(
        out.contains("the Collector behind the proxies:") && out.contains("collapse factor "),
        "{out}"
    );
    let records = records(&json);
    let value = |subject: &str, name: &str| measure(&records, subject, name);
    for path in ["direct", "a", "b"] {
        assert_eq!(
            (value(path, "verdict_ok"), value(path, "requests")),
            (Some(20.0), Some(22.0)),
            "{path}: {out}"
        );
    }
    let (factor, fetches) =
        (value("collector", "collapse_factor"), value("collector", "origin_fetches"));
    assert!(factor >= Some(3.0) && fetches <= Some(21.0), "{out}");
}

#[test]
fn trace_requests_by_other_methods_go_to_all_and_the_collector_forwards_each_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("access.log");
    let line = |method: &str, size: u32| {
        format!(
            "100.000 3 10.0.0.1 TCP_MISS/200 {size} {method} http://h.test/a - DIRECT/- text/html\n"
        )
    };
    let lines = [
        ("GET", 500),
        ("HEAD", 300),
        ("POST", 20),
        ("POST", 20),
        ("PUT", 0),
        ("DELETE", 0),
        ("PATCH", 9),
    ];
    std::fs::write(&trace, lines.map(|(method, size)| line(method, size)).concat())
        .expect("written");
    let trace = trace.to_str().expect("UTF-8");

    let origin = Serving::origin();
    let named = format!("p={}", origin.address);
    let bars = ["--fail-if", "verdict_ok<6", "--fail-if", "errors>0"];
    let more = ["--proxy", &named, "--reverse", "--direct", &origin.address, "--trace", trace];
    let (code, out, err) = leap(&[&more, &bars[..]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(
        out.contains("1 gets of 1 URLs, 5 requests by other methods, 1 left out: not a GET"),
        "{out}"
    );

    let first = three_ports();
    let (collector, parent) = (format!("127.0.0.1:{first}"), format!("a=127.0.0.1:{}", first + 1));
    // LEAP's first request to each proxy (the probe) also causes a fetch. Each of the two POST
    // requests is fetched.
    let bars = ["--fail-if", "verdict_ok<6", "--fail-if", "collector/origin_fetches>7"];
    let more = ["--proxy", &parent, "--collector", &collector, "--trace", trace];
    let (code, out, err) = leap(&[&more, &bars[..]].concat());
    assert_eq!(code, Some(0), "{out}{err}");
}

#[test]
fn what_cannot_be_used_is_refused_in_one_line() {
    let refused = |arguments: &[&str], code: i32, part: &str| {
        let (ended, _, err) = leap(arguments);
        assert_eq!(ended, Some(code), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    };
    let one = "a=127.0.0.1:1";
    refused(&["--proxy", "127.0.0.1:1"], 2, "write NAME=ADDRESS:PORT");
    refused(&["--proxy", one, "--proxy", one], 2, "two proxies have this name");
    refused(&["--proxy", one, "--workload", "polymix-4"], 2, "leap cannot send the rest");
    refused(&["--proxy", one, "--live"], 2, "--trace");
    refused(&["--proxy", one, "--rate", "0"], 2, "is not a number of at least 0.001");
    refused(
        &["--proxy", one, "--log", "/no/such/folder/log"],
        2,
        "--log /no/such/folder/log: cannot be created",
    );
    refused(
        &["--proxy", one, "--collector", "127.0.0.1:65535"],
        2,
        "each proxy uses a port after this port",
    );
    let far = ["--proxy", one, "--direct", "192.0.2.1:80", "--collector", "127.0.0.1:1"];
    refused(&far, 2, "must have a loopback or private address");
    refused(&["--check", "overhead", "--connections", "kept"], 2, "--connections");
    refused(&["--proxy", one, "--requests", "2"], 3, "no proxy answered any request");
}
