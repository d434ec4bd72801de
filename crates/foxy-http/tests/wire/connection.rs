//! Tests persistence, hop-by-hop headers, upgrades and `Expect: 100-continue`.

use crate::support::{lines, request_events};
use foxy_http::{
    CloseReason, Headers, Persistence, RequestEvent, RequestHead, Version, accepts_trailers,
    expects_continue, strip_hop_by_hop, upgrade_protocol,
};

fn head(version: &str, lines: &str) -> RequestHead {
    let input = format!("GET / {version}\r\nHost: h\r\n{lines}\r\n");
    let (mut events, end) = request_events(input.as_bytes(), input.len());
    match events.drain(..).next() {
        Some(RequestEvent::Head(head, _)) => head,
        other => panic!("{input:?}: {other:?}, {end:?}"),
    }
}

#[track_caller]
fn check_stripped(before: &str, after: &str) {
    let mut headers = head("HTTP/1.1", before).headers;
    strip_hop_by_hop(&mut headers);
    assert_eq!(lines(&headers), format!("Host: h\n{after}"));
}

#[test]
fn headers_named_in_connection_are_stripped() {
    check_stripped(
        "Connection: x-a, Close\r\nconnection: X-B\r\nX-A: 1\r\nx-b: 2\r\nX-C: 3\r\nclose: 4\r\n",
        "X-C: 3\nclose: 4\n",
    );
}

#[test]
fn hop_by_hop_headers_are_stripped_though_not_named() {
    check_stripped(
        "Keep-Alive: 5\r\nProxy-Connection: x\r\nProxy-Authenticate: x\r\nProxy-Authorization: x\r\nTE: trailers\r\n\
         Trailer: X\r\nTransfer-Encoding: chunked\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\nAccept: */*\r\n",
        "Accept: */*\n",
    );
}

#[test]
fn connection_cannot_name_away_what_routing_framing_and_caching_need() {
    check_stripped(
        "Connection: host, content-length, cache-control, authorization\r\nCache-Control: private\r\n\
         Content-Length: 0\r\nAuthorization: x\r\n",
        "Cache-Control: private\nContent-Length: 0\nAuthorization: x\n",
    );
}

#[test]
fn persistence_follows_version_and_connection() {
    let of = |version: &str, lines: &str| {
        let head = head(version, lines);
        Persistence::of(head.version, &head.headers)
    };
    assert_eq!(of("HTTP/1.1", ""), Persistence::KeepAlive);
    assert_eq!(
        of("HTTP/1.1", "Connection: foo, CLOSE\r\n"),
        Persistence::Close(CloseReason::Asked)
    );
    assert_eq!(of("HTTP/1.0", ""), Persistence::Close(CloseReason::Http10));
    assert_eq!(of("HTTP/1.0", "Connection: Keep-Alive\r\n"), Persistence::KeepAlive);
    assert_eq!(
        of("HTTP/1.0", "Connection: keep-alive\r\nConnection: close\r\n"),
        Persistence::Close(CloseReason::Asked)
    );
}

#[test]
fn an_upgrade_must_be_named_in_connection_and_needs_1_1() {
    let of = |version: &str, lines: &str| {
        let head = head(version, lines);
        upgrade_protocol(head.version, &head.headers).map(<[u8]>::to_vec)
    };
    assert_eq!(
        of("HTTP/1.1", "Connection: Upgrade\r\nUpgrade: websocket\r\n"),
        Some(b"websocket".to_vec())
    );
    assert_eq!(of("HTTP/1.1", "Upgrade: websocket\r\n"), None);
    assert_eq!(of("HTTP/1.1", "Connection: Upgrade\r\n"), None);
    assert_eq!(of("HTTP/1.0", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), None);
}

#[test]
fn an_upgrade_to_another_http_or_to_tls_is_none() {
    for value in ["h2c", "H2C", "HTTP/2.0", "TLS/1.0", "websocket, h2c", "h2c-14"] {
        let head = head("HTTP/1.1", &format!("Connection: Upgrade\r\nUpgrade: {value}\r\n"));
        assert_eq!(upgrade_protocol(head.version, &head.headers), None, "{value}");
    }
}

#[test]
fn only_an_http_1_1_client_can_expect_100_continue() {
    assert!(expects_continue(&head("HTTP/1.1", "Expect: 100-Continue\r\n")));
    assert!(!expects_continue(&head("HTTP/1.1", "Expect: other\r\n")));
    assert!(!expects_continue(&head("HTTP/1.0", "Expect: 100-continue\r\n")));
}

#[test]
fn trailers_are_taken_only_by_who_says_so() {
    assert!(accepts_trailers(&head("HTTP/1.1", "TE: gzip, Trailers\r\n").headers));
    assert!(!accepts_trailers(&head("HTTP/1.1", "TE: gzip\r\n").headers));
    assert!(!accepts_trailers(&Headers::new()));
}

#[test]
fn versions_are_ordered() {
    assert!(Version::Http10 < Version::Http11);
}
