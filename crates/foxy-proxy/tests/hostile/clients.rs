//! Tests request heads that are wrong, ambiguous, endless or too large. Each must receive the
//! documented status. If the proxy cannot be sure where the request ends, the connection must
//! close. The origin must never receive a second request that is hidden in the first (smuggled).
//! `bodies` tests request bodies.

use crate::support::proxy::Proxy;
use crate::support::requests::{SMUGGLED, plain_origin, sent};
use crate::support::wire::RawClient;
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;

/// Sends a request head, and then a smuggled request. In the head, `ORIGIN` stands for the origin's
/// authority. Checks that the client receives exactly one answer, with this status, and that the
/// connection closes.
async fn check_refused(request: &str, status: u16) {
    let request = request.to_owned();
    local(async move {
        let origin = plain_origin().await;
        let proxy = Proxy::start();
        let text = request.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port));
        let mut client = RawClient::connect(proxy.port).await;
        client.send(format!("{text}{SMUGGLED}")).await;
        let answer = client.response(&Method::Get).await;
        assert_eq!(answer.head.status, status, "{request:?}: {}", answer.text());
        assert!(answer.end.is_ok(), "{request:?}: the refusal is a whole response");
        assert!(answer.header("connection").eq_ignore_ascii_case("close"), "{request:?}");
        let rest = client.rest().await;
        assert!(
            rest.is_empty(),
            "{request:?}: nothing follows the refusal, not {}",
            rest.escape_ascii()
        );
        assert_eq!(origin.heard(), Vec::<String>::new(), "{request:?}: nothing reaches the origin");
    })
    .await;
}

#[tokio::test]
async fn ambiguous_framing_is_refused_and_the_connection_closed() {
    let cases = [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked\r\nContent-Length: 0", 400),
        ("Content-Length: 5\r\nContent-Length: 6", 400),
        ("Content-Length: 5\r\nContent-Length: 5", 400),
        ("Content-Length: 5, 5", 400),
        ("Content-Length: +5", 400),
        ("Content-Length: -1", 400),
        ("Content-Length: 0x5", 400),
        ("Content-Length: 5 5", 400),
        ("Content-Length:", 400),
        ("Content-Length: 99999999999999999999", 400),
        ("Content-Length : 5", 400),
        ("Transfer-Encoding : chunked", 400),
        ("Transfer-Encoding: chunked, gzip", 400),
        ("Transfer-Encoding: identity", 400),
        ("Transfer-Encoding: xchunked", 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400),
        ("Transfer-Encoding: chunked, chunked", 400),
        ("Transfer-Encoding: gzip, chunked", 501),
        ("Transfer-Encoding: \"chunked\"", 400),
        ("Transfer-Encoding:\x0bchunked", 400),
    ];
    for (headers, status) in cases {
        let request = format!("POST http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n{headers}\r\n\r\n");
        check_refused(&request, status).await;
    }
    check_refused(
        "POST http://ORIGIN/ HTTP/1.0\r\nHost: ORIGIN\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
    )
    .await;
}

#[tokio::test]
async fn malformed_heads_are_refused_and_the_connection_closed() {
    let cases = [
        ("GET http://ORIGIN/ HTTP/1.1\nHost: ORIGIN\n\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\nX: y\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nX: a\rb\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nX: a\0b\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nX: a\r\n folded\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1\r\n X: y\r\nHost: ORIGIN\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nno colon\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n: nameless\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nHost: ORIGIN\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET http://ORIGIN/a b HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", 400),
        ("GET  http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", 400),
        ("GET http://user:word@ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", 400),
        ("GET http:///path HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", 400),
        ("GET http://ORIGIN:99999/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", 400),
        ("G@T http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/1.1 more\r\nHost: ORIGIN\r\n\r\n", 400),
        ("GET http://ORIGIN/\r\nHost: ORIGIN\r\n\r\n", 400),
        ("GET http://ORIGIN/ HTTP/2.0\r\nHost: ORIGIN\r\n\r\n", 505),
        ("GET http://ORIGIN/ HTTP/1.2\r\nHost: ORIGIN\r\n\r\n", 505),
        ("CONNECT ORIGIN/path HTTP/1.1\r\nHost: ORIGIN\r\n\r\n", 400),
        ("CONNECT 127.0.0.1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", 400),
    ];
    for (request, status) in cases {
        check_refused(request, status).await;
    }
}

#[tokio::test]
async fn floods_are_refused_at_their_limits() {
    let long = "a".repeat(40 << 10);
    check_refused(&format!("GET http://ORIGIN/{long} HTTP/1.1\r\nHost: ORIGIN\r\n\r\n"), 414).await;
    let lines = "X-Filler: y\r\n".repeat(300);
    check_refused(&format!("GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n{lines}\r\n"), 431)
        .await;
    let wide = "a".repeat(70 << 10);
    check_refused(
        &format!("GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nX: {wide}\r\n\r\n"),
        431,
    )
    .await;
}

