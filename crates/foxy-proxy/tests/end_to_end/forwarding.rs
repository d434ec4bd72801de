//! Tests forwarding of bodies in both directions, interim responses, trailers, upgrades, tunnels
//! and refusals.

use crate::bench::{forward_proxy, proxy_with, reverse_proxy};
use foxy_testkit::http::{header, ok, read_head};
use foxy_testkit::origin::{TestOrigin, listen};
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn a_body_travels_to_the_origin_and_the_answer_back() {
    let origin = TestOrigin::start(|message, _| {
        ok("", message.split("\r\n\r\n").nth(1).unwrap_or("").as_bytes())
    });
    let proxy = forward_proxy();
    let url = origin.url("/form");
    let mut client = proxy.connect();
    for body in ["first", "second"] {
        let request = format!(
            "POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = client.ask(&request);
        assert_eq!((answer.status, &answer.body[..]), (200, body.as_bytes()));
        assert_eq!(answer.header("cache-status"), "foxy; fwd=method; fwd-status=200");
    }
}

#[test]
fn hop_by_hop_fields_stay_behind_and_via_is_added() {
    let origin = TestOrigin::start(|_, _| {
        ok("Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-End: 1\r\n", b"")
    });
    let proxy = forward_proxy();
    let answer = proxy.get(
        &origin.url("/"),
        "Connection: X-Mine\r\nX-Mine: 1\r\nProxy-Connection: keep-alive\r\nX-Kept: 1\r\n",
    );
    assert_eq!(
        (answer.header("x-hop"), answer.header("keep-alive"), answer.header("x-end")),
        ("", "", "1")
    );
    let seen = origin.heads.lock().expect("not poisoned")[0].clone();
    assert_eq!((header(&seen, "x-mine"), header(&seen, "proxy-connection")), (None, None));
    assert_eq!((header(&seen, "x-kept"), header(&seen, "via")), (Some("1"), Some("1.1 foxy-test")));
    assert!(seen.starts_with("GET / HTTP/1.1\r\n"), "{seen}");
}

#[test]
fn interim_responses_and_trailers_pass() {
    let origin = TestOrigin::start(|_, _| {
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n\
          Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-Sum: 9\r\n\r\n"
            .to_vec()
    });
    let proxy = forward_proxy();
    let mut client = proxy.connect();
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nConnection: TE, close\r\n\r\n",
        origin.url("/")
    );
    let early = client.ask(&request);
    assert_eq!((early.status, early.header("link")), (103, "</a>"));
    while client.read() > 0 {}
    let rest = client.answer(false);
    assert_eq!((rest.status, &rest.body[..]), (200, &b"hi"[..]));
}

#[test]
fn an_http_1_0_client_gets_no_chunks() {
    let origin = TestOrigin::start(|_, _| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n".to_vec()
    });
    let proxy = forward_proxy();
    let answer = proxy.connect().ask(&format!("GET {} HTTP/1.0\r\n\r\n", origin.url("/")));
    assert_eq!((answer.header("transfer-encoding"), answer.header("connection")), ("", "close"));
    assert_eq!(answer.body, b"hi");
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let origin = TestOrigin::start(|head, _| {
        ok("Cache-Control: max-age=9\r\n", head.split(' ').nth(1).unwrap_or("").as_bytes())
    });
    let proxy = forward_proxy();
    let mut client = proxy.connect();
    let urls = ["/1", "/2", "/1", "/3"];
    let requests = urls.map(|path| format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", origin.url(path)));
    client.send(requests.concat().as_bytes());
    for path in urls {
        assert_eq!(client.answer(false).body, path.as_bytes());
    }
}

#[test]
fn an_upgrade_becomes_a_tunnel_only_after_101() {
    let origin = TestOrigin::start(|head, _| {
        assert_eq!(
            (header(head, "connection"), header(head, "upgrade")),
            (Some("upgrade"), Some("echo"))
        );
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nwelcome"
            .to_vec()
    });
    let proxy = forward_proxy();
    let mut client = proxy.connect();
    let answer = client.ask(&format!(
        "GET {} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
        origin.url("/")
    ));
    assert_eq!((answer.status, answer.header("upgrade")), (101, "echo"));
    client.send(b"");
    assert_eq!(client.take(7), b"welcome");
}

