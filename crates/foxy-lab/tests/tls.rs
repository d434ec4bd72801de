//! Tests of the load generator over TLS: through a test proxy that opens or refuses tunnels, and
//! directly to an origin.

use foxy_lab::load::options::{LoadOptions, Mode, Protocol, Stop};
use foxy_lab::load::run;
use foxy_lab::wire::tls::Trust;
use foxy_lab::{ErrorCause, LoadReport, Origin, OriginOptions};
use foxy_workload::{Model, Workload};
use std::io::{Read, Write, copy};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn origin(servers: u32) -> Origin {
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    Origin::start_tls(OriginOptions { listen, threads: 1 }, servers).expect("origin")
}

fn trust(origin: &Origin) -> Option<Trust> {
    let mut trust = Trust::default();
    trust.add_pem(origin.authority().expect("TLS").as_bytes()).expect("an authority");
    Some(trust)
}

/// A proxy that answers CONNECT with `answer` and then forwards bytes. Also returns the requests
/// that the proxy received.
fn proxy(answer: &'static str) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let address = listener.local_addr().expect("bound");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let log = Arc::clone(&log);
            std::thread::spawn(move || tunnel(client, answer, &log));
        }
    });
    (address, asked)
}

fn tunnel(mut client: TcpStream, answer: &str, log: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if client.read_exact(&mut byte).is_err() {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let line = head.lines().next().expect("a line").to_owned();
    let authority = line.split(' ').nth(1).expect("an authority").to_owned();
    log.lock().expect("no panic").push(line);
    if client.write_all(answer.as_bytes()).is_err() || !answer.starts_with("HTTP/1.1 200") {
        return;
    }
    let server = TcpStream::connect(authority).expect("the origin");
    let (mut from, mut to) =
        (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
    std::thread::spawn(move || {
        let _ended = copy(&mut from, &mut to);
        let _gone = to.shutdown(std::net::Shutdown::Write);
    });
    let (mut from, mut to) = (server, client);
    let _ended = copy(&mut from, &mut to);
    let _gone = to.shutdown(std::net::Shutdown::Both);
}

const OPEN: &str = "HTTP/1.1 200 Connection established\r\n\r\n";

fn options(target: SocketAddr, origin: &Origin, requests: u64) -> LoadOptions {
    let mode = Mode::Forward { origin: origin.address().to_string() };
    let workload = Workload::find("zipf").expect("known");
    let (stop, time_limit) = (Stop::Requests(requests), Duration::from_secs(10));
    let tls = trust(origin);
    LoadOptions { tls, clients: 3, stop, time_limit, ..LoadOptions::new(target, mode, workload) }
}

fn counts(report: &LoadReport) -> (u64, u64, u64) {
    (report.answers, report.failed(), report.wrong_bytes)
}

#[test]
fn each_connection_is_a_tunnel_and_every_byte_within_is_right() {
    let (origin, (proxy, asked)) = (origin(1), proxy(OPEN));
    let (kept, closed) =
        (Protocol::Http11 { persistent: true }, Protocol::Http11 { persistent: false });
    for (protocol, tunnels) in
        [(kept, 3), (closed, 60), (Protocol::Http10 { persistent: false }, 60)]
    {
        let report = run(&LoadOptions { protocol, ..options(proxy, &origin, 60) }, &mut |_| {})
            .expect("load runs");
        assert_eq!((counts(&report), report.hits), ((60, 0, 0), 0), "{protocol:?}");
        let asked = std::mem::take(&mut *asked.lock().expect("no panic"));
        assert_eq!(
            asked,
            vec![format!("CONNECT {} HTTP/1.1", origin.address()); tunnels],
            "{protocol:?}"
        );
    }
}

#[test]
fn a_client_that_asks_another_server_has_another_tunnel() {
    let (origin, (proxy, asked)) = (origin(2), proxy(OPEN));
    let mut workload = Workload::find("table3").expect("known");
    let Model::Table3(knobs) = &mut workload.model else { panic!("another model") };
    (knobs.servers, knobs.think_time) = (2, Duration::ZERO);
    let options = LoadOptions { workload, clients: 1, ..options(proxy, &origin, 40) };
    assert_eq!(counts(&run(&options, &mut |_| {}).expect("load runs")), (40, 0, 0));
    let asked = asked.lock().expect("no panic");
    for server in origin.servers() {
        assert!(asked.contains(&format!("CONNECT {server} HTTP/1.1")), "{asked:?}");
    }
}

#[test]
fn without_a_forward_proxy_tls_begins_at_once() {
    let origin = origin(1);
    let mode = Mode::Reverse { host: "localhost".into() };
    let options = LoadOptions { mode, ..options(origin.address(), &origin, 50) };
    assert_eq!(counts(&run(&options, &mut |_| {}).expect("load runs")), (50, 0, 0));
}

#[test]
fn each_obstacle_to_a_tunnel_has_its_own_cause() {
    let secure = origin(1);
    let check = |options: LoadOptions, cause: ErrorCause| {
        let report = run(&LoadOptions { clients: 1, ..options }, &mut |_| {}).expect("load runs");
        assert_eq!((report.answers, report.errors[cause as usize]), (0, 2), "{}", cause.name());
        assert_eq!(report.main_cause(), Some(cause));
    };
    let through = |answer| options(proxy(answer).0, &secure, 2);
    check(through("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), ErrorCause::Tunnel);
    check(through(""), ErrorCause::Tunnel);
    check(through("SSH-2.0-nobody\r\n\r\n"), ErrorCause::Protocol);
    check(LoadOptions { tls: Some(Trust::default()), ..through(OPEN) }, ErrorCause::Certificate);
    let named = Mode::Reverse { host: "elsewhere.test".into() };
    check(
        LoadOptions { mode: named, ..options(secure.address(), &secure, 2) },
        ErrorCause::Certificate,
    );
    check(LoadOptions { protocol: Protocol::Http2, ..through(OPEN) }, ErrorCause::Handshake);
    let plain =
        Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
            .expect("origin");
    let mode = Mode::Forward { origin: plain.address().to_string() };
    check(LoadOptions { mode, ..through(OPEN) }, ErrorCause::Handshake);
}
