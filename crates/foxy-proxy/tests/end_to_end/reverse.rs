//! Tests the fields with which a reverse proxy tells its origin about the client, such as
//! X-Forwarded-For. A client must not be able to forge them.

use crate::bench::{forward_proxy, proxy_with, reverse_proxy};
use foxy_proxy::request::mode::Mode;
use foxy_proxy::upstream::{OriginServer, Scheme};
use foxy_testkit::http::{header, ok, read_head};
use foxy_testkit::origin::{TestOrigin, listen};
use std::io::Write;
use std::sync::mpsc;

const FRESH: &str = "Cache-Control: max-age=600\r\n";

/// Starts an origin whose answers contain the forwarding fields that it received. Web applications
/// create links from these fields, so their answers also contain them.
fn echoing() -> TestOrigin {
    TestOrigin::start(|head, _| {
        let told =
            ["host", "x-forwarded-host", "x-forwarded-proto", "x_forwarded_host", "x-original-url"];
        let told: Vec<_> = told.iter().filter_map(|name| header(head, name)).collect();
        ok(FRESH, told.join(" ").as_bytes())
    })
}

const CLAIMS: &str = "X-Forwarded-Host: evil.test\r\nX_Forwarded_Host: evil.test\r\nX-Original-URL: /evil.test\r\n\
                      X-Forwarded-For: 192.0.2.66\r\nForwarded: for=192.0.2.66;host=evil.test\r\n";

#[test]
fn no_client_poisons_what_a_reverse_proxy_keeps() {
    let origin = echoing();
    let proxy = reverse_proxy(&origin);
    let get = |claims: &str| {
        proxy.connect().ask(&format!("GET / HTTP/1.1\r\nHost: a.test\r\n{claims}\r\n"))
    };
    for claims in [CLAIMS, ""] {
        assert_eq!(
            String::from_utf8_lossy(&get(claims).body),
            "a.test a.test http",
            "after {claims:?}"
        );
    }
    let seen = origin.heads.lock().expect("not poisoned")[0].clone();
    assert_eq!(header(&seen, "forwarded"), Some("for=127.0.0.1;host=a.test;proto=http"), "{seen}");
    assert_eq!(header(&seen, "x-forwarded-for"), Some("127.0.0.1"), "{seen}");
    assert_eq!(origin.requests(), 1);
}

#[test]
fn no_client_poisons_the_fields_with_trailers() {
    let (sender, received) = mpsc::channel();
    let origin = listen(move |mut stream| {
        let _head = read_head(&mut stream);
        sender.send(read_head(&mut stream)).expect("the test waits");
        stream.write_all(&ok("", b"x")).expect("the proxy reads");
    });
    let proxy = proxy_with(|settings| {
        let (host, port) = (origin.ip().to_string(), origin.port());
        settings.mode = Mode::reverse(OriginServer { scheme: Scheme::Http, host, port });
    });
    let request = format!(
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n\
         2\r\nhi\r\n0\r\n{CLAIMS}X-Sum: 9\r\n\r\n"
    );
    assert_eq!(proxy.connect().ask(&request).status, 200);
    let body = received.recv().expect("a request");
    assert_eq!(body.as_deref(), Some("2\r\nhi\r\n0\r\nX-Sum: 9\r\n\r\n"));
}

#[test]
fn no_client_poisons_what_a_forward_proxy_keeps() {
    let origin = echoing();
    let proxy = forward_proxy();
    let host = origin.address.to_string();
    for claims in [CLAIMS, ""] {
        let answer = proxy.get(&origin.url("/"), claims);
        assert_eq!(String::from_utf8_lossy(&answer.body), host, "after {claims:?}");
    }
    assert_eq!(origin.requests(), 1);
    let posted = format!(
        "POST {} HTTP/1.1\r\nHost: x\r\n{CLAIMS}Content-Length: 0\r\n\r\n",
        origin.url("/")
    );
    let answer = proxy.connect().ask(&posted);
    assert_eq!(
        answer.body,
        format!("{host} evil.test evil.test /evil.test").as_bytes(),
        "nobody else gets it"
    );
}