#[tokio::test]
async fn the_target_decides_and_host_is_rewritten() {
    local(async {
        let origin = plain_origin().await;
        let proxy = Proxy::start();
        let mut client =
            sent(&proxy, &origin, "GET http://ORIGIN/x HTTP/1.1\r\nHost: other.example\r\n\r\n")
                .await;
        assert_eq!(client.response(&Method::Get).await.head.status, 200);
        let head = origin.heard().remove(0);
        assert!(head.starts_with("GET /x HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("Host: 127.0.0.1:{}\r\n", origin.port)), "{head}");
        assert!(!head.contains("other.example"), "{head}");
    })
    .await;
}

#[tokio::test]
async fn headers_named_in_connection_do_not_pass_and_odd_targets_do() {
    local(async {
        let origin = plain_origin().await;
        let proxy = Proxy::start();
        let request = "GET http://ORIGIN/\"{}|^?\" HTTP/1.1\r\nHost: ORIGIN\r\nConnection: X-Secret, keep-alive\r\n\
                       X-Secret: 1\r\nKeep-Alive: 5\r\nProxy-Authorization: Basic eA==\r\nX-Kept: 2\r\n\r\n";
        let mut client = sent(&proxy, &origin, request).await;
        assert_eq!(client.response(&Method::Get).await.head.status, 200);
        let head = origin.heard().remove(0);
        assert!(head.starts_with("GET /\"{}|^?\" HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("X-Kept: 2\r\n"), "{head}");
        for gone in ["X-Secret", "Keep-Alive", "Proxy-Authorization"] {
            assert!(!head.contains(gone), "{gone}: {head}");
        }
    })
    .await;
}

#[tokio::test]
async fn destinations_that_are_not_public_are_refused() {
    local(async {
        let origin = plain_origin().await;
        let proxy = Proxy::start_with(|settings| settings.destinations.allowed.clear());
        let hosts = [
            format!("127.0.0.1:{}", origin.port),
            format!("[::ffff:127.0.0.1]:{}", origin.port),
            format!("[::1]:{}", origin.port),
            "169.254.169.254".to_owned(),
            "[fd00:ec2::254]".to_owned(),
            "10.0.0.1".to_owned(),
            "0.0.0.0".to_owned(),
            "192.168.0.1:8080".to_owned(),
        ];
        for host in hosts {
            let mut client = RawClient::connect(proxy.port).await;
            client.send(format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            let answer = client.response(&Method::Get).await;
            assert_eq!(answer.head.status, 403, "{host}: {}", answer.text());
            for part in ["destination-forbidden", "--allow-destination CIDR"] {
                assert!(answer.text().contains(part), "{host}: {}", answer.text());
            }
            let phrase = String::from_utf8_lossy(&answer.head.reason);
            assert!(phrase.ends_with(" address: see --allow-destination"), "{host}: {phrase}");
        }
        for host in ["0x7f.1", "2130706433", "127.1", "nowhere.invalid"] {
            let mut client = RawClient::connect(proxy.port).await;
            client.send(format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
            assert_eq!(client.response(&Method::Get).await.head.status, 502, "{host}");
        }
        assert_eq!(origin.connections(), 0);
    })
    .await;
}

#[tokio::test]
async fn the_proxy_is_not_an_origin() {
    local(async {
        let proxy = Proxy::start();
        let host = format!("127.0.0.1:{}", proxy.port);
        let mut client = RawClient::connect(proxy.port).await;
        client.send(format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!(client.response(&Method::Get).await.head.status, 403);
    })
    .await;
}

#[tokio::test]
async fn connect_opens_tunnels_to_allowed_ports_only() {
    local(async {
        let origin = ScriptedOrigin::with(vec![send("hello"), Step::Body(5), send(" bye")]).await;
        let port = origin.port;
        let proxy = Proxy::start_with(|settings| settings.destinations.connect_ports = vec![port]);
        let mut refused = RawClient::connect(proxy.port).await;
        refused.send("CONNECT 127.0.0.1:25 HTTP/1.1\r\nHost: 127.0.0.1:25\r\n\r\n").await;
        let answer = refused.response(&Method::Get).await;
        assert_eq!(
            (answer.head.status, &answer.head.reason[..]),
            (403, &b"Port not in connect-ports: see --connect-port"[..])
        );
        assert!(answer.text().contains("--connect-port PORT"), "{}", answer.text());

        let mut client =
            sent(&proxy, &origin, "CONNECT ORIGIN HTTP/1.1\r\nHost: ORIGIN\r\n\r\nearly").await;
        assert_eq!(client.response(&Method::Connect).await.head.status, 200);
        assert_eq!(client.read_exactly(9).await, b"hello bye");
        assert_eq!(origin.heard(), ["early"]);
        client.finish().await;
        assert!(client.rest().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_head_that_drips_is_timed_out() {
    local(async {
        let proxy = Proxy::start_with(|settings| {
            settings.client_head = std::time::Duration::from_millis(300)
        });
        let mut client = RawClient::connect(proxy.port).await;
        client.send("GET http://origin.example/ HTTP/1.1\r\n").await;
        let drip = async {
            for _ in 0..100 {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        let answer = tokio::select! {
            answer = client.response(&Method::Get) => answer,
            () = drip => panic!("the proxy waits for ever"),
        };
        assert_eq!(answer.head.status, 408);
        assert!(client.rest().await.is_empty());
    })
    .await;
}
