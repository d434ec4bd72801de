//! Tests origins behind TLS: fetches from them, and every kind of certificate that the proxy
//! refuses.

use crate::bench::{TestProxy, proxy_with};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::request::mode::Mode;
use foxy_proxy::upstream::{Authorities, OriginServer, OriginTls, Scheme};
use foxy_testkit::certificates::TestAuthority;
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use rcgen::date_time_ymd;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;

fn trusting(authority: &TestAuthority) -> OriginTls {
    let mut authorities = Authorities::none();
    authorities.add_pem(authority.pem().as_bytes()).expect("a certificate");
    OriginTls::trusting(authorities)
}

fn forward_proxy_trusting(authority: &TestAuthority) -> TestProxy {
    proxy_with(|settings| settings.upstream.tls = trusting(authority))
}

fn cached(_: &str, number: usize) -> Vec<u8> {
    ok("Cache-Control: max-age=60\r\n", format!("answer {number}").as_bytes())
}

#[test]
fn an_https_url_is_fetched_over_tls_and_kept() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start_tls(authority.sign(&["127.0.0.1"]).server(), cached);
    let proxy = forward_proxy_trusting(&authority);
    for (number, expected) in ["answer 0", "answer 0"].into_iter().enumerate() {
        let answer = proxy.get(&origin.url("/x"), "");
        assert_eq!((answer.status, answer.body), (200, expected.into()), "request {number}");
    }
    assert_eq!(origin.requests(), 1);
    assert_eq!(proxy.count(Counter::MemoryHits), 1);
}

#[test]
fn the_scheme_tells_cached_responses_apart() {
    let origin = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/", origin.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for mut stream in origin.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&ok("Cache-Control: max-age=60\r\n", b"plain"));
        }
    });
    let proxy = forward_proxy_trusting(&TestAuthority::new());
    assert_eq!(proxy.get(&url, "").body, b"plain");
    let answer = proxy.get(&url.replace("http://", "https://"), "");
    assert_eq!((answer.status, answer.cache_status()), (502, "foxy; detail=tls-failed"));
}

#[test]
fn one_connection_serves_many_requests_and_a_large_body() {
    let authority = TestAuthority::new();
    let body: Vec<u8> = (0..3_000_000_u32).map(|index| (index % 251) as u8).collect();
    let sent = body.clone();
    let origin =
        TestOrigin::start_tls(authority.sign(&["127.0.0.1"]).server(), move |_, _| ok("", &sent));
    let proxy = forward_proxy_trusting(&authority);
    for path in ["/a", "/b", "/c"] {
        assert!(proxy.get(&origin.url(path), "Cache-Control: no-store\r\n").body == body, "{path}");
    }
    assert_eq!(origin.connections(), 1);
}

#[test]
fn a_request_body_goes_through_tls() {
    let authority = TestAuthority::new();
    let echo =
        |head: &str, _: usize| ok("", head.split("\r\n\r\n").nth(1).unwrap_or("").as_bytes());
    let origin = TestOrigin::start_tls(authority.sign(&["127.0.0.1"]).server(), echo);
    let proxy = forward_proxy_trusting(&authority);
    let body = "b".repeat(200_000);
    let (url, length) = (origin.url("/"), body.len());
    let request =
        format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}");
    let answer = proxy.connect().ask(&request);
    assert!(answer.status == 200 && answer.body == body.as_bytes());
}

#[test]
fn a_reverse_proxy_speaks_tls_with_its_origin() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start_tls(authority.sign(&["localhost"]).server(), cached);
    let proxy = proxy_with(|settings| {
        settings.upstream.tls = trusting(&authority);
        let (host, port) = ("localhost".to_owned(), origin.address.port());
        settings.mode = Mode::reverse(OriginServer { scheme: Scheme::Https, host, port });
    });
    assert_eq!(proxy.connect().ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").body, b"answer 0");
}

#[test]
fn certificates_that_prove_nothing_are_refused_by_name() {
    let authority = TestAuthority::new();
    let cases = [
        (TestAuthority::new().sign(&["127.0.0.1"]), "certificate-untrusted"),
        (authority.sign(&["a.test", "127.0.0.2"]), "certificate-name-mismatch"),
        (
            authority.sign_with(&["127.0.0.1"], |parameters| {
                parameters.not_before = date_time_ymd(2000, 1, 1);
                parameters.not_after = date_time_ymd(2001, 1, 1);
            }),
            "certificate-expired",
        ),
    ];
    let proxy = forward_proxy_trusting(&authority);
    for (certificate, reason) in cases {
        let origin = TestOrigin::start_tls(certificate.server(), cached);
        let answer = proxy.get(&origin.url("/"), "");
        assert_eq!(
            (answer.status, answer.cache_status()),
            (502, format!("foxy; detail={reason}").as_str())
        );
        assert_eq!(origin.requests(), 0, "{reason}");
    }
}

#[test]
fn a_handshake_that_does_not_come_about_ends_in_time_and_is_named() {
    let authority = TestAuthority::new();
    let proxy = proxy_with(|settings| {
        settings.upstream.tls = trusting(&authority);
        settings.upstream.connect_timeout = Duration::from_millis(150);
    });
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}/", silent.local_addr().expect("bound"));
    let answer = proxy.get(&url, "");
    assert_eq!((answer.status, answer.cache_status()), (504, "foxy; detail=tls-timeout"));
    let closing = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}/", closing.local_addr().expect("bound"));
    std::thread::spawn(move || {
        let (mut stream, _) = closing.accept().expect("a connection");
        let mut hello = [0; 5];
        let _ = stream.read_exact(&mut hello);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let answer = proxy.get(&url, "");
    assert_eq!((answer.status, answer.cache_status()), (502, "foxy; detail=tls-closed"));
}

#[test]
fn an_upgrade_tunnels_through_tls() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start_tls(authority.sign(&["127.0.0.1"]).server(), |_, _| {
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nhello"
            .to_vec()
    });
    let proxy = forward_proxy_trusting(&authority);
    let mut client = proxy.connect();
    let url = origin.url("/");
    let head =
        format!("GET {url} HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
    assert_eq!(client.ask(&head).status, 101);
    assert_eq!(client.take(5), b"hello");
}