#[test]
fn an_answer_to_a_post_with_claims_is_nobody_elses() {
    let address = std::sync::Arc::new(std::sync::OnceLock::<String>::new());
    let url = std::sync::Arc::clone(&address);
    let origin = TestOrigin::start(move |head, _| {
        let url = url.get().expect("known by then");
        ok(
            &format!("{FRESH}Content-Location: {url}\r\n"),
            header(head, "x-forwarded-host").unwrap_or("-").as_bytes(),
        )
    });
    let url = origin.url("/");
    address.set(url.clone()).expect("once");
    let proxy = forward_proxy();
    let post = |claims: &str| {
        format!("POST {url} HTTP/1.1\r\nHost: x\r\n{claims}Content-Length: 0\r\n\r\n")
    };
    assert_eq!(proxy.connect().ask(&post(CLAIMS)).body, b"evil.test");
    assert_eq!(proxy.get(&url, "").body, b"-");
    assert_eq!(origin.requests(), 2, "the answer to the POST was not kept");
}

#[test]
fn connection_cannot_name_away_what_the_origin_is_told() {
    let origin = echoing();
    let proxy = reverse_proxy(&origin);
    let request = "GET / HTTP/1.1\r\nHost: a.test\r\n\
                   Connection: X-Forwarded-For, Forwarded, X-Forwarded-Proto\r\n\r\n";
    assert_eq!(proxy.connect().ask(request).body, b"a.test a.test http");
    let seen = origin.heads.lock().expect("not poisoned")[0].clone();
    assert_eq!(header(&seen, "x-forwarded-for"), Some("127.0.0.1"), "{seen}");
}

#[test]
fn a_variant_by_client_address_is_for_that_address_alone() {
    let origin = TestOrigin::start(|_, number| {
        ok(&format!("{FRESH}Vary: X-Forwarded-For\r\n"), number.to_string().as_bytes())
    });
    let proxy = reverse_proxy(&origin);
    let from = |address: [u8; 4]| {
        proxy.connect_from(address).ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").body
    };
    assert_eq!(
        [from([127, 0, 0, 1]), from([127, 0, 0, 2]), from([127, 0, 0, 1])],
        [b"0", b"1", b"0"]
    );
}

#[test]
fn a_health_check_without_a_host_is_for_the_origin_itself() {
    let origin = echoing();
    let proxy = reverse_proxy(&origin);
    let own = origin.address.to_string();
    for request in
        ["GET / HTTP/1.0\r\n\r\n".to_owned(), format!("GET / HTTP/1.1\r\nHost: {own}\r\n\r\n")]
    {
        let answer = proxy.connect().ask(&request);
        assert_eq!(String::from_utf8_lossy(&answer.body), format!("{own} {own} http"), "{request}");
    }
    let seen = origin.heads.lock().expect("not poisoned").clone();
    assert_eq!(seen.len(), 1, "the key is that of the origin's own authority");
    assert_eq!(header(&seen[0], "host"), Some(&own[..]));
    assert_eq!(
        proxy.connect().ask("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n").body,
        b"a.test a.test http"
    );
    for empty in ["GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"] {
        assert_eq!(proxy.connect().ask(empty).status, 400, "{empty}");
    }
    let absolute = "GET http://b.test/ HTTP/1.0\r\n\r\n";
    assert_eq!(proxy.connect().ask(absolute).body, b"b.test b.test http");
}

#[test]
fn what_follows_a_refused_connect_is_no_request() {
    let origin = echoing();
    let tunnelled = "GET /tunnelled HTTP/1.1\r\nHost: a.test\r\n\r\n";
    let connect = |headers: &str| {
        format!("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n{headers}\r\n{tunnelled}")
    };
    for (proxy, headers) in
        [(reverse_proxy(&origin), ""), (forward_proxy(), "Via: 1.1 foxy-test\r\n")]
    {
        let mut client = proxy.connect();
        let refused = client.ask(&connect(headers));
        assert!(refused.status >= 400, "{}", refused.head);
        assert_eq!(refused.header("connection"), "close", "{}", refused.head);
        assert_eq!(client.read(), 0, "nothing answers the tunnel's bytes");
    }
    assert_eq!(origin.requests(), 0);
}
