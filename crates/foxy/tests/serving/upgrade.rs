//! Tests that a new process takes over from a running foxy without a failed request. Whatever
//! happens, one of the two processes must serve.

use crate::support::commands::{foxy as run, signal};
use crate::support::{Foxy, Origin, request};
use foxy_testkit::client::Client;
use foxy_testkit::http::ok;
use foxy_testkit::origin::{TestOrigin, listen};
use foxy_testkit::wait::until;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The new process of an upgrade. Drop ends it, because it is no child of the test.
struct Upgraded(u32);

impl Drop for Upgraded {
    fn drop(&mut self) {
        let killed = std::process::Command::new("kill").args(["-9", &self.0.to_string()]).output();
        drop(killed);
    }
}

fn start(folder: &Path, more: &[&str]) -> Foxy {
    Foxy::start(&folder.join("store"), more)
}

/// Upgrades a running foxy to the same binary. Returns the new process.
fn upgrade(admin: SocketAddr) -> Upgraded {
    let text = format!("POST /upgrade HTTP/1.1\r\nHost: {admin}\r\nContent-Length: 0\r\n\r\n");
    let answer = request(admin, &text);
    assert_eq!(answer.status, 200, "{}", answer.body);
    let said: Value = serde_json::from_str(&answer.body).expect("JSON");
    Upgraded(said["process"].as_u64().and_then(|id| u32::try_from(id).ok()).expect("a process"))
}

fn script(folder: &Path, line: &str) -> PathBuf {
    let path = folder.join("new-foxy");
    std::fs::write(&path, format!("#!/bin/sh\n{line}\n")).expect("written");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).expect("set");
    path
}

fn is_gone(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    status.is_empty() || status.contains(") Z ")
}

/// Requests pages on persistent connections until `ends` is set. Returns the number of answers and
/// of hits.
fn client(proxy: SocketAddr, origin: &Origin, ends: &AtomicBool) -> (usize, usize) {
    let (mut answers, mut hits) = (0, 0);
    let mut connection = None;
    while !ends.load(Ordering::Relaxed) {
        let mut client = connection
            .take()
            .unwrap_or_else(|| Client::on(TcpStream::connect(proxy).expect("connected")));
        let (url, host) = (origin.url(&format!("page{}", answers % 7)), origin.address);
        let answer = client.ask(&format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(answer.status, 200, "{}", answer.head);
        hits += usize::from(answer.cache_status().contains("hit"));
        answers += 1;
        let closes = answer.header("connection").eq_ignore_ascii_case("close");
        connection = (!closes).then_some(client);
    }
    (answers, hits)
}

/// Opens a tunnel to a server that returns each byte.
fn tunnel(proxy: SocketAddr, server: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(proxy).expect("connected");
    write!(stream, "CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n").expect("sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        head.extend(byte);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "));
    stream
}

fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 64];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        stream.write_all(&buffer[..count]).expect("sent");
    }
}

fn is_open(tunnel: &mut TcpStream) -> bool {
    let mut answer = [0; 5];
    tunnel.write_all(b"hello").and_then(|()| tunnel.read_exact(&mut answer)).is_ok()
        && answer == *b"hello"
}

#[test]
fn upgrades_under_load_fail_no_request_and_end_no_body_or_tunnel() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let server = listen(echo);
    let ports = server.port().to_string();
    let mut foxy = start(folder.path(), &["--connect-port", &ports, "--access-log", "off"]);
    let (proxy, admin, ends) = (foxy.proxy, foxy.admin, AtomicBool::new(false));
    let length = 100_000_000;
    let mut slow = Client::on(TcpStream::connect(proxy).expect("connected"));
    let large = origin.url(&format!("large?bytes={length}"));
    slow.send(format!("GET {large} HTTP/1.1\r\nHost: {}\r\n\r\n", origin.address).as_bytes());
    assert!(slow.read() > 0);
    let mut tunnel = tunnel(proxy, server);
    let mut processes = Vec::new();
    std::thread::scope(|scope| {
        let (origin, ends) = (&origin, &ends);
        let clients: Vec<_> =
            (0..4).map(|_| scope.spawn(move || client(proxy, origin, ends))).collect();
        processes.extend((0..3).map(|_| upgrade(admin)));
        ends.store(true, Ordering::Relaxed);
        let counts = clients.into_iter().map(|client| client.join().expect("no request failed"));
        let (answers, hits) = counts.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        assert!(answers > 0 && hits > 0, "{hits} hits of {answers}");
    });
    let body = slow.answer(false).body;
    assert_eq!(body.len(), length, "the old process finishes the body");
    assert!(is_open(&mut tunnel), "the old process keeps the tunnel");
    assert!(!foxy.has_ended());
    drop((tunnel, slow));
    until("the end of the old process", || foxy.has_ended().then_some(()));
    until("the end of the second process", || is_gone(processes[0].0).then_some(()));
    assert!(!is_gone(processes[2].0));
    assert_eq!(foxy.get(&origin.url("page0")).status, 200);
    signal(processes[2].0, "TERM");
    until("the end of the last process", || is_gone(processes[2].0).then_some(()));
}

