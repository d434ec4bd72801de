//! Tests of the Multiplier (LEAP's request copier) with proxies, origins and clients that use TLS.
//! All servers run in this process.

use super::run_of;
use crate::leap::multiplier::passthrough::TIME_LIMIT;
use crate::leap::*;
use crate::wire::tls::by_hand::{authority, origin, secure, trusting};
use crate::wire::tls::{EphemeralAuthority, HandshakeFailure, Trust};
use crate::{Origin, OriginOptions};
use foxy_http::Scheme;
use foxy_testkit::client;
use foxy_testkit::http::head_length;
use foxy_testkit::origin::listen_in_order;
use foxy_workload::{BodyCheck, BodyStream};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};

const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn here(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Returns `https` requests for objects of the origin.
fn objects(origin: &Origin, count: u64) -> impl Iterator<Item = Asked> + use<> {
    let authority: Arc<str> = here(origin.address().port()).to_string().into();
    let asked =
        move |id| Asked::get(Arc::clone(&authority), format!("/o/{id}/2000/1"), Duration::ZERO);
    (0..count).map(move |id| asked(id).over(Scheme::Https))
}

fn replay(run: &LeapRun, origin: &Origin) -> LeapReport {
    let probe = objects(origin, 1).next().expect("one");
    crate::leap::run(run, &probe, &mut objects(origin, 3), &mut |_| {}, &mut |_| {}).expect("run")
}

#[test]
fn copies_go_through_tunnels_and_to_servers_that_speak_tls_and_all_answer_alike() {
    let ((origin, trusted), (certificates, own)) = (origin(), authority());
    let to = here(origin.address().port());
    let proxy = |parent| {
        let outgoing = Outgoing::new(&trusted);
        Multiplier::pass_through_tls(parent, Some(certificates.clone()), outgoing, TIME_LIMIT)
            .expect("started")
    };
    let (forward, reverse) = (proxy(None), proxy(Some(to)));
    let mut run = run_of(&[
        ("direct", to, Manner::Direct),
        ("forward", forward.address(), Manner::Forward),
        ("reverse", reverse.address(), Manner::Reverse),
    ]);
    run.outgoing = Outgoing::new(&both(&trusted, own));
    let report = replay(&run, &origin);
    for path in &report.paths {
        assert_eq!(
            (path.count(Verdict::Ok), path.bytes),
            (3, 6000),
            "{}: {:?}",
            path.name,
            path.examples
        );
    }
    for proxy in [forward, reverse] {
        assert_eq!(proxy.stop().expect("served").paths[0].answers, 5, "the probe is asked twice");
    }
}

fn both(one: &Trust, mut other: Trust) -> Trust {
    other.add_all(one);
    other
}

/// Starts a server that completes the TLS handshake and then sends nothing.
fn handshakes(config: &Arc<ServerConfig>) -> SocketAddr {
    let config = Arc::clone(config);
    listen_in_order(move |client| {
        let server = ServerConnection::new(Arc::clone(&config)).expect("a server");
        let _its_end_is_waited_for = StreamOwned::new(server, client).read_to_end(&mut Vec::new());
    })
}

#[test]
fn a_path_without_trusted_tls_costs_its_own_row_and_is_named() {
    let (origin, trusted) = origin();
    let to = here(origin.address().port());
    let elsewhere = EphemeralAuthority::of(&["elsewhere.test"]).expect("made");
    let trust = both(&trusted, trusting(&[elsewhere.authority()]));
    let unknown = EphemeralAuthority::of(&["127.0.0.1"]).expect("made");
    let refuses = super::server(|_| Some(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n".to_vec()));
    let plain = Origin::start(OriginOptions { listen: HERE, threads: 1 }).expect("started");
    let hangs = TcpListener::bind(HERE).expect("bound");
    let silent = hangs.local_addr().expect("an address");
    for (address, manner, failure, verdict) in [
        (
            handshakes(&elsewhere.server()),
            Manner::Reverse,
            PathFailure::Certificate,
            Verdict::Incomplete,
        ),
        (
            handshakes(&unknown.server()),
            Manner::Reverse,
            PathFailure::Certificate,
            Verdict::Incomplete,
        ),
        (plain.address(), Manner::Reverse, PathFailure::Handshake, Verdict::Incomplete),
        (refuses, Manner::Forward, PathFailure::NoTunnel, Verdict::Incomplete),
        (silent, Manner::Reverse, PathFailure::Timeout, Verdict::Timeout),
        (silent, Manner::Forward, PathFailure::Timeout, Verdict::Timeout),
    ] {
        let mut run = run_of(&[("direct", to, Manner::Direct), ("bad", address, manner)]);
        (run.outgoing, run.time_limit) = (Outgoing::new(&trust), Duration::from_secs(1));
        run.pace = LeapPace::Closed(3);
        let report = replay(&run, &origin);
        let [direct, bad] = &report.paths[..] else { panic!("two paths") };
        assert_eq!((direct.count(Verdict::Ok), direct.failed()), (3, 0), "{failure:?}");
        assert_eq!(
            (bad.count(verdict), bad.failures[failure as usize]),
            (3, 3),
            "{failure:?}: {:?}",
            bad.examples
        );
    }
}

/// An answer without a length ends with its connection. Only a TLS close alert proves that the
/// server has sent everything (RFC 8446 §6.1). Anybody on the network can close the TCP connection.
#[test]
fn an_answer_that_ends_with_its_connection_is_whole_only_if_tls_says_so() {
    let made = EphemeralAuthority::of(&["127.0.0.1"]).expect("made");
    let answers = |says_so: bool| {
        let config = made.server();
        listen_in_order(move |client| {
            let server = ServerConnection::new(Arc::clone(&config)).expect("a server");
            let mut stream = StreamOwned::new(server, client);
            stream.read_exact(&mut [0; 4]).expect("asked");
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nall or not").expect("sent");
            if says_so {
                stream.conn.send_close_notify();
                stream.flush().expect("sent");
            }
            stream.sock.shutdown(std::net::Shutdown::Write).expect("ended");
            let _its_end_is_waited_for = stream.sock.read_to_end(&mut Vec::new());
        })
    };
    let mut run = run_of(&[
        ("says", answers(true), Manner::Direct),
        ("not", answers(false), Manner::Reverse),
    ]);
    run.outgoing = Outgoing::new(&trusting(&[made.authority()]));
    let asked = |path: &str| {
        Asked::get("127.0.0.1".into(), path.into(), Duration::ZERO).over(Scheme::Https)
    };
    let mut requests = std::iter::once(asked("/a"));
    let report = crate::leap::run(&run, &asked("/probe"), &mut requests, &mut |_| {}, &mut |_| {})
        .expect("run");
    assert_eq!(report.paths[0].count(Verdict::Ok), 1, "{:?}", report.paths[0].examples);
    assert_eq!(
        report.paths[1].failures[PathFailure::Closed as usize],
        1,
        "{:?}",
        report.paths[1].examples
    );
}

/// Starts a Multiplier for clients. Both its paths (servers that receive copies of each request)
/// lead to this origin. Also returns the certificate authority that the clients must trust.
fn front(origin: &Origin, trusted: &Trust) -> (Multiplier, Trust) {
    let (certificates, own) = authority();
    let to = here(origin.address().port());
    let mut run = run_of(&[("direct", to, Manner::Direct), ("other", to, Manner::Reverse)]);
    run.outgoing = Outgoing::new(trusted);
    let mut front = Front::here().expect("a port");
    (front.authority, front.scheme) = (Some(to.to_string()), Scheme::Https);
    front.certificates = Some(certificates);
    (Multiplier::start(run, front).expect("started"), own)
}

fn exchange(stream: impl Read + Write, text: &str) -> String {
    let answer = client::exchange(stream, text);
    let end = head_length(&answer).expect("a head");
    if answer.starts_with(b"HTTP/1.1 200 ") {
        let mut check = BodyCheck::new(BodyStream::new(7, 1), 0);
        check.take(&answer[end..]);
        assert_eq!((answer.len() - end, check.wrong_bytes()), (2000, 0));
    }
    String::from_utf8_lossy(&answer[..end]).into_owned()
}

fn get(host: &str, path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

#[test]
fn clients_may_open_tunnels_speak_tls_and_name_https_urls() {
    let (origin, trusted) = origin();
    let (multiplier, own) = front(&origin, &trusted);
    let (to, host) = (multiplier.address(), here(origin.address().port()).to_string());
    let (text, place) = (get(&host, "/o/7/2000/1"), to.to_string());
    let plain = || std::net::TcpStream::connect(to).expect("connected");
    for head in [
        exchange(secure(to, Some(&host), "127.0.0.1", &own), &text),
        exchange(secure(to, Some(&place), "127.0.0.1", &own), &get(&place, "/o/7/2000/1")),
        exchange(secure(to, None, "localhost", &own), &get(&place, "/o/7/2000/1")),
        exchange(plain(), &get(&host, &format!("https://{host}/o/7/2000/1"))),
        exchange(plain(), &get(&place, "/o/7/2000/1")),
    ] {
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    }
    let report = multiplier.stop().expect("served");
    assert_eq!(
        (report.requests, report.paths[1].count(Verdict::Ok)),
        (5, 5),
        "{:?}",
        report.paths[1].examples
    );
}

#[test]
fn tunnels_that_cannot_be_and_tls_that_does_not_come_about_are_counted_by_name() {
    let (origin, trusted) = origin();
    let (multiplier, own) = front(&origin, &trusted);
    let to = multiplier.address();
    let tunnel = |host: &str| format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let within =
        |connect: Option<&str>, text: &str| exchange(secure(to, connect, "127.0.0.1", &own), text);
    let plain = std::net::TcpStream::connect(to).expect("connected");
    let reasons = [FrontRefusal::NotVouched, FrontRefusal::TunnelWithin, FrontRefusal::Misdirected];
    let heads = [
        exchange(plain, &tunnel("a.test:443")),
        within(None, &tunnel("127.0.0.1:443")),
        within(Some("127.0.0.1:444"), &get("127.0.0.1:445", "/")),
    ];
    for (reason, head) in reasons.iter().zip(heads) {
        assert!(head.starts_with(&format!("HTTP/1.1 {} ", reason.status())), "{head}");
    }
    let mut distrusts = secure(to, Some("127.0.0.1:443"), "127.0.0.1", &Trust::default());
    let _its_end_is_waited_for =
        distrusts.write_all(b"x").and_then(|()| distrusts.read_to_end(&mut Vec::new()));
    let mut silent = secure(to, Some("127.0.0.1:443"), "127.0.0.1", &own).sock;
    assert_eq!(silent.read_to_end(&mut Vec::new()).ok(), Some(0), "it is closed in time");
    let clients = multiplier.stop().expect("served").clients.expect("clients");
    assert!(reasons.iter().all(|&reason| clients.refused(reason) == 1), "{clients:?}");
    for reason in [HandshakeFailure::Distrusted, HandshakeFailure::Timeout] {
        assert_eq!(clients.not_entered[reason as usize], 1, "{clients:?}");
    }
}
