//! Tests the lines of the access log for refused requests and for truncated responses.

use crate::support::commands::foxy as run;
use crate::support::{Foxy, Origin, request};
use foxy_testkit::origin::listen_in_order;
use foxy_testkit::parent::TestParent;
use foxy_testkit::wait::{PATIENCE, until};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Starts a foxy, and returns it with the path of its access log.
fn logging(folder: &Path, more: &[&str]) -> (Foxy, PathBuf) {
    let log = folder.join("access.log");
    let foxy = Foxy::start(
        &folder.join("store"),
        &[&["--access-log", log.to_str().expect("UTF-8")], more].concat(),
    );
    (foxy, log)
}

/// Waits for a line that contains all of `parts`.
fn line_with(log: &Path, parts: &[&str]) {
    until(&format!("a line with {parts:?} in {}", log.display()), || {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        text.lines().any(|line| parts.iter().all(|part| line.contains(part))).then_some(())
    });
}

/// Starts an origin that sends `beginning` to every client, and nothing after it. Returns its
/// authority (host and port).
fn silent_after(beginning: &'static [u8]) -> String {
    let mut held = Vec::new();
    let address = listen_in_order(move |mut stream| {
        let _proxy_left = stream.write_all(beginning);
        held.push(stream);
    });
    address.to_string()
}

fn asking(foxy: &Foxy, host: &str) -> TcpStream {
    let mut client = TcpStream::connect(foxy.proxy).expect("connected");
    client
        .write_all(format!("GET http://{host}/page HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())
        .expect("sent");
    client
}

#[test]
fn a_full_disk_under_the_access_log_is_a_trouble_that_keeps_the_proxy_in_service() {
    let (folder, origin) = (tempfile::tempdir().expect("a folder"), Origin::start());
    let flags = ["--access-log", "/dev/full"];
    let mut foxy = Foxy::start(&folder.path().join("store"), &flags);
    foxy.get(&origin.url("a"));
    foxy.report_containing("access log: lines are lost, because the file cannot be written: ");
    let health = foxy.admin("/healthz");
    assert_eq!(health.status, 200, "{health:?}");
    let names_it = |text: &str| text.contains("access log: lines are lost");
    assert!(names_it(&health.body), "{health:?}");
    let admin = foxy.admin.to_string();
    let (code, out, _) = run(&["status", "--interval", "10ms", "--admin", &admin]);
    assert!(code == Some(0) && names_it(&out) && out.contains("1 trouble"), "{out}");
    assert_eq!(run(&["health", "--admin", &admin]).0, Some(0));
}

const BEGUN: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\nbegun";

/// Reads until the first bytes of the body have arrived.
fn read_some(client: &mut TcpStream) {
    client.set_read_timeout(Some(PATIENCE)).expect("set");
    let mut read = Vec::new();
    while !read.ends_with(b"begun") {
        let mut byte = [0];
        client.read_exact(&mut byte).expect("it comes");
        read.extend(byte);
    }
}

#[test]
fn a_refusal_names_the_method_and_the_url_as_far_as_they_were_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let (foxy, log) = logging(folder.path(), &["--access-log-format", "squid"]);
    for (text, status, parts) in [
        ("GET http://a.test/bad HTTP/1.1\r\nno colon\r\n\r\n", 400, "NONE/400 "),
        (
            "GET http://a.test/\x1b[2J HTTP/1.1\r\nno colon\r\n\r\n",
            400,
            " GET http://a.test/%1B[2J ",
        ),
        (
            "GET http://10.0.0.1/private HTTP/1.1\r\nHost: 10.0.0.1\r\nConnection: close\r\n\r\n",
            403,
            "TCP_DENIED/403 ",
        ),
    ] {
        assert_eq!(request(foxy.proxy, text).status, status);
        line_with(&log, &[parts]);
    }
    line_with(&log, &["NONE/400 ", " GET http://a.test/bad "]);
    line_with(&log, &["TCP_DENIED/403 ", " GET http://10.0.0.1/private "]);
}

#[test]
fn a_line_names_the_parent_with_its_port_and_the_rules_about_key_and_response() {
    const RULES: &str = "\
        [[rule]]\nname = \"key\"\nthen = { query-ignore = [\"sig\"] }\n\
        [[rule]]\nname = \"floor\"\nwhen = { status = [200] }\n\
        then = { fresh-at-least = \"1h\" }\n";
    let (folder, parent) = (tempfile::tempdir().expect("a folder"), TestParent::usual());
    let config = folder.path().join("foxy.toml");
    std::fs::write(&config, format!("parent = \"{}\"\n{RULES}", parent.url(""))).expect("written");
    let config = config.to_str().expect("UTF-8");
    let (foxy, log) = logging(folder.path(), &["--access-log-format", "json", "--config", config]);
    assert_eq!(foxy.get("http://a.test/page?sig=1").status, 200);
    line_with(&log, &["\"rules\":\"key, floor\",", &format!("\"parent\":\"{}\"", parent.address)]);
    let metrics = foxy.admin("/metrics").body;
    assert!(metrics.contains("foxy_rule_requests_total{rule=\"floor\"} 1\n"), "{metrics}");
}

#[test]
fn a_reverse_proxys_log_has_the_host() {
    let folder = tempfile::tempdir().expect("a folder");
    let origin = Origin::start();
    let (foxy, log) = logging(folder.path(), &["--origin", &format!("http://{}", origin.address)]);
    request(foxy.proxy, "GET /page HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n");
    line_with(&log, &[" GET http://shop.example/page "]);
}

#[test]
fn a_client_that_leaves_within_an_answer_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (foxy, log) = logging(folder.path(), &["--access-log-format", "json"]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let host = listener.local_addr().expect("bound").to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accepted");
        let _proxy_left = stream.write_all(BEGUN);
        while stream.write_all(&[b'x'; 4096]).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let mut client = asking(&foxy, &host);
    read_some(&mut client);
    drop(client);
    line_with(
        &log,
        &[
            "\"result\":\"TCP_MISS_ABORTED\"",
            "\"cut\":\"client-left\"",
            "\"status\":200",
            "/page\"",
        ],
    );
}

#[test]
fn a_client_that_leaves_while_its_miss_is_never_answered_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("foxy.toml");
    std::fs::write(&config, "[timeouts]\norigin-head = \"300ms\"\n").expect("written");
    let (foxy, log) = logging(folder.path(), &["--config", config.to_str().expect("UTF-8")]);
    let host = silent_after(b"");
    drop(asking(&foxy, &host));
    line_with(&log, &[" TCP_MISS_ABORTED/", &format!(" GET http://{host}/page ")]);
}

#[test]
fn requests_that_a_stop_cuts_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let (foxy, log) = logging(folder.path(), &["--stop-after", "100ms"]);
    let (silent, begun) = (silent_after(b""), silent_after(BEGUN));
    let unanswered = asking(&foxy, &silent);
    let mut answered = asking(&foxy, &begun);
    read_some(&mut answered);
    foxy.signal("TERM");
    foxy.wait();
    line_with(&log, &[" TCP_MISS_STOPPED/000 ", &format!(" GET http://{silent}/page ")]);
    line_with(&log, &[" TCP_MISS_STOPPED/200 ", &format!(" GET http://{begun}/page ")]);
    drop((unanswered, answered));
}