#[test]
fn an_origin_sees_that_the_client_of_a_tunnel_broke_off() {
    let (sender, ends) = mpsc::channel();
    let origin = listen(move |mut stream| {
        let mut half = [0; 4];
        stream.read_exact(&mut half).expect("the first bytes");
        sender.send(Ok(4)).expect("the test waits");
        sender.send(stream.read(&mut half).map_err(|error| error.kind())).expect("the test waits");
    });
    let proxy = proxy_with(|settings| settings.destinations.connect_ports = vec![origin.port()]);
    let mut client = TcpStream::connect(proxy.address()).expect("the proxy accepts");
    let request = format!("CONNECT {origin} HTTP/1.1\r\nHost: {origin}\r\n\r\n");
    client.write_all(request.as_bytes()).expect("the proxy reads");
    let head = read_head(&mut client).expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    client.write_all(b"half").expect("the proxy reads");
    assert_eq!(ends.recv().expect("the first bytes"), Ok(4));
    SockRef::from(&client).set_linger(Some(Duration::ZERO)).expect("a reset at the close");
    drop(client);
    assert_eq!(ends.recv().expect("the end"), Err(std::io::ErrorKind::ConnectionReset));
}

#[test]
fn connect_tunnels_to_allowed_ports_only() {
    let echo = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let port = echo.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        let (mut stream, _) = echo.accept().expect("a connection");
        let mut buffer = [0; 4];
        stream.read_exact(&mut buffer).expect("four bytes");
        stream.write_all(&buffer).expect("taken");
    });
    let refused = forward_proxy()
        .connect()
        .ask(&format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x:{port}\r\n\r\n"));
    assert_eq!(refused.status, 403);
    let proxy = proxy_with(|settings| settings.destinations.connect_ports = vec![port]);
    let mut client = proxy.connect();
    client.send(
        format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: x:{port}\r\n\r\nping").as_bytes(),
    );
    let opened = client.answer(true);
    assert_eq!(opened.status, 200);
    assert_eq!(client.take(4), b"ping");
}

#[test]
fn addresses_that_are_not_public_are_refused_unless_allowed() {
    let origin = TestOrigin::start(|_, _| ok("", b"secret"));
    let proxy = proxy_with(|settings| settings.destinations.allowed.clear());
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"] {
        let answer = proxy.get(&format!("http://{host}:{}/", origin.address.port()), "");
        assert_eq!(answer.status, 403, "{host}: {}", String::from_utf8_lossy(&answer.body));
    }
    assert_eq!(origin.requests(), 0);
}

#[test]
fn a_reverse_proxy_serves_its_origin_under_any_host() {
    let origin = TestOrigin::start(|head, _| {
        ok("Cache-Control: max-age=9\r\n", header(head, "host").unwrap_or("").as_bytes())
    });
    let proxy = reverse_proxy(&origin);
    for host in ["a.test", "b.test", "a.test"] {
        assert_eq!(
            proxy.connect().ask(&format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")).body,
            host.as_bytes()
        );
    }
    assert_eq!(origin.requests(), 2);
}

#[test]
fn requests_that_make_no_sense_are_refused_with_the_reason() {
    let proxy = forward_proxy();
    let cases = [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400, "not-a-proxy-request"),
        ("GET ftp://a.test/ HTTP/1.1\r\nHost: x\r\n\r\n", 400, "unsupported-scheme"),
        ("GET http://a.test/ HTTP/1.1\r\nHost: x\r\nVia: 1.1 foxy-test\r\n\r\n", 508, "loop"),
        (
            "GET http://a.test/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\
             Transfer-Encoding: chunked\r\n\r\n",
            400,
            "bad-request",
        ),
    ];
    for (request, status, reason) in cases {
        let answer = proxy.connect().ask(request);
        assert_eq!(
            (answer.status, answer.cache_status()),
            (status, format!("foxy; detail={reason}").as_str()),
            "{request}"
        );
    }
}

#[test]
fn a_stop_lets_the_request_in_progress_end() {
    let origin = TestOrigin::start(|_, _| {
        std::thread::sleep(Duration::from_millis(200));
        ok("", b"late")
    });
    let proxy = forward_proxy();
    let idle = proxy.connect();
    let mut client = proxy.connect();
    client.send(format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", origin.url("/")).as_bytes());
    while origin.requests() == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    proxy.proxy.stop();
    assert_eq!(client.answer(false).body, b"late");
    drop(idle);
}

#[test]
fn a_connection_that_rested_serves_its_next_request() {
    const LONGER_THAN_REST: Duration = Duration::from_millis(2200);
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\n", b"x"));
    let proxy = forward_proxy();
    let request = format!("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", origin.url("/"));
    let mut client = proxy.connect();
    for _ in 0..2 {
        std::thread::sleep(LONGER_THAN_REST);
        client.send(request.repeat(2).as_bytes());
        assert_eq!(
            (client.answer(false).body, client.answer(false).body),
            (b"x".into(), b"x".into())
        );
    }
    assert_eq!(origin.requests(), 1);
}
