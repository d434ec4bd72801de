//! Tests CONNECTs that the proxy intercepts, CONNECTs that it does not intercept, and requests that
//! it refuses inside a CONNECT. The origins use TLS with certificates of another authority.

use crate::intercept_bench::{Bench, HOST, ask, session};
use foxy_proxy::core::counters::Counter;
use foxy_testkit::certificates::client_trusting;
use foxy_testkit::client::Client;
use foxy_testkit::http::header;
use rustls::StreamOwned;
use rustls::pki_types::ServerName;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// Reads to the end of the connection. Returns true if the proxy closes the connection.
fn is_closed(stream: &mut impl Read) -> bool {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof),
    }
}

#[test]
fn what_was_fetched_through_one_connect_is_a_hit_through_the_next() {
    let bench = Bench::new(HOST, &[HOST]);
    let first = bench.get("/x");
    assert!(first.starts_with("HTTP/1.1 200 ") && first.ends_with("answer 0"), "{first}");
    assert_eq!(header(&first, "cache-status"), Some("foxy; fwd=uri-miss; fwd-status=200; stored"));
    let second = bench.get("/x");
    assert!(second.ends_with("answer 0"), "{second}");
    assert!(
        header(&second, "cache-status").is_some_and(|status| status.starts_with("foxy; hit")),
        "{second}"
    );
    let absolute = bench.proxy.get(&bench.origin.url("/x").replace("127.0.0.1", HOST), "");
    assert_eq!(absolute.body, b"answer 0", "the URL is the key, however it was asked for");
    assert_eq!((bench.origin.requests(), bench.proxy.count(Counter::Intercepted)), (1, 2));
}

#[test]
fn one_connection_inside_serves_many_requests() {
    let bench = Bench::new(HOST, &[HOST]);
    let mut client = bench.enter(HOST, bench.ours(), HOST);
    let authority = bench.authority(HOST);
    for path in ["/a", "/b"] {
        write!(client, "GET {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n").expect("taken");
        let mut start = [0; 12];
        client.read_exact(&mut start).expect("an answer");
        assert_eq!(&start, b"HTTP/1.1 200");
        let mut rest = Vec::new();
        while !rest.windows(7).any(|window| window == b"answer ") || rest.ends_with(b"answer ") {
            let mut byte = [0];
            client.read_exact(&mut byte).expect("the rest");
            rest.push(byte[0]);
        }
    }
    assert_eq!(bench.origin.requests(), 2);
    assert_eq!(bench.proxy.count(Counter::Connections), 1);
}

#[test]
fn a_hello_that_came_with_the_connect_is_heard() {
    let bench = Bench::new(HOST, &[HOST]);
    let mut session = session(bench.ours(), HOST);
    let authority = bench.authority(HOST);
    let mut bytes =
        format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n").into_bytes();
    session.write_tls(&mut bytes).expect("a hello");
    let mut stream = bench.proxy.connect().stream;
    stream.write_all(&bytes).expect("taken");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "));
    let mut client = StreamOwned::new(session, stream);
    let answer = ask(&mut client, &format!("GET / HTTP/1.1\r\nHost: {authority}"));
    assert!(answer.ends_with("answer 0"), "{answer}");
}

#[test]
fn addresses_can_be_intercepted_too() {
    let bench = Bench::with("127.0.0.0/8", &["127.0.0.1"], "127.0.0.1", |_| {});
    let mut client = bench.enter("127.0.0.1", bench.ours(), "127.0.0.1");
    let authority = bench.authority("127.0.0.1");
    let answer = ask(&mut client, &format!("GET / HTTP/1.1\r\nHost: {authority}"));
    assert!(answer.ends_with("answer 0"), "{answer}");
}

#[test]
fn what_is_not_listed_or_not_permitted_is_carried_unseen() {
    for (permitted, listed) in [(HOST, "other.test"), ("other.test", HOST)] {
        let bench = Bench::new(permitted, &[listed]);
        let mut client = bench.enter(HOST, bench.signs_origin.certificate(), HOST);
        write!(client, "GET / HTTP/1.1\r\nHost: anything\r\n\r\n").expect("taken");
        client.read_exact(&mut [0; 12]).expect("the origin's own answer");
        assert_eq!(bench.proxy.count(Counter::Tunnels), 1, "{permitted} {listed}");
        assert_eq!(bench.proxy.count(Counter::Intercepted), 0);
        assert_eq!(bench.origin.requests(), 1);
    }
}

