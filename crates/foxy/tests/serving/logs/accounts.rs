//! Tests that metrics and logs count each kind of request alike.

use crate::support::{Foxy, Origin, Response, request};
use foxy_testkit::wait::{PATIENCE, until};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;

type Counts = BTreeMap<String, u64>;

/// Returns the number of finished requests of each outcome, as metrics have it.
fn metrics(foxy: &Foxy) -> Counts {
    let mut counts = Counts::new();
    for line in foxy.admin("/metrics").body.lines() {
        let Some(cell) = line.strip_prefix("foxy_proxy_responses_total{outcome=\"") else {
            continue;
        };
        let outcome = cell.split('"').next().expect("a label").to_owned();
        let count: u64 = cell.rsplit(' ').next().expect("a value").parse().expect("a number");
        *counts.entry(outcome).or_default() += count;
    }
    counts
}

/// Returns the number of lines of each outcome in a JSON access log.
fn logged(log: &Path) -> Counts {
    let mut counts = Counts::new();
    for line in std::fs::read_to_string(log).unwrap_or_default().lines() {
        let Ok(line) = serde_json::from_str::<Value>(line) else { continue };
        *counts.entry(line["outcome"].as_str().expect("text").to_owned()).or_default() += 1;
    }
    counts
}

fn get(foxy: &Foxy, url: &str) -> Response {
    request(foxy.proxy, &format!("GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"))
}

/// Sends a CONNECT, waits for its 200, and closes the connection.
fn connect(proxy: SocketAddr, authority: &str) {
    let mut stream = TcpStream::connect(proxy).expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let head = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut status = [0; 12];
    stream.read_exact(&mut status).expect("an answer");
    assert_eq!(&status, b"HTTP/1.1 200");
}

/// Starts a foxy that intercepts CONNECTs to `localhost`, but not to `127.0.0.1`.
fn intercepting(folder: &Path, log: &Path, port: u16) -> Foxy {
    let authority = folder.join("ca").display().to_string();
    let mut init = Command::new(env!("CARGO_BIN_EXE_foxy"));
    init.args(["ca", "init", "--allow", "localhost", "--dir", &authority]);
    assert!(init.output().expect("the binary runs").status.success());
    let (log, port) = (log.display().to_string(), port.to_string());
    let logging = ["--access-log", &log, "--access-log-format", "json"];
    let intercepting = ["--intercept-ca", &authority, "--intercept-host", "localhost"];
    let all = [&logging[..], &intercepting, &["--connect-port", &port]].concat();
    Foxy::start(&folder.join("store"), &all)
}

#[test]
fn metrics_and_logs_agree_about_each_kind_of_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let (origin, log) = (Origin::start(), folder.path().join("access.log"));
    let foxy = intercepting(folder.path(), &log, origin.address.port());
    let authority = origin.address.to_string();
    for _ in 0..2 {
        assert_eq!(get(&foxy, &origin.url("page")).status, 200);
    }
    for (text, status) in [
        (format!("POST {} HTTP/1.1\r\nHost: a\r\n", origin.url("page")), 200),
        ("GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: a\r\n".to_owned(), 502),
        ("GET http://10.0.0.1/ HTTP/1.1\r\nHost: a\r\n".to_owned(), 403),
        ("OPTIONS * HTTP/1.1\r\nHost: a\r\n".to_owned(), 400),
        ("GET http://a.test/ HTTP/1.1\r\nno colon\r\n".to_owned(), 400),
    ] {
        let length = if text.starts_with("POST") { "Content-Length: 0\r\n" } else { "" };
        let text = format!("{text}{length}Connection: close\r\n\r\n");
        assert_eq!(request(foxy.proxy, &text).status, status, "{text}");
    }
    connect(foxy.proxy, &authority);
    connect(foxy.proxy, &format!("localhost:{}", origin.address.port()));
    until("the end of all requests", || {
        (logged(&log).values().sum::<u64>() == 9 && metrics(&foxy) == logged(&log)).then_some(())
    });
    let metrics = metrics(&foxy);
    assert_eq!(metrics.get("tunnel"), Some(&2), "{metrics:?}");
    assert_eq!(foxy.metric::<u64>("foxy_proxy_requests_total"), 9, "{metrics:?}");
}
