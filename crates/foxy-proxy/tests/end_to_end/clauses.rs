//! Tests requirements of RFC 9110 and RFC 9111 that neither the public test suite for caches nor
//! another test covers. docs/clauses.md lists all requirements.

use crate::bench::{forward_proxy, proxy_with};
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;

const FRESH: &str = "Cache-Control: max-age=60\r\nETag: \"a\"\r\n";

#[test]
fn a_trailer_never_becomes_a_header_field_of_what_is_stored() {
    let origin = TestOrigin::start(|_, _| {
        let head = format!(
            "HTTP/1.1 200 OK\r\n{FRESH}Trailer: X-Sum, Age\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        [head.as_bytes(), b"2\r\nhi\r\n0\r\nX-Sum: 9\r\nAge: 50\r\n\r\n"].concat()
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "Connection: TE\r\nTE: trailers\r\n");
    let hit = proxy.get(&url, "");
    assert!(hit.cache_status().starts_with("foxy; hit"), "{}", hit.head);
    assert_eq!((&hit.body[..], hit.header("x-sum")), (&b"hi"[..], ""));
    assert!(hit.header("age").parse::<u64>().expect("an age") < 50, "{}", hit.head);
}

#[test]
fn directives_pass_through_whatever_they_mean_here() {
    const SAID: &str = "max-age=60, unheard-of=\"a, b\", no-transform, private-to-us";
    let origin = TestOrigin::start(|_, _| ok(&format!("Cache-Control: {SAID}\r\n"), b"x"));
    let proxy = forward_proxy();
    let url = origin.url("/x");
    let answers = [0, 1].map(|_| proxy.get(&url, "Cache-Control: max-stale=5, unheard-of=1\r\n"));
    assert!(answers[1].cache_status().starts_with("foxy; hit"), "{}", answers[1].head);
    for answer in &answers {
        assert_eq!(answer.header("cache-control"), SAID);
    }
    let seen = origin.heads.lock().expect("not poisoned")[0].clone();
    assert_eq!(header(&seen, "cache-control"), Some("max-stale=5, unheard-of=1"));
}

#[test]
fn content_is_never_transformed() {
    let body: Vec<u8> = (0..=255).cycle().take(3000).collect();
    let sent = body.clone();
    let lines = format!(
        "{FRESH}Content-Encoding: gzip\r\nContent-Type: text/plain\r\n\
         Content-MD5: of-something-else\r\n"
    );
    let origin = TestOrigin::start(move |_, _| ok(&lines, &sent));
    for memory in [0, 8 << 20] {
        let proxy = proxy_with(|settings| settings.memory = memory);
        let url = origin.url(&format!("/{memory}"));
        for what in ["foxy; fwd=uri-miss", "foxy; hit"] {
            let answer = proxy.get(&url, "Accept-Encoding: br;q=0.5, gzip\r\n");
            assert!(answer.cache_status().starts_with(what), "{}", answer.head);
            assert_eq!(answer.body, body);
            assert_eq!(
                (answer.header("content-encoding"), answer.header("content-md5")),
                ("gzip", "of-something-else")
            );
        }
    }
    for seen in &*origin.heads.lock().expect("not poisoned") {
        assert_eq!(header(seen, "accept-encoding"), Some("br;q=0.5, gzip"));
    }
}

#[test]
fn max_forwards_is_decremented_for_trace_and_options_and_zero_ends_here() {
    let origin = TestOrigin::start(|_, _| ok("", b""));
    let proxy = forward_proxy();
    let ask = |method: &str, hops: &str| {
        let (url, host) = (origin.url("/x"), origin.address);
        let length = if method == "POST" { "Content-Length: 0\r\n" } else { "" };
        let request = format!(
            "{method} {url} HTTP/1.1\r\nHost: {host}\r\n{length}Max-Forwards: {hops}\r\n\r\n"
        );
        proxy.connect().ask(&request).status
    };
    for method in ["OPTIONS", "TRACE", "POST"] {
        assert_eq!(ask(method, "5"), 200);
    }
    assert_eq!(ask("OPTIONS", "18446744073709551616"), 200);
    for hops in ["0", "00"] {
        assert_eq!((ask("OPTIONS", hops), ask("TRACE", hops)), (200, 405));
    }
    let seen = origin.heads.lock().expect("not poisoned").clone();
    let left: Vec<_> = seen.iter().map(|head| header(head, "max-forwards")).collect();
    assert_eq!(left, [Some("4"), Some("4"), Some("5"), Some("18446744073709551614")]);
}

#[test]
fn conditions_that_are_for_origins_go_to_them_and_cost_nothing_stored() {
    let origin = TestOrigin::start(|head, _| {
        let conditional =
            header(head, "if-match").or(header(head, "if-unmodified-since")).is_some();
        if conditional {
            b"HTTP/1.1 412 No\r\nContent-Length: 0\r\n\r\n".to_vec()
        } else {
            ok(FRESH, b"x")
        }
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    for condition in
        ["If-Match: \"a\"\r\n", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"]
    {
        assert_eq!(proxy.get(&url, condition).status, 412);
    }
    assert!(proxy.get(&url, "").cache_status().starts_with("foxy; hit"));
    assert_eq!(origin.requests(), 3);
}

#[test]
fn a_response_without_a_date_has_that_of_its_receipt_from_then_on() {
    let origin = TestOrigin::start(|_, _| ok(FRESH, b"x"));
    let proxy = forward_proxy();
    let url = origin.url("/x");
    let first = proxy.get(&url, "");
    assert_ne!(first.header("date"), "");
    assert_eq!(proxy.get(&url, "").header("date"), first.header("date"));
    assert_eq!(origin.requests(), 1);
}

#[test]
fn unsafe_and_unknown_methods_are_written_through_whatever_is_stored() {
    let origin =
        TestOrigin::start(|head, _| ok(FRESH, head.split(' ').next().unwrap_or("").as_bytes()));
    let proxy = forward_proxy();
    let url = origin.url("/x");
    for method in ["PUT", "DELETE", "PATCH", "FROBNICATE"] {
        proxy.get(&url, "");
        let request = format!(
            "{method} {url} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n",
            origin.address
        );
        assert_eq!(proxy.connect().ask(&request).body, method.as_bytes());
        assert!(
            proxy.get(&url, "").cache_status().contains("fwd=uri-miss"),
            "{method} invalidates"
        );
    }
}

#[test]
fn of_two_stored_responses_that_match_the_newer_answers() {
    let origin = TestOrigin::start(|_, number| match number {
        0 => ok(FRESH, b"old"),
        _ => ok("Cache-Control: max-age=60\r\nVary: Accept-Language\r\n", b"new"),
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "Accept-Language: de\r\n");
    proxy.get(&url, "Accept-Language: de\r\nCache-Control: no-cache\r\n");
    let answer = proxy.get(&url, "Accept-Language: de\r\n");
    assert!(answer.cache_status().starts_with("foxy; hit"), "{}", answer.head);
    assert_eq!(answer.body, b"new");
}

#[test]
fn a_confirmed_record_is_a_200_for_another_validator_and_a_whole_304_for_its_own() {
    const LINES: &str = "Cache-Control: max-age=0\r\nETag: \"a\"\r\nVary: Accept\r\n\
                         Content-Location: /y\r\nExpires: 0\r\n";
    let origin = TestOrigin::start(|head, _| match header(head, "if-none-match") {
        Some("\"a\"") => format!("HTTP/1.1 304 Not Modified\r\n{LINES}\r\n").into_bytes(),
        _ => ok(LINES, b"hello"),
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    let other = proxy.get(&url, "If-None-Match: \"b\"\r\n");
    assert_eq!((other.status, &other.body[..]), (200, &b"hello"[..]), "{}", other.head);
    let same = proxy.get(&url, "If-None-Match: \"b\", W/\"a\"\r\n");
    assert_eq!(same.status, 304, "{}", same.head);
    for name in ["cache-control", "content-location", "date", "etag", "expires", "vary"] {
        assert_eq!(same.header(name), other.header(name), "{name}");
        assert_ne!(same.header(name), "", "{name}");
    }
    assert_eq!(origin.requests(), 3);
}
