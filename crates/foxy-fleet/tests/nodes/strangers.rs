//! Tests that only nodes of the fleet are treated as nodes.

use super::bench::TestFleet;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::upstream::fleet::Fleet as _;
use foxy_testkit::certificates::{TestAuthority, TestCertificate};
use foxy_testkit::client::exchange;
use foxy_testkit::http::ok;
use foxy_testkit::http2::PREFACE;
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::until;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn the_field_of_nodes_counts_for_nothing_in_the_request_of_a_client() {
    let origin =
        TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\nFoxy-Fleet: busy\r\n", b"body"));
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    for mark in ["second", "load=1, rate=9999", "busy, failed"] {
        let lines = format!(
            "Foxy-Fleet: {mark}\r\nProxy-Authorization: Basic eA==\r\nX-Forwarded-For: 9.9.9.9\r\n\
             Cache-Control: no-cache\r\n"
        );
        let answer = fleet.node(0).get(&url, &lines);
        assert_eq!((answer.status, &answer.body[..]), (200, &b"body"[..]));
        assert!(answer.head.contains("detail=owner"), "{}", answer.head);
        assert!(!answer.head.to_ascii_lowercase().contains("foxy-fleet:"), "{}", answer.head);
    }
    for head in origin.heads.lock().expect("not poisoned").iter() {
        let head = head.to_ascii_lowercase();
        for name in ["foxy-fleet:", "proxy-authorization:", "x-forwarded-for:", "forwarded:"] {
            assert!(!head.contains(name), "{head}");
        }
        assert!(head.contains("cdn-loop: foxy-a") && head.contains("cdn-loop: foxy-b"), "{head}");
    }
}

#[test]
fn an_origin_that_sends_the_field_of_nodes_reaches_no_client() {
    const FORGED: &str = "Cache-Control: max-age=60\r\nETag: \"1\"\r\nFoxy-Fleet: failed\r\n";
    let origin = TestOrigin::start(|head, _| {
        if head.to_ascii_lowercase().contains("if-none-match") {
            return format!("HTTP/1.1 304 Not Modified\r\n{FORGED}\r\n").into();
        }
        ok(FORGED, b"body")
    });
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    let host = origin.address;
    for (number, node) in fleet.nodes.iter().enumerate() {
        for (method, lines) in
            [("HEAD", ""), ("GET", ""), ("GET", "Cache-Control: no-cache\r\n"), ("GET", "")]
        {
            let request = format!("{method} {url} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n");
            let answer = node.connect().ask(&request);
            let fields = answer.head.to_ascii_lowercase();
            assert_eq!(answer.status, 200, "{fields}");
            assert!(!fields.contains("foxy-fleet:"), "{number} {method} {lines} {fields}");
        }
    }
    let heads = origin.heads.lock().expect("not poisoned");
    assert!(heads.iter().any(|head| head.to_ascii_lowercase().contains("if-none-match")));
}

#[test]
fn a_request_that_comes_back_is_a_loop() {
    let origin = TestOrigin::start(|_, _| ok("", b""));
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    for (value, status) in [
        ("foxy-a", 508),
        ("other, Foxy-A; x=1", 508),
        ("other; x=\"unclosed, foxy-a", 508),
        ("foxy-c", 200),
    ] {
        let answer = fleet.node(0).get(&url, &format!("CDN-Loop: {value}\r\n"));
        assert_eq!(answer.status, status, "{value}");
    }
}

#[test]
fn only_a_member_of_the_fleet_is_served_as_a_node() {
    let origin = TestOrigin::start(|_, _| ok("", b""));
    let fleet = TestFleet::start();
    let address = fleet.node(1).for_nodes;
    let request = format!(
        "GET http://{}/ HTTP/1.1\r\nHost: a.test\r\nFoxy-Fleet: second\r\nConnection: close\r\n\r\n",
        origin.address
    );
    let plain = exchange(TcpStream::connect(address).expect("accepted"), &request);
    assert!(plain.starts_with(b"HTTP/1.1 400 "), "a replayed mark over plain HTTP");
    let foreign = TestAuthority::new();
    for (name, certificate, expected) in [
        ("a member", fleet.authority.sign(&["a"]), true),
        ("no member", fleet.authority.sign(&["d"]), false),
        ("this node itself", fleet.authority.sign(&["b"]), false),
        ("another authority", foreign.sign(&["a"]), false),
    ] {
        let served = is_served(address, &fleet.authority, Some(&certificate));
        assert_eq!(served, expected, "{name}");
    }
    assert!(!is_served(address, &fleet.authority, None), "no certificate");
    assert_eq!(origin.requests(), 0);
    assert!(fleet.node(1).count(Counter::CertificatesRefused) >= 4);
}

#[test]
fn no_open_connection_outlives_the_authority_of_its_node() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\n", b"body"));
    let fleet = TestFleet::start();
    let url = fleet.urls(origin.address, 1, 2).next().expect("a URL");
    let (node, owner) = (fleet.node(0), fleet.node(1));
    assert!(node.get(&url, "").head.contains("detail=owner"));
    owner.trust_only(&TestAuthority::new());
    let answer = node.get(&url, "");
    assert_eq!((answer.status, &answer.body[..]), (200, &b"body"[..]));
    assert!(answer.head.contains("detail=second"), "{}", answer.head);
    until("the owner is lost", || node.nodes.is_lost(1).then_some(()));
}

/// Returns true if a node answers the HTTP/2 preface of a client with this certificate.
fn is_served(
    address: SocketAddr,
    authority: &TestAuthority,
    certificate: Option<&TestCertificate>,
) -> bool {
    let mut config = authority.client(certificate);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = "b".try_into().expect("a name");
    let session = ClientConnection::new(Arc::new(config), name).expect("a session");
    let stream = TcpStream::connect(address).expect("accepted");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    let mut stream = StreamOwned::new(session, stream);
    let mut ask = || -> io::Result<usize> {
        stream.write_all(PREFACE)?;
        // An empty SETTINGS frame.
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0])?;
        stream.read(&mut [0; 64])
    };
    ask().is_ok_and(|count| count > 0)
}
