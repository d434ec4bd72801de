//! Tests that the proxy serves only the clients in the setting `allow-client`, for every kind of
//! request and of connection.

use crate::bench::{TestProxy, proxy_with};
use foxy_proxy::core::token::Token;
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;

const TOKEN: &str = "0123456789abcdef";
const REFUSED: (u16, &str) = (403, "foxy; detail=client-not-allowed");
const ALLOWED: [u8; 4] = [127, 0, 0, 2];
const REFUSED_CLIENT: [u8; 4] = [127, 0, 0, 3];

fn proxy() -> TestProxy {
    proxy_with(|settings| {
        settings.allow_client = vec!["127.0.0.2".parse().expect("a block")].into();
        settings.purge_from = vec!["127.0.0.0/8".parse().expect("a block")].into();
        settings.purge_token = Token::new(TOKEN);
    })
}

fn origin() -> TestOrigin {
    TestOrigin::start(|_, _| ok("Cache-Control: max-age=600\r\n", b"x"))
}

#[test]
fn another_client_is_refused_for_every_method_and_even_with_a_token() {
    let (origin, proxy) = (origin(), proxy());
    let (url, host) = (origin.url("/x"), origin.address);
    for (method, target, lines) in [
        ("GET", &*url, ""),
        ("GET", &*url, "Foxy-Explain: 1\r\n"),
        ("PURGE", &*url, "Proxy-Authorization: Bearer 0123456789abcdef\r\n"),
        ("CONNECT", "127.0.0.1:443", ""),
        ("OPTIONS", "*", ""),
    ] {
        let request = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n");
        let answer = proxy.connect_from(REFUSED_CLIENT).ask(&request);
        assert_eq!((answer.status, answer.cache_status()), REFUSED, "{method} {lines}");
        assert!(String::from_utf8_lossy(&answer.body).contains("allow-client"), "{answer:?}");
        let answer = proxy.connect_from(ALLOWED).ask(&request);
        assert!(!answer.cache_status().contains("client-not-allowed"), "{method}: {answer:?}");
    }
    assert_eq!(origin.requests(), 1, "the allowed client's GET");
}

#[tokio::test]
async fn another_client_is_refused_over_http_2() {
    let (origin, proxy) = (origin(), proxy());
    for (client, expected) in [(REFUSED_CLIENT, 403), (ALLOWED, 200)] {
        let stream = proxy.connect_from(client).stream;
        stream.set_nonblocking(true).expect("a socket");
        let stream = tokio::net::TcpStream::from_std(stream).expect("a socket");
        let (requests, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        let mut requests = requests.ready().await.expect("a connection");
        let request = http::Request::get(origin.url("/x")).body(()).expect("a request");
        let (answer, _) = requests.send_request(request, true).expect("sent");
        assert_eq!(answer.await.expect("an answer").status(), expected);
    }
}

#[test]
fn the_client_that_a_balancer_names_is_judged() {
    let (origin, proxy) = (
        origin(),
        proxy_with(|settings| {
            settings.allow_client = vec!["192.0.2.0/24".parse().expect("a block")].into();
            settings.proxy_protocol_from = vec!["127.0.0.0/8".parse().expect("a block")];
        }),
    );
    for (client, expected) in [("192.0.2.7", 200), ("198.51.100.7", 403)] {
        let mut connection = proxy.connect();
        connection.send(format!("PROXY TCP4 {client} 127.0.0.1 5000 80\r\n").as_bytes());
        let host = origin.address;
        let request = format!("GET {} HTTP/1.1\r\nHost: {host}\r\n\r\n", origin.url("/x"));
        assert_eq!(connection.ask(&request).status, expected, "{client}");
    }
}