#[test]
fn the_old_process_finishes_a_stored_body_that_no_validator_lets_it_resume() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let foxy = Foxy::start_plain(&folder.path().join("store"), &["--size", "256M"]);
    let length = 30_000_000;
    let url = origin.url(&format!("large?bytes={length}"));
    let whole = foxy.get(&url).body;
    let mut slow = Client::on(TcpStream::connect(foxy.proxy).expect("connected"));
    slow.send(format!("GET {url} HTTP/1.1\r\nHost: {}\r\n\r\n", origin.address).as_bytes());
    assert!(slow.read() > 0);
    let _new = upgrade(foxy.admin);
    let answer = slow.answer(false);
    assert!(answer.cache_status().contains("hit"), "{}", answer.head);
    assert!(answer.body == whole.as_bytes(), "{} of {length} bytes", answer.body.len());
}

#[test]
fn a_new_process_that_fails_leaves_the_old_process_in_service() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let foxy = start(folder.path(), &[]);
    foxy.get(&origin.url("x"));
    let program = env!("CARGO_BIN_EXE_foxy");
    let cases = [
        ("exit 7".to_owned(), "the new process ended (exit status: 7)"),
        (
            format!("exec {program} \"$@\" --listen 192.0.2.1:1"),
            "no setting says which clients may use foxy",
        ),
        (
            format!("exec {program} \"$@\" --store /proc/no"),
            "the new process failed: store /proc/no",
        ),
    ];
    for (line, expected) in cases {
        let binary = script(folder.path(), &line);
        let admin = foxy.admin.to_string();
        let text = binary.to_str().expect("UTF-8");
        let (code, _, error) = run(&["upgrade", text, "--admin", &admin]);
        assert_eq!(code, Some(3), "{error}");
        assert!(error.contains("the old process continues to serve: "), "{error}");
        assert!(error.contains(expected), "{error}");
        let hit = foxy.get(&origin.url("x"));
        assert!(hit.cache_status().contains("hit"), "{line}: {hit:?}");
    }
    let file = folder.path().join("child");
    let line = format!("sleep 600 & echo $! > {}; exit 0", file.display());
    let (_, _, error) = run(&[
        "upgrade",
        script(folder.path(), &line).to_str().expect("UTF-8"),
        "--admin",
        &foxy.admin.to_string(),
    ]);
    assert!(error.contains("the new process ended"), "{error}");
    let child = std::fs::read_to_string(file).expect("written");
    let child = child.trim().parse().expect("a process id");
    until("the end of the new process's child", || is_gone(child).then_some(()));
    let binary = script(folder.path(), "exit 0");
    std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o777)).expect("set");
    let admin = foxy.admin.to_string();
    let (_, _, error) = run(&["upgrade", binary.to_str().expect("UTF-8"), "--admin", &admin]);
    assert!(error.contains("another user may write "), "{error}");
}

#[test]
fn the_process_that_is_not_killed_serves() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let server = listen(echo);
    let ports = server.port().to_string();
    let mut foxy = start(folder.path(), &["--connect-port", &ports]);
    foxy.get(&origin.url("x"));
    let is_hit = |foxy: &Foxy| foxy.get(&origin.url("x")).cache_status().contains("hit");
    // The open tunnel keeps the old process running.
    let mut tunnel = tunnel(foxy.proxy, server);
    let first = upgrade(foxy.admin);
    assert!(is_hit(&foxy), "the new process has the store");
    signal(first.0, "KILL");
    assert!(is_hit(&foxy), "the old process serves again, with the store");
    foxy.report_containing("the new process has ended; the old process serves again");
    let second = upgrade(foxy.admin);
    assert!(is_open(&mut tunnel));
    foxy.signal("KILL");
    until("the end of the old process", || foxy.has_ended().then_some(()));
    assert!(is_hit(&foxy), "the new process serves, with the store");
    assert!(!is_gone(second.0));
}

#[test]
fn a_change_through_the_old_process_reaches_the_store_of_the_new_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = TestOrigin::start(|_, number| {
        let fields = "Cache-Control: max-age=3600\r\nConnection: close\r\n";
        ok(fields, number.to_string().as_bytes())
    });
    let foxy = start(folder.path(), &[]);
    let (url, host) = (origin.url("/x"), origin.address);
    assert_eq!(foxy.get(&url).body, "0");
    let mut kept = Client::on(TcpStream::connect(foxy.proxy).expect("connected"));
    // The old process must finish a request whose beginning it has received.
    let post = format!("POST {url} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\na");
    kept.send(post.as_bytes());
    until("the request", || (origin.connections() == 2).then_some(()));
    let _new = upgrade(foxy.admin);
    assert_eq!(foxy.get(&url).body, "0", "a hit");
    assert_eq!(kept.ask("b").body, b"1");
    assert_eq!(foxy.get(&url).body, "2", "the old response is gone");
}

#[test]
fn kept_connections_move_to_the_process_that_has_the_store() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let mut foxy = start(folder.path(), &[]);
    let [mut used, mut new] =
        [(); 2].map(|()| Client::on(TcpStream::connect(foxy.proxy).expect("connected")));
    let (url, host) = (origin.url("x"), origin.address);
    let get = format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    used.ask(&get);
    let mut hits = |when: &str| {
        for client in [&mut used, &mut new] {
            let answer = client.ask(&get);
            assert!(answer.cache_status().contains("hit"), "{when}: {}", answer.head);
            assert_eq!(answer.header("connection"), "", "{when}");
        }
    };
    let first = upgrade(foxy.admin);
    hits("the first upgrade");
    until("the end of the old process", || foxy.has_ended().then_some(()));
    let _second = upgrade(foxy.admin);
    hits("the second upgrade");
    until("the end of the second process", || is_gone(first.0).then_some(()));
}