#[test]
fn a_request_for_another_host_is_misdirected_and_reaches_nobody() {
    let bench = Bench::new(HOST, &[HOST]);
    for (lines, status, reason) in [
        ("GET / HTTP/1.1\r\nHost: other.test", 421, "misdirected"),
        ("GET https://other.test/ HTTP/1.1\r\nHost: other.test", 421, "misdirected"),
        ("CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443", 405, "connect-inside-tls"),
    ] {
        let mut client = bench.enter(HOST, bench.ours(), HOST);
        let answer = ask(&mut client, lines);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert_eq!(
            header(&answer, "cache-status"),
            Some(format!("foxy; detail={reason}").as_str())
        );
    }
    assert_eq!((bench.origin.requests(), bench.proxy.store.len()), (0, 0));
}

#[test]
fn http_2_inside_is_cached_and_held_to_the_authority_as_well() {
    let bench = Bench::new(HOST, &[HOST]);
    let (_, stream) = bench.connect(HOST);
    stream.set_nonblocking(true).expect("a socket");
    let mut config = client_trusting([bench.ours()], None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::from_std(stream).expect("a socket");
        let name = ServerName::try_from(HOST).expect("a name");
        let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let (client, connection) =
            h2::client::handshake(tls.expect("trusted")).await.expect("HTTP/2");
        tokio::spawn(connection);
        for (host, expected) in [(HOST, 200), ("other.test", 421), (HOST, 200)] {
            let mut client = client.clone().ready().await.expect("room for a stream");
            let url = format!("https://{}/x", bench.authority(host));
            let request = http::Request::get(url).body(()).expect("a request");
            let (response, _) = client.send_request(request, true).expect("taken");
            assert_eq!(response.await.expect("an answer").status(), expected, "{host}");
        }
    });
    assert_eq!((bench.origin.requests(), bench.proxy.count(Counter::MemoryHits)), (1, 1));
}

#[test]
fn a_bad_certificate_of_the_origin_is_told_and_nothing_kept() {
    let bench = Bench::with(HOST, &[HOST], "other.test", |_| {});
    let answer = bench.get("/");
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert_eq!(header(&answer, "proxy-status"), Some("foxy; error=tls_certificate_error"));
    assert_eq!(header(&answer, "cache-status"), Some("foxy; detail=certificate-name-mismatch"));
    assert_eq!((bench.origin.requests(), bench.proxy.store.len()), (0, 0));
}

#[test]
fn a_hello_for_another_host_than_the_connect_is_closed_and_counted() {
    let bench = Bench::new(HOST, &[HOST]);
    let mut client = bench.enter(HOST, bench.ours(), "other.test");
    let refused = client.conn.complete_io(&mut client.sock).expect_err("no handshake");
    assert_ne!(refused.kind(), ErrorKind::WouldBlock, "closed, not left waiting");
    bench.wait_for(Counter::InterceptWrongName, 1);
}

#[test]
fn a_client_that_does_not_trust_the_authority_is_counted() {
    let bench = Bench::new(HOST, &[HOST]);
    let mut client = bench.enter(HOST, bench.signs_origin.certificate(), HOST);
    client.conn.complete_io(&mut client.sock).expect_err("not trusted");
    bench.wait_for(Counter::InterceptDistrusted, 1);
    assert_eq!(bench.proxy.count(Counter::Intercepted), 0);
}

#[test]
fn what_is_not_tls_is_closed_and_what_never_ends_let_go() {
    let bench = Bench::with(HOST, &[HOST], HOST, |settings| {
        settings.client_handshake = Duration::from_millis(50)
    });
    let cases = [
        (&b"SSH-2.0-x\r\n"[..], Counter::InterceptNotTls),
        (b"\x16\x03\x01", Counter::InterceptFailures),
    ];
    for (bytes, counter) in cases {
        let (_, mut stream) = bench.connect(HOST);
        stream.write_all(bytes).expect("taken");
        assert!(is_closed(&mut stream));
        bench.wait_for(counter, 1);
    }
    assert_eq!(bench.origin.connections(), 0);
}

#[test]
fn a_forbidden_destination_is_refused_before_anything_is_intercepted() {
    let bench =
        Bench::with(HOST, &[HOST], HOST, |settings| settings.destinations.allowed = Vec::new());
    let (answer, _) = bench.connect(HOST);
    assert_eq!((answer.status, answer.cache_status()), (403, "foxy; detail=destination-forbidden"));
    let closed = Bench::with(HOST, &[HOST], HOST, |settings| {
        settings.destinations.connect_ports = vec![443]
    });
    assert_eq!(closed.connect(HOST).0.status, 403);
    let mut plain = Client::on(bench.connect(HOST).1);
    assert_eq!(plain.read(), 0, "the connection is closed");
}
