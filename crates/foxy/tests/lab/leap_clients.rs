//! Tests the program `foxy leap --listen`: real clients connect to LEAP, which sends their requests
//! to several proxies and to the origin.

use crate::support::commands::{Running, Serving, command, foxy, measure, records};
use foxy_testkit::client::exchange;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

/// Starts a Multiplier: the part of LEAP that copies each client's request to all proxies. Returns
/// the Multiplier, its address, and the address of its origin.
fn start(arguments: &[&str]) -> (Running, String, String) {
    let listen = ["leap", "--listen", "127.0.0.1:0"];
    let leap = Running::start(&mut command(&[&listen[..], arguments].concat()), 1);
    let address = leap.address(0, "://").to_owned();
    let origin = leap.address(0, " a host in the URL go to ").to_owned();
    (leap, address, origin)
}

fn ask(address: &str, request: &str) -> String {
    let stream = TcpStream::connect(address).expect("connected");
    String::from_utf8_lossy(&exchange(stream, request)).into_owned()
}

#[test]
fn clients_requests_go_to_all_and_what_was_found_is_said_when_it_is_stopped() {
    let folder = tempfile::tempdir().expect("a folder");
    let proxy = |name: &str| Serving::reference(&folder.path().join(name), &["prefork"]);
    let (one, other) = (proxy("one"), proxy("other"));
    let (a, b) = (format!("a={}", one.address), format!("b={}", other.address));
    let file = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (json, log) = (file("json"), file("log"));
    let more = ["--json", &json, "--log", &log, "--fail-if", "verdict_ok<12"];
    let (leap, address, origin) = start(&[&["--proxy", &a, "--proxy", &b], &more[..]].concat());
    for number in 0..6 {
        for target in [format!("http://{origin}/o/{number}/9/1"), format!("/o/{number}/9/1")] {
            let host = if target.starts_with('/') { &address } else { &origin };
            let request =
                format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            let answer = ask(&address, &request);
            assert!(
                answer.starts_with("HTTP/1.1 200 ") && answer.contains("Content-Length: 9\r\n"),
                "{answer}"
            );
            assert!(!answer.contains("X-Foxy-Request"), "{answer}");
        }
    }
    let refused = ask(&address, "CONNECT h.test:443 HTTP/1.1\r\nHost: h.test:443\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 501 "), "{refused}");
    let (code, said) = leap.stop("INT");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("12 requests") && said.contains("clients: 13 connections"), "{said}");
    assert!(said.contains("refused no_authority: 1: "), "{said}");
    let records = records(Path::new(&json));
    // A client may repeat a request as soon as it has its response. A slower proxy may not have
    // stored its own response by then, and so misses.
    let hits = measure(&records, "a", "hit_ratio").expect("the origin's numbers show hits");
    assert!((0.0..=0.5).contains(&hits), "{said}");
    assert_eq!(std::fs::read_to_string(log).expect("a log").lines().count(), 36);
}

/// Every thread that a request needs must exist before the request.
#[test]
fn lesson_6_no_request_waits_for_a_thread_to_be_made() {
    let (leap, address, _) = start(&["--proxy", "closed=127.0.0.1:1"]);
    let threads = || {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", leap.child.id())).expect("it runs");
        status.lines().find(|line| line.starts_with("Threads:")).expect("counted").to_owned()
    };
    let before = threads();
    let request = format!("GET /o/1/100000/1 HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let mut clients: Vec<TcpStream> =
        (0..40).map(|_| TcpStream::connect(&address).expect("connected")).collect();
    for client in &mut clients {
        client.write_all(request.as_bytes()).expect("sent");
    }
    for client in &mut clients {
        client.read_exact(&mut [0; 100_000]).expect("answered");
    }
    assert_eq!(threads(), before, "and all connections are open");
    drop(clients);
    let (code, said) = leap.stop("INT");
    assert_eq!(code, Some(3), "the proxy answered nothing: {said}");
}

#[test]
fn arguments_that_do_not_go_together_are_refused() {
    let refused = |arguments: &[&str], part: &str| {
        let (code, _, err) = foxy(&[&["leap", "--proxy", "a=127.0.0.1:1"], arguments].concat());
        assert_eq!(code, Some(2), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    };
    refused(
        &["--listen", "127.0.0.1:0", "--rate", "5"],
        "with --listen the clients decide when they send requests",
    );
    refused(&["--listen", "127.0.0.1:0", "--trace", "x"], "--listen");
    refused(&["--for", "1s"], "--listen");
    refused(&["--live", "--trace", "x", "--direct", "127.0.0.1:1"], "leave out --direct or --live");
}
